package reentrant

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("paused holder", pausedHolder) // in cost_test.go
	zktest.Main(m)
}

var subject = lockcheck.OverSession("step 5", func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}, New, Token)

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, subject, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.SilentWait, lockcheck.WakesOne,
		lockcheck.ArrivalWakesNobody, lockcheck.NoWatchLeft, lockcheck.LostCreateReply, lockcheck.LostDeleteReply,
		lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced, lockcheck.LongHold)
	lockcheck.Fails(t, subject, lockcheck.Shared)
}

// TryLock and deadlines.

func TestTryLockAsksOnce(t *testing.T) {
	t.Parallel()
	try := func(ctx context.Context, p *party) (context.Context, error) { return p.lock.TryLock(ctx, 0) }
	for what, story := range map[string]func(t *testing.T, z *zktest.Zoo, a, b *party){
		"a free lock is taken": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held, err := try(z.Ctx, a)
			require.NoError(t, err)
			a.holds(held)
			a.release(held)
		},
		"held elsewhere": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := b.acquire()
			mark := a.Tap.Mark()
			attempt := a.call(func(ctx context.Context) (context.Context, error) { return try(ctx, a) })
			require.Equal(t, zktest.Returned, attempt.Waits(), "TryLock(0) waits behind B")
			require.ErrorIs(t, attempt.Err(), ErrLocked)
			z.Await("A's znode to leave the queue", func() bool { return len(a.queue()) == 1 })
			require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, a.requests(mark))
			require.Empty(t, a.Tap.Watched(), "watches left at the server")
			b.release(held)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, b := join(t, z, "A"), join(t, z, "B")
			b.release(b.acquire()) // makes the directory
			story(t, z, a, b)
			z.Await("the queue to be empty", func() bool { return len(a.queue()) == 0 })
		})
	}
}

func TestWaitingThatTakesTooLongLeavesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := b.acquire()
	for want, lock := range map[error]func(context.Context) (context.Context, error){
		ErrLocked: func(ctx context.Context) (context.Context, error) {
			return a.lock.TryLock(ctx, 30*time.Millisecond)
		},
		context.DeadlineExceeded: func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			defer cancel()
			return a.lock.Lock(ctx)
		},
	} {
		require.ErrorIs(t, a.call(lock).Err(), want)
		z.Await("A's znode to leave the queue", func() bool { return len(a.queue()) == 1 })
	}
	b.release(held)
	inTime, err := a.lock.TryLock(z.Ctx, zktest.Patience)
	require.NoError(t, err)
	require.NoError(t, inTime.Err(), "TryLock's wait is not for the work")
	a.release(inTime)
}

// Hundreds give up, each at another moment: while the create is under way, while it
// waits, just as it is let in.
func TestGivingUpAtAnyMomentLeavesNothing(t *testing.T) {
	t.Parallel()
	for what, lock := range map[string]func(*party) *party{
		"a Lock":   func(p *party) *party { return p },
		"a Cohort": cohort,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a := lock(join(t, z, "A"))
			a.release(a.acquire())
			var all sync.WaitGroup
			var held, given atomic.Int64
			for n := range 4 {
				all.Go(func() {
					for i := range 60 {
						ctx, cancel := context.WithTimeout(z.Ctx, time.Duration(60*n+i)*20*time.Microsecond)
						h, err := a.lock.Lock(ctx)
						if err == nil {
							held.Add(1)
							assert.NoError(t, a.lock.Unlock(h))
						} else {
							given.Add(1)
							assert.ErrorIs(t, err, context.DeadlineExceeded)
						}
						cancel()
					}
				})
			}
			all.Wait()
			t.Logf("%d were let in, %d gave up", held.Load(), given.Load())
			z.Await("the queue to be empty", func() bool { return len(a.queue()) == 0 })
			a.release(a.acquire())
		})
	}
}

func TestTheHoldEndsWithTheContextGivenToLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	ctx, cancel := context.WithCancel(z.Ctx)
	held, err := a.lock.Lock(ctx)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, context.Cause(held), context.Canceled)
	require.Len(t, a.queue(), 1, "the lock, which is held until Unlock")
	a.release(held)
	require.Empty(t, a.queue())
}

// Reentrancy.

