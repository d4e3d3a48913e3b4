package leased

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A locker is any kind of lock, used by a writer, and an RWMutex, used by a reader.
type locker interface {
	Lock(context.Context) (*Hold, error)
	TryLock(context.Context) (*Hold, error)
}

// queued is any kind of lock whose queue can be listed.
type queued interface {
	Queue(context.Context) ([]Participant, error)
}

// reading is an RWMutex whose Lock is RLock.
type reading struct{ *RWMutex }

func (r reading) Lock(ctx context.Context) (*Hold, error)    { return r.RLock(ctx) }
func (r reading) TryLock(ctx context.Context) (*Hold, error) { return r.TryRLock(ctx) }

// lock returns the member's lock without the stories' own context around the hold.
func (w *way) lock(m *zktest.Member) locker {
	switch w {
	case byMutex:
		return NewMutex(session(m), m.Path)
	case byCohort:
		return NewCohort(session(m), m.Path)
	case byWriter:
		return NewRWMutex(session(m), m.Path)
	default:
		return reading{NewRWMutex(session(m), m.Path)}
	}
}

// mustLock is Lock, which must succeed.
func mustLock(t *testing.T, l locker, ctx context.Context) *Hold {
	t.Helper()
	hold, err := l.Lock(ctx)
	require.NoError(t, err)
	return hold
}

// The goroutines that have the hold share it, in whatever order they unlock.
func TestAsManyUnlocksAsLocksAndTheLastOneDeletes(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		l := w.lock(a)
		mark := a.Tap.Mark()
		hold := mustLock(t, l, z.Ctx)
		derived, cancel := context.WithTimeout(hold.Context(z.Ctx), zktest.Patience)
		defer cancel()
		for _, ctx := range []context.Context{hold.Context(z.Ctx), derived, context.WithoutCancel(hold.Context(z.Ctx))} {
			require.Same(t, hold, mustLock(t, l, ctx), "the hold that Lock returns inside of it")
		}
		waiting := b.Start()
		const locks = 4
		for i := range locks {
			waiting.MustWait("%d of %d Unlocks", i, locks)
			require.NoError(t, hold.Context(z.Ctx).Err(), "the hold after %d of %d Unlocks", i, locks)
			require.Zero(t, a.Requests(mark)[wiretap.Delete], "deletes after %d of %d Unlocks", i, locks)
			require.NoError(t, hold.Unlock())
		}
		require.Equal(t, 1, a.Requests(mark)[wiretap.Delete], "deletes after the last Unlock")
		waiting.Release()

		require.ErrorIs(t, hold.Unlock(), ErrNotHeld, "an Unlock too many")
		for _, released := range []context.Context{hold.Context(z.Ctx), derived} {
			_, err := l.Lock(released)
			require.ErrorIs(t, err, context.Canceled, "Lock with a context that ended with the hold")
			require.ErrorIs(t, err, ErrNotHeld, "why it ended")
		}
		anew := mustLock(t, l, context.WithoutCancel(hold.Context(z.Ctx)))
		require.NotSame(t, hold, anew, "with the context of a hold that was released Lock queues up")
		require.NoError(t, anew.Unlock())
	})
}

// Two values for one path, as made by two functions of a service that call each other, are one lock.
func TestTwoValuesForOnePathAreOneLock(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		outer := mustLock(t, w.lock(a), z.Ctx)
		mark := a.Tap.Mark()
		inner, err := w.lock(a).TryLock(outer.Context(z.Ctx))
		require.NoError(t, err)
		require.Same(t, outer, inner)
		require.Empty(t, a.Asked(mark))
		require.NoError(t, outer.Unlock())
		require.NoError(t, outer.Unlock())
		require.Empty(t, a.Queue())
	})
	z := zktest.New(t)
	a := mutexes.Join(z, "A")
	outer := mustLock(t, NewCohort(session(a), a.Path), z.Ctx)
	inner, err := NewMutex(session(a), a.Path).TryLock(outer.Context(z.Ctx))
	require.NoError(t, err)
	require.Same(t, outer, inner, "a Mutex inside a Cohort's hold")
	_, err = NewRWMutex(session(a), a.Path).RLock(outer.Context(z.Ctx))
	require.NoError(t, err, "an RWMutex on the same path is another lock")
	require.NoError(t, outer.Unlock())
	require.NoError(t, outer.Unlock())
}

