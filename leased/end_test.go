package leased

import (
	"context"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// service does what run in quickstart does, until it receives SIGTERM.
func service(servers, args []string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	session, err := Open(ctx, servers, zktest.Patience)
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	defer session.Close()
	hold, err := NewMutex(session, args[0]).Lock(ctx)
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	zktest.Say("holds")
	held := hold.Context(ctx)
	<-held.Done()
	zktest.Say("%v", context.Cause(held))
	_ = hold.Unlock()
}

// A process that waits for the lock, and one that holds it, receive SIGTERM. The first leaves the queue, and
// the second releases the lock for the next client. No client waits until a session expires: that would take
// longer than the test.
func TestSIGTERMGivesTheLockBack(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	next := mutexes.Join(z, "the next")
	holder := z.Process("service", next.Path)
	require.Equal(t, "holds", holder.Line())
	waiter := z.Process("service", next.Path)
	z.Await("the second process to queue", func() bool { return len(next.Queue()) == 2 })
	turn := next.Start()
	turn.MustWait("two stand before it")

	waiter.Terminate()
	require.Contains(t, waiter.Line(), "leased: lock "+next.Path+": "+context.Canceled.Error())
	z.Await("its znode to go", func() bool { return len(next.Queue()) == 2 })
	require.False(t, turn.Returned(), "the first process holds the lock")

	holder.Terminate()
	require.NotContains(t, holder.Line(), ErrLost.Error(), "why its work has to stop")
	turn.Release()
	require.Empty(t, next.Queue())
}

// No server answers, and the session is closed. Close returns, and each Lock that waits returns an error that
// says that the session is closed.
func TestCloseWithoutAServer(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		for what, fails := range map[string]func(a *zktest.Member){
			"cut off": func(a *zktest.Member) { a.Tap.Cut() },
			"silent":  func(a *zktest.Member) { a.Tap.Silence() },
		} {
			a, b := w.joinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout}), w.other(z, "B")
			held := b.Acquire()
			waiting := []*zktest.Turn{a.Start(), a.Start()}
			waiting[0].Queued()
			fails(a)
			closed := make(chan struct{})
			go func() {
				a.Session.Close()
				close(closed)
			}()
			zktest.AwaitChan(z, "Close to return, and A is "+what, closed)
			for _, call := range waiting {
				require.ErrorContains(t, call.Err(), "the session is closed", "A is %s", what)
			}
			z.Await("A's znodes to go with its session", func() bool { return len(a.Queue()) == 1 })
			held.Release()
		}
	})
}