func TestAsManyUnlocksAsLocksAndTheLastOneDeletes(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	mark := a.Tap.Mark()
	held := a.acquire()
	derived, cancel := context.WithTimeout(context.WithValue(held, t, "a context of the caller's"), zktest.Patience)
	defer cancel()
	holds := []context.Context{held}
	for _, ctx := range []context.Context{held, derived} {
		again, err := a.lock.Lock(ctx)
		require.NoError(t, err)
		holds = append(holds, again)
	}
	again, err := a.lock.TryLock(held, 0)
	require.NoError(t, err)
	holds = append(holds, again)

	waiting := b.start()
	b.waits(waiting, "A holds the lock")
	for i, held := range holds {
		require.Zero(t, a.requests(mark)[wiretap.Delete], "deletes after %d of %d Unlocks", i, len(holds))
		require.Equal(t, zktest.Silently, waiting.StillWaits(), "B, after %d of %d Unlocks by A", i, len(holds))
		a.release(held)
	}
	require.Equal(t, 1, a.requests(mark)[wiretap.Delete], "deletes after the last Unlock")
	b.release(waiting.in())
	require.ErrorIs(t, a.lock.Unlock(held), ErrNotHeld, "an Unlock too many")
	_, err = a.lock.Lock(held)
	require.ErrorIs(t, err, ErrNotHeld, "Lock with a hold that has been released: its context has ended")
	_, err = a.lock.Lock(derived)
	require.ErrorIs(t, err, ErrNotHeld, "Lock with a context made from it")
}

func TestHoldingOneLockNeverGrantsAnother(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	other := b.acquire()
	orders := New(a.s, z.Root+"/orders")
	held, err := orders.Lock(z.Ctx)
	require.NoError(t, err)

	_, err = a.lock.TryLock(held, 0)
	require.ErrorIs(t, err, ErrLocked, "B holds the lock, and A asks for it while it holds orders")
	require.ErrorIs(t, a.lock.Unlock(held), ErrNotHeld, "the hold of orders given to the Unlock of another lock")
	require.ErrorIs(t, a.lock.Unlock(other), ErrNotHeld, "B's hold given to A's Unlock")
	b.release(other)
	both, err := a.lock.Lock(held)
	require.NoError(t, err)
	require.Len(t, a.queue(), 1, "A's znode in the second lock's own queue")
	a.release(both)
	require.NoError(t, orders.Unlock(held))
}

func TestAContextHandedToAnotherGoroutineSharesTheHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	shared := a.call(func(context.Context) (context.Context, error) { return a.lock.Lock(held) }).in()
	a.release(held)
	require.Len(t, a.queue(), 1, "the other goroutine's part of the hold")
	require.NoError(t, shared.Err())
	a.release(shared)
	require.Empty(t, a.queue())
}

func TestLockWithALostHoldIsErrLost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	a.lose()
	zktest.AwaitChan(z, "the hold to be told", held.Done())
	_, err := a.lock.Lock(held)
	require.ErrorIs(t, err, ErrLost)
}

// The token.

func TestATokenIsThatOfTheLockWhoseLockReturnedIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	none, ok := Token(context.Background())
	require.Zero(t, none)
	require.False(t, ok)

	held := a.acquire()
	token, ok := Token(held)
	require.True(t, ok)
	require.Positive(t, token)
	inner := New(a.s, z.Root+"/inner")
	both, err := inner.Lock(held)
	require.NoError(t, err)
	innermost, _ := Token(both)
	require.Greater(t, innermost, token, "with two locks: the token of the one locked last")
	outer, _ := Token(held)
	require.Equal(t, token, outer)
	again, err := a.lock.Lock(both)
	require.NoError(t, err)
	outer, _ = Token(again)
	require.Equal(t, token, outer, "re-entry of the outer lock inside the inner one")
	a.release(again)
	require.NoError(t, inner.Unlock(both))
	a.release(held)
	held = a.acquire()
	later, _ := Token(held)
	require.Greater(t, later, token, "the next tenure's token")
	a.release(held)
}

// Beside the client library's own lock.

func TestStep5AndTheClientsLockExcludeOneAnother(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	type member struct {
		*zktest.Attempt
		name   string
		unlock func() error
	}
	var line []member
	for i := range 4 { // zk.Lock and step 5 in turn
		name := strconv.Itoa(i + 1)
		var m member
		if i%2 == 0 {
			c := z.Client("zk.Lock " + name)
			lock := lockcheck.ClientLock(c.Conn, z.Root+"/lock")
			m = member{z.Go(c, lock.Lock), c.Name, lock.Unlock}
		} else {
			p := join(t, z, "step 5 "+name)
			call := p.start()
			m = member{call.Attempt, p.Name, func() error { return p.lock.Unlock(call.held) }}
		}
		line = append(line, m)
		if i == 0 {
			m.Acquired()
		} else {
			require.Equal(t, zktest.Silently, m.Waits(), "%s arrived while %s held the lock", m.name, line[0].name)
		}
	}
	for i, m := range line {
		m.Acquired()
		for _, behind := range line[i+1:] {
			require.Equal(t, zktest.Silently, behind.StillWaits(), "%s, while %s holds the lock", behind.name, m.name)
		}
		require.NoError(t, m.unlock())
	}
}