// A context that was made from the hold's can end before the hold does. Lock with it is no re-entry: it
// returns the same error as for any context that has ended, and no Unlock is due for it.
func TestAContextThatEndsBeforeItsHoldIsNoReentry(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		hold := mustLock(t, l, z.Ctx)
		ended, cancel := context.WithCancel(hold.Context(z.Ctx))
		cancel()
		_, err := l.Lock(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, hold.Context(z.Ctx).Err(), "the hold goes on")
		require.NoError(t, hold.Unlock())
		require.Empty(t, a.Queue(), "one Unlock was due")
	})
}

// A context of a hold has its parent's values, and ends with its parent. That ends neither the hold nor its
// other contexts.
func TestAContextOfAHoldEndsWithItsParent(t *testing.T) {
	type key struct{}
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		hold := mustLock(t, l, z.Ctx)
		parent, cancel := context.WithCancelCause(context.WithValue(z.Ctx, key{}, "a value"))
		ends, other := hold.Context(parent), hold.Context(z.Ctx)
		require.Equal(t, "a value", ends.Value(key{}))
		require.NoError(t, ends.Err())
		cancel(os.ErrProcessDone)
		require.ErrorIs(t, context.Cause(ends), os.ErrProcessDone)
		require.NoError(t, other.Err(), "a context with another parent")
		z.Await("the hold to drop the context that has ended", func() bool {
			hold.mu.Lock()
			defer hold.mu.Unlock()
			return len(hold.contexts) == 1
		})
		require.Same(t, hold, mustLock(t, l, context.WithoutCancel(ends)), "the hold goes on, and can be entered")
		require.NoError(t, hold.Unlock())
		require.NoError(t, hold.Unlock())
		require.ErrorIs(t, context.Cause(other), ErrNotHeld, "a context of a hold that was released")
		require.Empty(t, a.Queue())
	})
}

// heldInDummy returns a hold in a session without a server.
func heldInDummy(s *Session, path string) *Hold {
	s.mu.Lock()
	s.renew(time.Now().Add(time.Hour))
	l := s.leases.present
	l.renewing = true // there is no server that could answer
	s.mu.Unlock()
	h := newHold(NewMutex(s, path).q, place{node: path + "/lock-0", lease: l})
	h.begin()
	return h
}

type ownKey string

// A leader asks for a context for each of its writes, for example one with the span of the write: they cost the
// hold nothing, and each has the values of its own parent.
func TestContextsWhoseParentsEndTogetherAreOneForTheHold(t *testing.T) {
	h := heldInDummy(dummy(t, time.Hour), "/a")
	app, stop := context.WithCancelCause(context.WithValue(t.Context(), ownKey("app"), "app"))
	var contexts []context.Context
	for i := range 1000 {
		ctx := h.Context(context.WithValue(app, ownKey("span"), i))
		require.Equal(t, i, ctx.Value(ownKey("span")), "the parent's value")
		require.Equal(t, "app", ctx.Value(ownKey("app")), "the value of the parent's parent")
		require.Same(t, h, holdIn(ctx, h.q), "the hold that the context carries")
		contexts = append(contexts, ctx)
	}
	request, answer := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
	other := h.Context(request)
	require.Len(t, h.contexts, 2, "inner contexts: the app's and the request's")
	deadline, _ := request.Deadline()
	got, _ := other.Deadline()
	require.Equal(t, deadline, got)

	answer()
	require.ErrorIs(t, other.Err(), context.Canceled)
	require.Eventually(t, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.contexts) == 1 },
		zktest.Patience, time.Millisecond, "the request's context to be forgotten")
	child, cancel := context.WithTimeout(contexts[7], time.Hour)
	defer cancel()
	stopped := errors.New("the app stops")
	stop(stopped)
	for _, ctx := range []context.Context{contexts[0], contexts[999], child} {
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.Equal(t, stopped, context.Cause(ctx), "why the parent has ended")
	}
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	require.ErrorIs(t, h.Context(late).Err(), context.DeadlineExceeded)

	last := h.Context(t.Context())
	child, cancel = context.WithCancel(last)
	defer cancel()
	h.q.s.markClosed(byClose)
	for _, ctx := range []context.Context{last, child} {
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
	}
}

