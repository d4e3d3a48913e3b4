package property

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// HoldErrors are the errors of a lock with holds.
type HoldErrors struct {
	Lost     error // the hold was lost
	NoAnswer error // Unlock was not answered in time
}

// Faults tests what the locks of steps 5 and 6 do when a fault happens at an awkward moment. Like those of
// BadInput, these are plain tests: each guards a line of code that no property covers.
func Faults(t *testing.T, subject Subject, errs HoldErrors) {
	for name, test := range map[string]func(*testing.T, Subject, HoldErrors){
		"a connection that is closed by hand":                    closedByHand,
		"a znode of the session before is no place for a waiter": znodeOfTheSessionBefore,
		"a hold that is over is no re-entry":                     holdIsOver,
		"Unlock is not answered":                                 unlockUnanswered,
		"Unlock while the server is down":                        unlockServerDown,
		"the session ends before Unlock is answered":             unlockSessionEnded,
		"Unlock is refused":                                      unlockRefused,
	} {
		t.Run(strings.ReplaceAll(subject.Name+": "+name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			test(t, subject, errs)
		})
	}
}

// Somebody closes the connection, but not the Session. The holder is notified, and the waiter does
// not wait forever.
func closedByHand(t *testing.T, subject Subject, errs HoldErrors) {
	z := zktest.New(t)
	a, b := subject.Join(z, "A"), subject.Join(z, "B")
	work := a.Acquire().Context()
	waiting := b.Start()
	waiting.MustWait("A holds the lock")
	b.Session.Conn().Close()
	require.ErrorIs(t, waiting.Err(), zk.ErrConnectionClosed, "B's Lock")
	a.Session.Conn().Close()
	zktest.AwaitChan(z, "A to be notified", work.Done())
	require.ErrorIs(t, context.Cause(work), errs.Lost)
}

// A waits, and gets a new session from a server that does not know yet
// that the old one has ended, and still lists A's old znode. That znode
// becomes the first in the queue. A must not take it for its own place.
func znodeOfTheSessionBefore(t *testing.T, subject Subject, _ HoldErrors) {
	z := zktest.New(t)
	lines := 0
	a := subject.JoinAs(z, "A", Seat{Through: zktest.Over(func(c net.Conn) net.Conn {
		lines++
		return zktest.Handshake{Expired: lines == 2}.Conn(c) // A learns of an expiry, but the server keeps the session
	})})
	held := subject.Join(z, "the holder").Acquire()
	waiting := a.Start()
	waiting.MustWait("somebody holds the lock")
	old := a.Znode()
	a.Tap.HangUp()
	z.Await("A to have a new session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
	held.Release()
	waiting.MustWait("its old znode is the first, and does not count")
	require.NoError(t, z.Observer().Delete(old, -1)) // as the server does when it ends the session
	waiting.Acquired()
	owner, _ := z.Owner(a.Znode())
	require.Equal(t, a.SessionID(), owner, "the session of the znode by which A holds the lock")
	waiting.Release()
}

// unlock is Unlock with a limit: it must return some time after the session timeout, which is MortalTimeout here.
func unlock(turn *zktest.Turn) error {
	result, tooLate := make(chan error, 1), time.After(30*zktest.MortalTimeout)
	go func() { result <- turn.Unlock() }()
	select {
	case err := <-result:
		return err
	case <-tooLate:
		return errors.New("Unlock has not returned, long after the session timeout")
	}
}

// The server stops before A calls Unlock. Unlock waits for the session timeout and no longer. When the server
// continues, the znode is deleted in the background, or with A's session. Then the next client gets the lock
// without another call to Unlock.
func unlockServerDown(t *testing.T, subject Subject, errs HoldErrors) {
	own, err := zkserver.StartEnsemble(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, own.Stop()) })
	z, server := zktest.NewOn(t, own.Server), own.Members[0]
	a, b := subject.JoinMortal(z, "A"), subject.Join(z, "B")
	turn := a.Acquire()
	mark := a.Tap.Mark()
	require.NoError(t, server.Pause())
	defer func() { assert.NoError(t, server.Resume()) }()
	called := time.Now()
	err = unlock(turn)
	require.ErrorIs(t, err, errs.NoAnswer, "Unlock, while the server is down")
	require.ErrorContains(t, err, "in the background")
	require.GreaterOrEqual(t, time.Since(called), zktest.MortalTimeout, "Unlock gave up early")
	require.Contains(t, a.Asked(mark), "delete", "A's requests")
	require.ErrorIs(t, turn.Unlock(), subject.NotHeld, "a second Unlock")
	require.NoError(t, server.Resume())
	b.Acquire().Release()
}