// The reply to a create of zk.Lock is lost. It looks for its own znode among ours,
// and takes each name that begins with _c_ to have 32 characters behind that: with
// fewer it would panic.
func TestTheClientsLockFindsItsZnodeAmongOurs(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, c := join(t, z, "A"), z.Client("zk.Lock")
	held := a.acquire()
	lost := c.Tap.LoseReply(wiretap.Create, 1)
	theirs := lockcheck.ClientLock(c.Conn, a.path())
	attempt := z.Go(c, theirs.Lock)
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
	require.Equal(t, zktest.Silently, attempt.Waits(), "zk.Lock behind ours: %v", a.queue())
	require.Len(t, a.queue(), 2)
	a.release(held)
	attempt.Acquired()
	require.NoError(t, theirs.Unlock())
}

func TestItAsksForNoMoreThanTheClientsLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder := lockcheck.ClientLock(z.Client("the holder").Conn, z.Root+"/lock")
	require.NoError(t, errors.Join(holder.Lock(z.Ctx), holder.Unlock())) // makes the directory

	// spent counts what a hold costs, without and with somebody to wait for.
	spent := func(c *zktest.Client, lock func(context.Context) error, unlock func() error) (alone, waiting wiretap.Counts) {
		mark := c.Tap.Mark()
		z.Go(c, lock).Acquired()
		require.NoError(t, unlock())
		z.Barrier(c)
		alone = wiretap.Count(c.Tap.Since(mark))

		require.NoError(t, holder.Lock(z.Ctx))
		mark = c.Tap.Mark()
		attempt := z.Go(c, lock)
		require.Equal(t, zktest.Silently, attempt.Waits())
		require.NoError(t, holder.Unlock())
		attempt.Acquired()
		require.NoError(t, unlock())
		z.Barrier(c)
		return alone, wiretap.Count(c.Tap.Since(mark))
	}
	a, c := join(t, z, "A"), z.Client("zk.Lock")
	var held context.Context
	alone, waiting := spent(a.Client, func(ctx context.Context) (err error) {
		held, err = a.lock.Lock(ctx)
		return err
	}, func() error { return a.lock.Unlock(held) })
	theirs := lockcheck.ClientLock(c.Conn, z.Root+"/lock")
	theirAlone, theirWaiting := spent(c, theirs.Lock, theirs.Unlock)

	require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, alone.Requests)
	require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 2, wiretap.GetData: 1, wiretap.Delete: 1}, waiting.Requests)
	for _, c := range []struct {
		when         string
		ours, theirs wiretap.Counts
	}{{"alone", alone, theirAlone}, {"as a waiter", waiting, theirWaiting}} {
		require.LessOrEqual(t, c.ours.All(), c.theirs.All(), "requests %s", c.when)
		require.Less(t, c.ours.Sent, c.theirs.Sent, "bytes sent %s: the guid is shorter", c.when)
		require.Less(t, c.ours.Received, c.theirs.Received, "bytes received %s", c.when)
	}
}

// The server turns away what is asked later: here, a permission that is taken
// away while the znode waits.
func TestAnErrorWhileWaitingEndsTheWaitAndLeavesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := b.acquire()
	call := a.start()
	a.waits(call, "B holds the lock")
	a.permit(zk.PermAll &^ zk.PermRead)
	b.release(held)
	require.ErrorIs(t, call.Err(), zk.ErrNoAuth)
	a.permit(zk.PermAll)
	z.Await("A's znode to leave the queue", func() bool { return len(a.queue()) == 0 })
}

// What a loss does, and what it does not.

// cutOffBriefly brings A, whose lease runs out while it is cut off, and whose
// session lives on: back ends the outage.
func cutOffBriefly(t *testing.T, z *zktest.Zoo) (a *party, back func()) {
	gate := make(chan struct{})
	back = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(back)
	first := true
	a = joinOver(t, z, "A", zktest.SessionTimeout, func(c net.Conn) net.Conn {
		if !first {
			<-gate
		}
		first = false
		return told(time.Second)(c)
	})
	return a, back
}