// ownContext is a context of a program's own type, whose methods may block.
type ownContext struct {
	context.Context
	slow           *atomic.Bool // its methods block from now on
	blocks, called chan struct{}
}

func (c ownContext) Value(key any) any {
	if c.slow.Load() {
		select {
		case c.called <- struct{}{}:
		default: // it was called before
		}
		<-c.blocks
	}
	return c.Context.Value(key)
}

// Neither the session nor another hold waits for a context whose methods block.
func TestAContextThatBlocksDelaysNoOtherHold(t *testing.T) {
	s := dummy(t, time.Hour)
	first, second := heldInDummy(s, "/a"), heldInDummy(s, "/b")
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := ownContext{parent, &atomic.Bool{}, make(chan struct{}), make(chan struct{}, 1)}
	late, soon := first.Context(slow), second.Context(t.Context())
	slow.slow.Store(true)
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endLease(errUnanswered)
	}()
	await := func(c <-chan struct{}, what string) {
		select {
		case <-c:
		case <-time.After(zktest.Patience):
			require.Fail(t, "waited for "+what)
		}
	}
	await(slow.called, "the end of the first hold's context")
	await(soon.Done(), "the end of the second hold's context")
	require.ErrorIs(t, context.Cause(soon), ErrLost)
	require.Equal(t, 2, int(s.Stats().Lost[ReasonLeaseOver]), "holds that the session has counted as lost")
	another := first.Context(t.Context())
	require.ErrorIs(t, context.Cause(another), ErrLost, "a context of the first hold")
	_, err := first.exit()
	require.ErrorIs(t, err, ErrLost)
	first.end(errReleased)
	require.ErrorIs(t, context.Cause(late), ErrLost, "a context of the first hold after its Unlock")
	close(slow.blocks)
	s.markClosed(byClose)
}

// The context that was given to Lock ends, as with the usual deferred cancel. The hold continues.
func TestLocksContextIsForTheWaitAlone(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		given, cancel := context.WithCancel(z.Ctx)
		hold := mustLock(t, l, given)
		work := hold.Context(z.Ctx)
		cancel()
		require.NoError(t, work.Err(), "the hold")
		require.Same(t, hold, mustLock(t, l, work), "re-entry")
		require.Len(t, a.Queue(), 1)
		require.NoError(t, hold.Unlock())
		require.NoError(t, hold.Unlock())
		require.Empty(t, a.Queue())
	})
}

// Work under two locks has a context of both holds. The release of one lock ends this context, but does not
// affect the other lock: it can still be locked again, and its Unlock waits for the server's answer.
func TestTheEndOfOneHoldIsNotTheEndOfAnother(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		one := mustLock(t, w.lock(w.at(z, a, a.Path+"-one")), z.Ctx)
		two := mustLock(t, l, z.Ctx)
		both := two.Context(one.Context(z.Ctx))
		require.NoError(t, one.Unlock())
		require.ErrorIs(t, context.Cause(both), ErrNotHeld)
		require.NoError(t, two.Context(z.Ctx).Err(), "the hold that goes on")
		require.Same(t, two, mustLock(t, l, context.WithoutCancel(both)), "re-entry")
		require.NoError(t, two.Unlock())
		late := a.Tap.HoldReply(wiretap.Delete, 1)
		unlock := z.Go(a.Client, func(context.Context) error { return two.Unlock() })
		zktest.AwaitChan(z, "the server to carry out A's delete", late.Sprung())
		require.False(t, unlock.Returned(), "Unlock has not waited for the answer")
		late.Let()
		require.NoError(t, unlock.Err())
	})
}

