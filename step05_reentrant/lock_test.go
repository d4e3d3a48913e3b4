package reentrant

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
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
		lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced)
	lockcheck.Fails(t, subject, lockcheck.Shared)
}

// The process's own line.

func TestGoroutinesAreServedInTheOrderTheyCameWithOneZnode(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	a.release(a.acquire())          // makes the directory
	for inTime := false; !inTime; { // on a busy machine the tenure may be over before all had their turn
		require.NoError(t, z.Ctx.Err(), "waited in vain for six goroutines to have their turns within %v", maxTenure)
		mark, begun := a.Tap.Mark(), time.Now()
		held := a.acquire()
		var line []*call
		for n := range 5 {
			line = append(line, a.queueUp(n+1))
		}
		for len(line) > 0 {
			znodes := len(a.queue())
			if inTime = time.Since(begun) < maxTenure; inTime {
				require.Equal(t, 1, znodes, "znodes of a process in which %d goroutines wait", len(line))
			}
			a.release(held)
			held = line[0].in()
			line = line[1:]
			for _, later := range line {
				require.False(t, later.Returned(), "a later goroutine was served beside, or before, an earlier one")
			}
		}
		inTime = time.Since(begun) < maxTenure
		a.release(held)
		if inTime {
			require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, a.requests(mark),
				"requests of 6 holds, handed on from one to the next")
		}
	}
}

func TestEachWaiterObeysItsOwnContext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	first, second, third := a.queueUp(1), a.queueUp(2), a.queueUp(3)
	require.ErrorIs(t, second.Cancel(), context.Canceled)
	a.release(held)
	held = first.in()
	require.False(t, third.Returned(), "the third was let in beside the first")
	a.release(held)
	a.release(third.in())
}

func TestTheLastWaiterToGiveUpTakesTheZnodeAlong(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := b.acquire()
	first := a.start()
	a.waits(first, "B holds the lock")
	second := a.queueUp(2)
	require.ErrorIs(t, first.Cancel(), context.Canceled)
	z.Barrier(a.Client)
	require.Len(t, a.queue(), 2, "znodes, while one of A's goroutines still waits")
	require.ErrorIs(t, second.Cancel(), context.Canceled)
	z.Await("A's znode to leave the queue", func() bool { return len(a.queue()) == 1 })
	b.release(held)
}

// More goroutines of A wait than a tenure is handed on to, and B waits behind
// A's znode.
func TestATenureIsHandedOnSixteenTimesAtMost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	var mu sync.Mutex
	order := ""
	visit := func(p *party) *call {
		return p.call(func(ctx context.Context) (context.Context, error) {
			held, err := p.lock.Lock(ctx)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			order += p.Name
			mu.Unlock()
			return held, p.lock.Unlock(held)
		})
	}
	held := a.acquire()
	var calls []*call
	for range 2 * maxHandOns {
		calls = append(calls, visit(a))
	}
	z.Await("A's goroutines to stand in line", func() bool {
		a.lock.mu.Lock()
		defer a.lock.mu.Unlock()
		return len(a.lock.line) == len(calls)
	})
	other := visit(b)
	b.waits(other, "A holds the lock")
	a.release(held)
	for _, c := range append(calls, other) {
		c.Acquired()
	}
	// Fewer than 16 on a machine so slow that the tenure's time was over first.
	require.LessOrEqual(t, strings.Index(order, "B"), maxHandOns, "hand-ons before B's turn: %s", order)
	require.Len(t, order, len(calls)+1)
}

func TestATenureIsHandedOnForATenthOfASecondAtMost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := a.acquire()
	begun := time.Now()
	next := a.queueUp(1)
	other := b.start()
	b.waits(other, "A holds the lock")
	z.Await("the tenure's time to be over", func() bool { return time.Since(begun) > maxTenure })
	a.release(held)
	z.Await("the next to be let in", func() bool { return other.Returned() || next.Returned() })
	require.False(t, next.Returned(), "A's tenure was over, B waited, and A's next goroutine was let in first")
	b.release(other.in())
	a.release(next.in())
}