func TestALossLetsNobodyInBeforeTheHolderUnlocks(t *testing.T) {
	t.Parallel()
	for what, lock := range map[string]func(*party) *party{
		"of another process": func(p *party) *party { return p },
		"of its own":         cohort,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, back := cutOffBriefly(t, z)
			a = lock(a)
			held := a.acquire()
			next := a
			if what == "of another process" {
				next = join(t, z, "B")
			}
			waiting := next.start()
			next.waitsHere(waiting)
			a.Tap.Cut()
			a.Tap.Restore()
			zktest.AwaitChan(z, "the hold to be told of its loss", held.Done())
			require.ErrorIs(t, context.Cause(held), ErrLost)
			back()
			z.Await("A to be back", func() bool { return a.State() == zk.StateHasSession })
			require.Equal(t, a.ID, a.SessionID(), "A's session, which lives on")
			require.NoError(t, a.s.Ask())
			require.NotEqual(t, zktest.Returned, next.still(waiting), "the next was let in while A, who was told, still works: %v", a.queue())
			require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
			next.release(waiting.in())
		})
	}
}

// waitsHere returns when the call waits, at ZooKeeper or in the process.
func (p *party) waitsHere(c *call) {
	if _, ok := p.lock.(*Cohort); ok {
		p.z.Await(p.Name+"'s next goroutine to wait in the process", func() bool { return p.line() == 1 })
		return
	}
	p.waits(c, "the lock is held")
}

// still tells how the call waits after all that has happened so far.
func (p *party) still(c *call) zktest.Wait {
	if _, ok := p.lock.(*Cohort); ok && p.line() == 1 {
		return zktest.Silently
	}
	return c.StillWaits()
}

func TestEachUnlockAfterALossSaysSo(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	again, err := a.lock.Lock(held)
	require.NoError(t, err)
	a.lose()
	require.ErrorIs(t, a.lock.Unlock(again), ErrLost, "the inner one")
	require.Len(t, a.queue(), 1, "A's znode: the outer one still works")
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost, "the outer one")
	require.Empty(t, a.queue())
	require.ErrorIs(t, a.lock.Unlock(held), ErrNotHeld, "one too many")
}

// lose ends the lease.
func (p *party) lose() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.lose(ErrLost)
}

func TestAReleasedHoldIsNoHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	a.release(held)
	_, err := a.lock.Lock(held)
	require.ErrorIs(t, err, context.Canceled, "its context has ended")
	mark := a.Tap.Mark()
	another, err := a.lock.Lock(context.WithoutCancel(held))
	require.NoError(t, err)
	require.Equal(t, 1, a.requests(mark)[wiretap.Create], "creates: it is no re-entry")
	a.release(another)
}

func TestAReleaseThatTheServerRefusesCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	for what, lock := range map[string]func(*party) *party{
		"a Lock":   func(p *party) *party { return p },
		"a Cohort": cohort,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, b := lock(join(t, z, "A")), join(t, z, "B")
			held := a.acquire()
			a.permit(zk.PermAll &^ zk.PermDelete)
			require.ErrorIs(t, a.lock.Unlock(held), zk.ErrNoAuth)
			require.Error(t, held.Err(), "work under the lock has been ended")
			require.ErrorIs(t, a.lock.Unlock(held), zk.ErrNoAuth, "once more")
			require.Len(t, a.queue(), 1)
			a.permit(zk.PermAll)
			a.release(held)
			require.ErrorIs(t, a.lock.Unlock(held), ErrNotHeld, "one too many")
			b.release(b.acquire())
			a.release(a.acquire())
		})
	}
}

// The delete's answer does not come, and the line does not break, for A asks for
// other things, too.
func TestUnlockWaitsForOneTimeout(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinMortal(t, z, "A")
	held := a.acquire()
	ctx, stop := context.WithCancel(z.Ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			_, _, _ = a.Exists("/")
		}
	})
	lost := a.Tap.SwallowReply(wiretap.Delete, 1)
	unlock := z.Go(a.Client, func(context.Context) error { return a.lock.Unlock(held) })
	zktest.AwaitChan(z, "the answer to be swallowed", lost.Sprung())
	begun := time.Now()
	require.ErrorIs(t, unlock.Err(), ErrLost, "without an answer")
	waited := time.Since(begun)
	stop()
	asking.Wait()
	require.Empty(t, a.queue())
	require.Equal(t, a.ID, a.SessionID(), "A's session")
	t.Logf("Unlock waited for %.1f session time-outs", waited.Seconds()/zktest.MortalTimeout.Seconds())
}