// The server is silent. Unlock does not know whether the lock is released, and waits. When the session's timeout
// has passed, Unlock returns an error which says that the release continues. When A reconnects, the znode is
// deleted while the session lives.
func TestUnlockGoesOnWhenTheTimeOutIsOver(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		believes := zktest.Handshake{Tell: 3 * zktest.MortalTimeout} // the server keeps the session for longer
		a := w.joinAs(z, "A", property.Seat{Through: believes.Through})
		l := w.lock(a)
		hold := mustLock(t, l, z.Ctx)
		work := hold.Context(z.Ctx)
		a.Tap.Silence()
		unlock := z.Go(a.Client, func(context.Context) error { return hold.Unlock() })
		z.Await("the hold to end", func() bool { return work.Err() != nil })
		require.ErrorIs(t, context.Cause(work), ErrNotHeld, "released, and not lost")
		require.False(t, unlock.Returned(), "nobody has answered, and Unlock has returned")
		require.Len(t, a.Queue(), 1, "A's znode, which it could not delete")
		goesOn(t, z, a, hold, unlock.Err())
	})
}

// There is no connection. Unlock returns at once, and the release continues in the background.
func TestUnlockWithoutAConnectionReturnsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const never = 10 * time.Minute // so that a wait for the timeout outlives the test's deadline
		a := w.joinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: never}.Through})
		hold := mustLock(t, w.lock(a), z.Ctx)
		a.Tap.Cut()
		z.Await("A to see it", func() bool { return !session(a).Stats().Connected })
		err := z.Go(a.Client, func(context.Context) error { return hold.Unlock() }).Err()
		require.ErrorContains(t, err, "there is no connection")
		goesOn(t, z, a, hold, err)
	})
}

// goesOn fails the test unless this error of Unlock says what is left, and the znode is deleted when A is connected.
func goesOn(t *testing.T, z *zktest.Zoo, a *zktest.Member, hold *Hold, err error) {
	t.Helper()
	require.ErrorIs(t, err, ErrNoAnswer)
	require.ErrorContains(t, err, hold.place.node+": ")
	require.ErrorContains(t, err, "the znode stays until the delete, which continues in the background")
	require.NotErrorIs(t, err, ErrLost)
	require.ErrorIs(t, hold.Unlock(), ErrNotHeld, "no second call is due")
	a.Tap.Restore()
	z.Await("A's znode to go", func() bool { return len(a.Queue()) == 0 })
	require.Equal(t, a.ID, a.SessionID(), "A's session: the release must not need its end")
}

// A's hold is lost, and its server is silent. Unlock waits for a moment, and not for the session's timeout, and the
// error says both: the loss, and that the znode stays. While it does, no other client acquires the lock.
func TestUnlockOfALostHoldGoesOnUntilTheZnodeIsGone(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const never = 10 * time.Minute // so that a wait for the timeout outlives the test's deadline
		a, b := w.joinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: never}.Through}), w.other(z, "B")
		hold := mustLock(t, w.lock(a), z.Ctx)
		next := b.Start()
		next.MustWait("A holds the lock")
		a.Tap.Cut()
		z.Await("A to see it", func() bool { return !session(a).Stats().Connected })
		hold.lose(errUnanswered) // as when the lease is over
		err := z.Go(a.Client, func(context.Context) error { return hold.Unlock() }).Err()
		requireReason(t, err, ReasonLeaseOver)
		require.ErrorContains(t, err, "the znode stays until the delete, which continues in the background")
		next.MustWait("A's znode still exists")
		a.Tap.Restore()
		next.Release()
		require.Equal(t, a.ID, a.SessionID(), "A's session")
	})
}

// After a loss Unlock waits for a tenth of the timeout while there is a connection, and for all of it otherwise.
func TestHowLongUnlockWaits(t *testing.T) {
	t.Parallel()
	s := dummy(t, 10*time.Second)
	hold := newHold(&queue{s: s, dir: "/lock", kinds: []kind{exclusive}}, place{})
	limit, err := hold.answerLimit(false)
	require.Zero(t, limit, "without a connection")
	require.ErrorIs(t, err, ErrNoAnswer)
	s.connection.wire = &wire{}
	limit, _ = hold.answerLimit(false)
	require.Equal(t, 10*time.Second, limit)
	limit, _ = hold.answerLimit(true)
	require.Equal(t, time.Second, limit, "after a loss")
}

