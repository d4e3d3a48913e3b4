package leased

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A directory has three numbers left. A and B get the first two. Every other client gets the last one, or a
// number below 0, and an error. Otherwise two clients with the same number would hold the lock at once.
func TestTheLastNumbersOfADirectory(t *testing.T) {
	for _, kind := range []property.Subject{mutexes, cohorts, rwmutexes} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			z, dirs := zktest.NewAtTheEnd(t)
			e := &theEnd{t, z, kind, dirs[0]}
			e.serves(func() {
				e.told(e.join("C").Start())
				e.told(e.join("D").Start())
			})
			for _, e.dir = range dirs[1:] {
				isBelow0 := false
				e.serves(func() { isBelow0 = e.threeAtOnce() })
				if isBelow0 { // as nearly always
					return
				}
			}
			t.Fatal("three came at one moment, five times, and got no number below 0: the machine is too busy")
		})
	}
}

// below0 matches a znode with such a number.
var below0 = regexp.MustCompile(`(lock-|__WRIT__)-\d+$`)

// theEnd is a directory with few numbers left, and the clients of its lock.
type theEnd struct {
	*testing.T
	z    *zktest.Zoo
	kind property.Subject
	dir  string
}

func (e *theEnd) join(name string) *zktest.Member {
	return e.kind.JoinAs(e.z, name, property.Seat{Path: e.dir})
}

// serves lets A hold the lock, B wait behind it, and other clients arrive. A and B acquire the lock, and
// after them no client does, until the directory is deleted.
func (e *theEnd) serves(come func()) {
	e.Helper()
	a := e.join("A").Acquire()
	b := e.join("B").Start()
	b.MustWait("A holds the lock")
	come()
	b.MustWait("A holds the lock, and other clients were notified")
	a.Release()
	b.Acquired()
	require.Greater(e, token(b), token(a))
	b.Release()
	e.told(e.join("F").Start())
	require.NoError(e, e.z.Observer().Delete(e.dir, -1), "the directory is empty")
	e.join("G").Acquire().Release()
}

// told fails the test unless a call returns the error, and leaves no znode behind.
func (e *theEnd) told(call *zktest.Turn) {
	e.Helper()
	require.ErrorContains(e, call.Err(), usedUp, call.Name)
	e.z.Await(call.Name+"'s znode to be gone", func() bool {
		_, there := e.z.Owner(call.Znode())
		return !there
	})
}

// threeAtOnce lets C, D and E arrive at one moment. While the server creates a znode with the last number, it
// already counts the next ones, beyond the range of its counter. threeAtOnce reports whether one of them got
// a number below 0.
func (e *theEnd) threeAtOnce() (isBelow0 bool) {
	e.Helper()
	var creates []*wiretap.Trap
	var calls []*zktest.Turn
	for _, name := range []string{"C", "D", "E"} {
		m := e.join(name)
		create := m.Tap.HoldRequest(wiretap.Create, 1)
		calls, creates = append(calls, m.Start()), append(creates, create)
		zktest.AwaitChan(e.z, name+" to be about to make its znode", create.Sprung())
	}
	for _, create := range creates {
		create.Let()
	}
	for _, call := range calls {
		e.told(call)
		isBelow0 = isBelow0 || below0.MatchString(call.Znode())
	}
	return isBelow0
}
