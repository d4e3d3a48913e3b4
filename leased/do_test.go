package leased

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// do is the Do of the member's lock.
func (w *way) do(m *zktest.Member) func(context.Context, func(context.Context, *Hold) error) error {
	switch w {
	case byMutex:
		return NewMutex(session(m), m.Path).Do
	case byCohort:
		return NewCohort(session(m), m.Path).Do
	case byWriter:
		return NewRWMutex(session(m), m.Path).Do
	default:
		return NewRWMutex(session(m), m.Path).RDo
	}
}

// Do holds the lock while the work runs, and for as long as that. The work has the hold and its context.
func TestDoHoldsTheLockAroundTheWork(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		failed := errors.New("the work has failed")
		var work context.Context
		var waiting *zktest.Turn
		err := w.do(a)(z.Ctx, func(ctx context.Context, hold *Hold) error {
			work = ctx
			waiting = b.Start()
			waiting.MustWait("the work runs")
			require.Positive(t, hold.Token())
			require.Same(t, hold, mustLock(t, w.lock(a), ctx), "Lock with the context of the work")
			require.NoError(t, hold.Unlock(), "of the inner Lock")
			return w.do(a)(ctx, func(_ context.Context, inner *Hold) error {
				require.Same(t, hold, inner, "Do with the context of the work")
				return failed
			})
		})
		require.Equal(t, failed, err, "the error of the work, and nothing else")
		require.ErrorIs(t, context.Cause(work), ErrNotHeld, "the context of the work that has returned")
		waiting.Release()

		ended := make(chan error, 1)
		held := b.Acquire()
		ctx, cancel := context.WithCancel(z.Ctx)
		go func() {
			ended <- w.do(a)(ctx, func(context.Context, *Hold) error { panic("the work runs without the lock") })
		}()
		z.Await("A to wait behind B", func() bool { return len(a.Tap.Watched()) == 1 })
		cancel()
		err = zktest.AwaitChan(z, "Do to return", ended)
		require.ErrorIs(t, err, context.Canceled)
		held.Release()
		require.ErrorContains(t, w.do(a)(z.Ctx, nil), "Do needs a function")
	})
}

// Work that panics unlocks, and the panic continues.
func TestDoUnlocksWhenTheWorkPanics(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		var work context.Context
		require.PanicsWithValue(t, "a mistake", func() {
			_ = w.do(a)(z.Ctx, func(ctx context.Context, _ *Hold) error {
				work = ctx
				panic("a mistake")
			})
		})
		require.ErrorIs(t, context.Cause(work), ErrNotHeld)
		require.Empty(t, a.Queue())
	})
}

// The lock is lost during the work. Do reports the loss: once, if the work has returned it, and also if the work has
// returned nil. The znode's path is in the text.
func TestDoReportsALoss(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		for what, returned := range map[string]func(context.Context) error{
			"the loss": context.Cause,
			"nil":      func(context.Context) error { return nil },
		} {
			a := w.at(z, w.join(z, "A, whose work returns "+what), z.Root+"/lock")
			err := w.do(a)(z.Ctx, func(ctx context.Context, hold *Hold) error {
				z.EndSession(a.Client)
				zktest.AwaitChan(z, "the work to be notified", ctx.Done())
				return returned(ctx)
			})
			requireReason(t, err, ReasonExpired)
			require.ErrorContains(t, err, "leased: unlock "+z.Root+"/lock/", what)
		}
	})
}

// A server refuses the release. Do returns the refusal beside the error of the work, and the znode stays.
func TestDoReportsARefusedRelease(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		failed := errors.New("the work has failed")
		err := w.do(a)(z.Ctx, func(context.Context, *Hold) error {
			permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Len(t, a.Queue(), 1)
		permit(t, z, a.Path, zk.PermAll)
	})
}

// Do returns ErrNoAnswer in two cases that its error alone does not tell apart: the work was not called, because Lock
// got no answer, or it has returned nil, and Unlock got none.
func TestErrNoAnswerOfDoDoesNotSayWhetherTheWorkWasDone(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const never = 10 * time.Minute // so that no lease is over before the test's deadline
		a := w.joinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: never}.Through})
		disconnect := func() {
			a.Tap.Cut()
			z.Await("A to see it", func() bool { return !session(a).Stats().Connected })
		}
		calls := 0
		do := func(ctx context.Context) error {
			return w.do(a)(ctx, func(context.Context, *Hold) error {
				calls++
				disconnect()
				return nil
			})
		}
		err := z.Go(a.Client, do).Err()
		require.ErrorIs(t, err, ErrNoAnswer)
		require.NotErrorIs(t, err, ErrLost)
		require.Equal(t, 1, calls, "calls of the work, and Unlock has got no answer")

		ctx, cancel := context.WithCancel(z.Ctx)
		waiting := z.Go(a.Client, func(context.Context) error { return do(ctx) })
		z.Await("Do to wait", func() bool { return session(a).Stats().Waiting == 1 })
		cancel()
		err = waiting.Err()
		require.ErrorIs(t, err, ErrNoAnswer)
		require.NotErrorIs(t, err, ErrLost)
		require.Equal(t, 1, calls, "calls of the work, and Lock has got no answer")
		a.Tap.Restore()
	})
}

// Do costs as many requests as Lock and Unlock.
func TestDoCostsNoMore(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Acquire().Release() // makes the directory
		mark := a.Tap.Mark()
		require.NoError(t, w.do(a)(z.Ctx, func(context.Context, *Hold) error { return nil }))
		want := map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}
		require.Equal(t, want, a.Requests(mark))
	})
}