// The session expires while the delete is under way. The server keeps the session for less than it has
// granted, so Unlock still waits when A reconnects.
func TestADeleteThatComesAfterTheSessionsEndIsErrLost(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.joinAs(z, "A", property.Seat{
			Timeout: zktest.MortalTimeout,
			Through: zktest.Handshake{Tell: zktest.SessionTimeout}.Through,
		})
		turn := a.Acquire()
		owner, _ := z.Owner(turn.Znode()) // the client may have another session by now
		begun, end := outage(z, a, a.Tap.LoseRequest(wiretap.Delete, 1))
		unlock := z.Go(a.Client, func(context.Context) error { return turn.Unlock() })
		begun()
		z.AwaitExpiry(&zktest.Client{Name: "A", ID: owner})
		end()
		require.ErrorIs(t, unlock.Err(), ErrLost, "the znode went with the session and not by the delete")
		requireReason(t, unlock.Err(), ReasonExpired)
	})
}

// requireReason fails the test unless the error says that a lock was lost for this reason.
func requireReason(t *testing.T, err error, want Reason) {
	t.Helper()
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, want, lost.Reason, "why it was lost: %v", err)
	require.ErrorIs(t, err, ErrLost)
}

// Each loss has its reason.
func TestWhyALockWasLost(t *testing.T) {
	for _, c := range []struct {
		reason  Reason
		says    string
		happens func(z *zktest.Zoo, a *zktest.Member)
	}{
		{ReasonLeaseOver, "the lease is over: no answered write has renewed it", func(z *zktest.Zoo, a *zktest.Member) {
			a.Tap.Silence()
		}},
		{ReasonExpired, "the servers have ended the session", func(z *zktest.Zoo, a *zktest.Member) {
			z.Expire(a.Client)
			a.Tap.Restore()
		}},
		{ReasonClosed, "the session was closed: Close was called", func(z *zktest.Zoo, a *zktest.Member) {
			a.Session.Close()
		}},
		{ReasonClosed, "the session was closed: its zk.Conn was closed", func(z *zktest.Zoo, a *zktest.Member) {
			a.Session.Conn().Close()
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
				seat := property.Seat{Timeout: zktest.MortalTimeout}
				if c.reason == ReasonExpired {
					seat.Timeout = 3 * zktest.SessionTimeout // so that A learns of it before its lease is over
				}
				a := w.joinAs(z, "A", seat)
				hold := mustLock(t, w.lock(a), z.Ctx)
				c.happens(z, a)
				zktest.AwaitChan(z, "A to be notified", hold.Context(z.Ctx).Done())
				cause := context.Cause(hold.Context(z.Ctx))
				requireReason(t, cause, c.reason)
				require.ErrorContains(t, cause, c.says)
				a.Tap.Restore()
				err := hold.Unlock()
				requireReason(t, err, c.reason)
				require.ErrorContains(t, err, c.says)
			})
		})
	}
}

// Each error of Unlock begins with "unlock" and the path: the lock's, or that of the znode that it had to
// delete.
func TestUnlocksErrorsNameIt(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		ofTheLock := "leased: unlock " + a.Path + ": "
		fails := func(hold *Hold, with error, says string) {
			t.Helper()
			err := hold.Unlock()
			require.ErrorIs(t, err, with)
			require.ErrorContains(t, err, says)
		}

		hold := mustLock(t, l, z.Ctx)
		mustLock(t, l, hold.Context(z.Ctx))
		ofTheZnode := "leased: unlock " + hold.place.node + ": "
		hold.lose(errUnanswered) // as when the lease is over
		_, err := l.Lock(context.WithoutCancel(hold.Context(z.Ctx)))
		require.ErrorIs(t, err, ErrLost, "inside a hold that was lost")
		fails(hold, ErrLost, ofTheLock)
		fails(hold, ErrLost, ofTheZnode) // the delete succeeds, but the hold was lost
		fails(hold, ErrNotHeld, ofTheLock)
		require.Empty(t, a.Queue())

		hold = mustLock(t, l, z.Ctx)
		require.NoError(t, z.Observer().Delete(hold.place.node, -1))
		err = hold.Unlock()
		requireReason(t, err, ReasonDeleted)
		require.ErrorContains(t, err, "leased: unlock "+hold.place.node+": ")

		hold = mustLock(t, l, z.Ctx)
		session(a).Close()
		requireReason(t, hold.Unlock(), ReasonClosed)
	})
}

