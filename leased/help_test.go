package leased

import (
	"context"
	pathpkg "path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("paused holder", pausedHolder) // in cost_test.go
	zktest.Child("service", service)            // in end_test.go
	for _, lock := range explored {             // in explore_test.go
		explore.Acts(lock.Subject)
	}
	zktest.Main(m)
}

// open is Open as the stories call it.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(context.Background(), servers, timeout, WithDialer(dial))
}

// The three kinds of lock that the stories use.
var (
	mutexes   = property.OverHolds("leased.Mutex", open, NewMutex)
	cohorts   = property.OverHolds("leased.Cohort", open, NewCohort)
	rwmutexes = property.OverHolds("leased.RWMutex", open, NewRWMutex)
)

func init() { // property.UnlockTooMany needs this
	for _, lock := range []*property.Subject{&mutexes, &cohorts, &rwmutexes} {
		lock.NotHeld = ErrNotHeld
	}
	for _, w := range ways {
		w.locks.NotHeld = ErrNotHeld
	}
}

// A way is one of the four ways to take a lock.
type way struct {
	name  string
	locks property.Subject
	reads bool
}

var (
	byMutex  = &way{"Mutex", mutexes, false}
	byCohort = &way{"Cohort", cohorts, false}
	byWriter = &way{"RWMutex, to write", rwmutexes, false}
	byReader = &way{"RWMutex, to read", rwmutexes, true}

	ways = []*way{byMutex, byCohort, byWriter, byReader}
)

// join opens a client that takes the lock in this way.
func (w *way) join(z *zktest.Zoo, name string) *zktest.Member {
	return w.joinAs(z, name, property.Seat{})
}

func (w *way) joinAs(z *zktest.Zoo, name string, seat property.Seat) *zktest.Member {
	return w.of(w.locks.JoinAs(z, name, seat))
}

// at gives a client another lock.
func (w *way) at(z *zktest.Zoo, m *zktest.Member, path string) *zktest.Member {
	return w.of(w.locks.At(z, m, path))
}

func (w *way) of(m *zktest.Member) *zktest.Member {
	if w.reads {
		return m.Reader
	}
	return m
}

// other opens a client that excludes all others.
func (w *way) other(z *zktest.Zoo, name string) *zktest.Member { return w.locks.Join(z, name) }

// each runs a story for each way to take a lock.
func each(t *testing.T, tell func(t *testing.T, z *zktest.Zoo, w *way)) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			tell(t, zktest.New(t), w)
		})
	}
}

// eachLock runs a story for each kind of lock. An RWMutex is locked by writers.
func eachLock(t *testing.T, tell func(t *testing.T, z *zktest.Zoo, w *way)) {
	t.Parallel()
	for _, w := range []*way{byMutex, byCohort, byWriter} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			tell(t, zktest.New(t), w)
		})
	}
}

// session is the member's session.
func session(m *zktest.Member) *Session { return m.Session.(*Session) }

// queue returns the queue of a way.
func (w *way) queue() *queue {
	if w.locks.Name == rwmutexes.Name {
		return NewRWMutex(nil, "/lock").q
	}
	return NewMutex(nil, "/lock").q
}

// holds fails the test unless the hold depends on the first znode of the queue, and this znode is the only
// one of the client's present session.
func holds(t *testing.T, z *zktest.Zoo, w *way, turn *zktest.Turn) {
	t.Helper()
	turn.Acquired()
	owned, err := z.Sessions()
	require.NoError(t, err)
	mine := owned[turn.SessionID()]
	require.Len(t, mine, 1, "znodes of %s's session", turn.Name)
	number, k, inQueue := w.queue().number(pathpkg.Base(mine[0]))
	require.True(t, inQueue, mine[0])
	before := w.queue().predecessor(turn.Queue(), number, k)
	require.Empty(t, before, "%s holds the lock, and this one came before it", turn.Name)
}

// An outage begins when a frame is lost, and lasts until end is called: the client reconnects, but its
// handshake does not arrive. begun returns when the client is partitioned.
func outage(z *zktest.Zoo, m *zktest.Member, lost *wiretap.Trap) (begun, end func()) {
	hello := m.Tap.HoldRequest(wiretap.Connect, 1)
	return func() {
		zktest.AwaitChan(z, "the frame to be lost", lost.Sprung())
		zktest.AwaitChan(z, m.Name+" to connect again", hello.Sprung())
	}, hello.Let
}

// inTurn calls Lock, then inside, and Unlock.
func inTurn(m *zktest.Member, inside func()) func(context.Context) (zktest.Hold, error) {
	return func(ctx context.Context) (zktest.Hold, error) {
		held, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		inside()
		return held, held.Unlock()
	}
}

// lock is a call to Lock with a context of the test's own.
func lock(m *zktest.Member, ctx context.Context) *zktest.Turn {
	return m.StartIn(ctx)
}

func token(turn *zktest.Turn) int64 { return turn.Held().Token() }

// permit gives a directory an ACL with these permissions, for everybody.
func permit(t *testing.T, z *zktest.Zoo, dir string, permissions int32) {
	t.Helper()
	_, err := z.Observer().SetACL(dir, zk.WorldACL(permissions), -1)
	require.NoError(t, err)
}

// steadyTimeout is the timeout of a client whose hold must survive, also beside busy jobs: a machine that
// stalls for two seconds does not end the hold.
const steadyTimeout = 5 * zktest.MortalTimeout

// inThreeTries repeats a story up to three times, until nothing is wrong. On a busy machine a renewal can be late, so
// each timeout is twice as long as the one before. It returns what was wrong in the last try.
func inThreeTries(timeout time.Duration, story func(timeout time.Duration) (wrong error)) (wrong error) {
	const tries = 3
	for range tries {
		wrong = story(timeout)
		if wrong == nil {
			return nil
		}
		timeout *= 2
	}
	return wrong
}