// The server carries out A's delete, and A's session ends before the reply arrives. A held the lock until then. But
// a client that was paused until its session had ended sees the same. So Unlock returns Lost.
func unlockSessionEnded(t *testing.T, subject Subject, errs HoldErrors) {
	z := zktest.New(t)
	a := subject.Join(z, "A")
	turn := a.Acquire()
	result := make(chan error, 1)
	slow := a.Tap.HoldReply(wiretap.Delete, 1)
	go func() { result <- turn.Unlock() }()
	zktest.AwaitChan(z, "A's delete to be carried out", slow.Sprung())
	require.Empty(t, a.Queue(), "the queue: A has released the lock")
	a.Tap.Cut()
	z.EndSession(a.Client)
	a.Tap.Restore()
	require.ErrorIs(t, zktest.AwaitChan(z, "A's Unlock to return", result), errs.Lost)
	require.ErrorIs(t, turn.Unlock(), subject.NotHeld, "a second Unlock")
}

// A hold that is over, released or lost, cannot be entered again, not even with a context that does not end.
func holdIsOver(t *testing.T, subject Subject, errs HoldErrors) {
	z := zktest.New(t)
	a := subject.Join(z, "A")
	turn := a.Acquire()
	turn.Release()
	_, err := a.Lock(context.WithoutCancel(turn.Context()))
	require.ErrorIs(t, err, subject.NotHeld, "Lock with the context of a hold that was released")

	turn = a.Acquire()
	a.Tap.HangUp()
	zktest.AwaitChan(z, "A to be notified", turn.Context().Done())
	_, err = a.Lock(context.WithoutCancel(turn.Context()))
	require.ErrorIs(t, err, errs.Lost, "Lock with the context of a hold that was lost")
	require.ErrorIs(t, turn.Unlock(), errs.Lost)
	require.ErrorIs(t, turn.Unlock(), subject.NotHeld, "an Unlock too many")
}

// A's delete is not answered. Unlock waits for the session timeout and no longer. The delete is
// retried in the background, and the znode is deleted once the connection works again.
func unlockUnanswered(t *testing.T, subject Subject, errs HoldErrors) {
	z := zktest.New(t)
	a := subject.JoinMortal(z, "A")
	turn := a.Acquire()
	slow := a.Tap.HoldReply(wiretap.Delete, 1)
	defer slow.Let()
	err := unlock(turn)
	require.ErrorIs(t, err, errs.NoAnswer, "Unlock, whose delete is not answered")
	require.ErrorContains(t, err, "in the background")
	require.ErrorIs(t, turn.Unlock(), subject.NotHeld, "a second Unlock")
	slow.Let()
	z.Await("the znode to be deleted", func() bool { return len(a.Queue()) == 0 })
}

// The server refuses the delete. Unlock returns that error, and can be called again until it succeeds.
func unlockRefused(t *testing.T, subject Subject, errs HoldErrors) {
	z := zktest.New(t)
	a := subject.Join(z, "A")
	turn := a.Acquire()
	permit := func(permissions int32) {
		_, err := z.Observer().SetACL(a.Path, zk.WorldACL(permissions), -1)
		require.NoError(t, err)
	}
	permit(zk.PermAll &^ zk.PermDelete)
	require.ErrorIs(t, turn.Unlock(), zk.ErrNoAuth)
	require.ErrorIs(t, turn.Unlock(), zk.ErrNoAuth, "once more")
	permit(zk.PermAll)
	require.NoError(t, turn.Unlock(), "Unlock, called again once it is permitted")
	require.Empty(t, a.Queue())
	require.ErrorIs(t, turn.Unlock(), subject.NotHeld, "one more")
}