// A hold is lost, and then the server refuses the delete of its znode. The hold has still ended because of
// the loss, and not because of the attempt to release it. Lock and the next Unlock return the loss.
func TestALostHoldStaysLostThoughItsUnlockWasRefused(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		hold := mustLock(t, l, z.Ctx)
		hold.lose(errUnanswered) // as when the lease is over
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		err := hold.Unlock()
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "the session lacks the permission", "what to do about the refusal")
		requireReason(t, err, ReasonLeaseOver)

		_, err = l.Lock(context.WithoutCancel(hold.Context(z.Ctx)))
		require.ErrorIs(t, err, ErrLost, "Lock inside the hold")
		permit(t, z, a.Path, zk.PermAll)
		require.ErrorIs(t, hold.Unlock(), ErrLost, "the Unlock that was refused, tried again")
		require.Empty(t, a.Queue())
	})
}

// The directory's ACL forbids the delete. The lock is held until the Unlock that was refused is called again.
func TestARefusedUnlockCanBeTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		l := w.lock(a)
		hold := mustLock(t, l, z.Ctx)
		mustLock(t, l, hold.Context(z.Ctx))
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		require.NoError(t, hold.Unlock(), "the Unlock that is not the last")
		for range 2 {
			require.ErrorIs(t, hold.Unlock(), zk.ErrNoAuth)
			require.Len(t, a.Queue(), 1, "the lock, which is still held")
		}
		require.ErrorIs(t, context.Cause(hold.Context(z.Ctx)), ErrNotHeld,
			"a caller of Unlock must not continue its work")
		permit(t, z, a.Path, zk.PermAll)
		require.NoError(t, hold.Unlock())
		require.ErrorIs(t, hold.Unlock(), ErrNotHeld, "once more")
		require.Empty(t, a.Queue())
	})
}

// Code that ignores Lock's error has a nil hold. The methods of a nil hold say so, and its context has ended.
func TestAHoldThatIsNone(t *testing.T) {
	for what, hold := range map[string]*Hold{"nil": nil, "the zero value": {}} {
		err := hold.Unlock()
		require.ErrorIs(t, err, ErrNotHeld, what)
		require.ErrorContains(t, err, "the hold is nil, as when Lock has returned an error", what)
		require.ErrorIs(t, context.Cause(hold.Context(t.Context())), ErrNotHeld, what)
		require.Zero(t, hold.Token(), what)
	}
}

// A lock that was not made by its function returns an error that says so.
func TestALockThatIsTheZeroValue(t *testing.T) {
	for made, l := range map[string]locker{
		"NewMutex": &Mutex{}, "NewRWMutex": &RWMutex{}, "NewCohort": &Cohort{},
	} {
		_, err := l.Lock(t.Context())
		require.ErrorContains(t, err, made)
	}
}

// A copy of a lock or a hold is a mistake that go vet reports. It also reports copies of the locks of steps 5
// and 6.
func TestVetWarnsOfACopy(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(".", "copied")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	const program = `package copied

import (
	"zklock/leased"
	"zklock/step05_reentrant"
	"zklock/step06_shared_lock"
)

func copies(
	m *leased.Mutex, rw *leased.RWMutex, c *leased.Cohort, h *leased.Hold, l *reentrant.Lock, s *sharedlock.RWLock,
) {
	mutex := *m
	rwmutex := *rw
	cohort := *c
	hold := *h
	ofStep5 := *l
	ofStep6 := *s
	_, _, _, _, _, _ = &mutex, &rwmutex, &cohort, &hold, &ofStep5, &ofStep6
}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copied.go"), []byte(program), 0o600))
	said, err := exec.CommandContext(t.Context(), "go", "vet", "-copylocks", "./"+dir).CombinedOutput()
	require.Error(t, err, "go vet has nothing to say")
	for _, copied := range []string{"mutex", "rwmutex", "cohort", "hold", "ofStep5", "ofStep6"} {
		require.Contains(t, string(said), "assignment copies lock value to "+copied+":")
	}
}