func TestLossOfTheSessionEndsTheTenureAndTheWaitersQueueAnew(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinMortal(t, z, "A")
	first := a.acquire()
	next, waiter := a.queueUp(1), a.queueUp(2)
	a.release(first)
	held := next.in()
	again, err := a.lock.Lock(held)
	require.NoError(t, err)
	before, _ := Token(held)

	a.Crash()
	for _, lost := range []context.Context{held, again} {
		zktest.AwaitChan(z, "the hold to be told of its loss", lost.Done())
		require.ErrorIs(t, context.Cause(lost), ErrLost)
	}
	require.ErrorIs(t, context.Cause(first), ErrNotHeld, "the hold that was released before")
	require.False(t, waiter.Returned(), "a waiter was let in while A was cut off")
	z.AwaitExpiry(a.Client)
	a.Tap.Restore()

	requeued := waiter.in()
	require.NotEqual(t, a.ID, a.SessionID(), "A's session")
	a.holds(requeued)
	after, _ := Token(requeued)
	require.Greater(t, after, before, "the next tenure's token")
	require.NoError(t, a.lock.Unlock(again), "one of two entries")
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	a.release(requeued)
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
		"held in the process": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := a.acquire()
			mark := a.Tap.Mark()
			_, err := try(z.Ctx, a)
			require.ErrorIs(t, err, ErrLocked)
			require.Empty(t, a.requests(mark), "requests")
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
		"another goroutine waits": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := b.acquire()
			waiter := a.start()
			a.waits(waiter, "B holds the lock")
			mark := a.Tap.Mark()
			_, err := try(z.Ctx, a)
			require.ErrorIs(t, err, ErrLocked)
			require.Empty(t, a.requests(mark), "requests")
			b.release(held)
			a.release(waiter.in())
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
	require.ErrorIs(t, err, ErrNotHeld, "Lock with a hold that has been released")
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
	life, _ := a.s.now()
	life.lose(ErrLost)
	zktest.AwaitChan(z, "the hold to be told", held.Done())
	_, err := a.lock.Lock(held)
	require.ErrorIs(t, err, ErrLost)
}

// The token.

func TestATokenIsTheTenures(t *testing.T) {
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
	next := a.queueUp(1)
	a.release(held)
	held = next.in()
	handedOn, _ := Token(held)
	require.Equal(t, token, handedOn, "the token of a tenure that was handed on")

	inner := New(a.s, z.Root+"/inner")
	both, err := inner.Lock(held)
	require.NoError(t, err)
	innermost, _ := Token(both)
	require.Greater(t, innermost, token, "with two locks: the token of the one locked last")
	outer, _ := Token(held)
	require.Equal(t, token, outer)
	require.NoError(t, inner.Unlock(both))
	a.release(held)
	next = a.start()
	held = next.in()
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
		require.LessOrEqual(t, c.ours.Sent, c.theirs.Sent, "bytes sent %s", c.when)
		require.LessOrEqual(t, c.ours.Received, c.theirs.Received, "bytes received %s", c.when)
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
	_, err := z.Observer().SetACL(a.lock.dir, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
	require.NoError(t, err)
	b.release(held)
	require.ErrorIs(t, call.Err(), zk.ErrNoAuth)
	_, err = z.Observer().SetACL(a.lock.dir, zk.WorldACL(zk.PermAll), -1)
	require.NoError(t, err)
	z.Await("A's znode to leave the queue", func() bool { return len(a.queue()) == 0 })
}

func TestManyGoroutinesOfManyProcesses(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	const processes, goroutines, rounds = 3, 6, 4
	inside := make(chan string, 1) // the witness: a room for one
	var calls []*call
	for i := range processes {
		p := join(t, z, strconv.Itoa(i))
		for range goroutines {
			calls = append(calls, p.call(func(ctx context.Context) (context.Context, error) {
				for range rounds {
					held, err := p.lock.Lock(ctx)
					if err != nil {
						return nil, err
					}
					select {
					case inside <- p.Name:
						_, _, _ = p.Exists("/") // stay for a while
						<-inside
					default:
						t.Errorf("%s held the lock and was not alone", p.Name)
					}
					if err := p.lock.Unlock(held); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}))
		}
	}
	for _, c := range calls {
		c.Acquired()
	}
	require.Empty(t, z.Names(z.Root+"/lock"))
}
