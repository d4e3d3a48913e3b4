package reentrant

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// cohort brings a party whose lock is a Cohort.
func cohort(p *party) *party {
	p.lock = NewCohort(p.s, p.path())
	return p
}

// lineUp calls Lock and returns when the call is the nth in the process's line.
func (p *party) lineUp(n int) *call {
	p.t.Helper()
	c := p.start()
	p.z.Await(p.Name+"'s next goroutine to stand in the process's line", func() bool { return p.line() == n })
	return c
}

// line is how many goroutines wait in the process.
func (p *party) line() int { return int(p.lock.(*Cohort).waiting.Load()) }

func TestGoroutinesAreServedInTheOrderTheyCameWithOneZnode(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := cohort(join(t, z, "A"))
	a.release(a.acquire())          // makes the directory
	for inTime := false; !inTime; { // on a busy machine the tenure may be over before all had their turn
		require.NoError(t, z.Ctx.Err(), "waited in vain for six goroutines to have their turns within %v", maxTenure)
		mark, begun := a.Tap.Mark(), time.Now()
		held := a.acquire()
		var line []*call
		for n := range 5 {
			line = append(line, a.lineUp(n+1))
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
	a := cohort(join(t, z, "A"))
	held := a.acquire()
	first, second, third := a.lineUp(1), a.lineUp(2), a.lineUp(3)
	require.ErrorIs(t, second.Cancel(), context.Canceled)
	a.release(held)
	held = first.in()
	require.False(t, third.Returned(), "the third was let in beside the first")
	a.release(held)
	a.release(third.in())
}

func TestAWaiterThatGivesUpLeavesTheTurnToTheNext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := cohort(join(t, z, "A")), cohort(join(t, z, "B"))
	held := b.acquire()
	first := a.start()
	a.waits(first, "B holds the lock")
	second := a.lineUp(1)
	require.ErrorIs(t, first.Cancel(), context.Canceled)
	a.waits(second, "B holds the lock")
	z.Await("the first one's znode to leave the queue", func() bool { return len(a.queue()) == 2 })
	require.ErrorIs(t, second.Cancel(), context.Canceled)
	z.Await("the second one's znode to leave the queue", func() bool { return len(a.queue()) == 1 })
	b.release(held)
	a.release(a.acquire())
}

// More goroutines of A wait than a tenure is handed on to, and B waits behind
// A's znode.
func TestATenureIsHandedOnSixteenTimesAtMost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := cohort(join(t, z, "A")), cohort(join(t, z, "B"))
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
	z.Await("A's goroutines to stand in line", func() bool { return a.line() == len(calls) })
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
	a, b := cohort(join(t, z, "A")), cohort(join(t, z, "B"))
	held := a.acquire()
	begun := time.Now()
	next := a.lineUp(1)
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
	a := cohort(joinMortal(t, z, "A"))
	first := a.acquire()
	next, waiter := a.lineUp(1), a.lineUp(2)
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

	require.ErrorIs(t, a.lock.Unlock(again), ErrLost, "one of two entries")
	require.False(t, waiter.Returned(), "a waiter was let in beside a holder that had not unlocked yet")
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	requeued := waiter.in()
	require.NotEqual(t, a.ID, a.SessionID(), "A's session")
	after, _ := Token(requeued)
	require.Greater(t, after, before, "the next tenure's token")
	a.release(requeued)
}

func TestManyGoroutinesOfManyProcesses(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	const processes, goroutines, rounds = 3, 6, 4
	inside := make(chan string, 1) // the witness: a room for one
	var calls []*call
	for i := range processes {
		p := cohort(join(t, z, strconv.Itoa(i)))
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

func TestTryLockOfACohortDoesNotWaitInTheProcess(t *testing.T) {
	t.Parallel()
	for what, story := range map[string]func(t *testing.T, z *zktest.Zoo, a, b *party){
		"held in the process": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := a.acquire()
			mark := a.Tap.Mark()
			_, err := a.lock.TryLock(z.Ctx, 0)
			require.ErrorIs(t, err, ErrLocked)
			require.Empty(t, a.requests(mark), "requests")
			a.release(held)
		},
		"held elsewhere": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := b.acquire()
			_, err := a.lock.TryLock(z.Ctx, 0)
			require.ErrorIs(t, err, ErrLocked)
			b.release(held)
			a.release(a.acquire())
		},
		"another goroutine waits": func(t *testing.T, z *zktest.Zoo, a, b *party) {
			held := b.acquire()
			waiter := a.start()
			a.waits(waiter, "B holds the lock")
			mark := a.Tap.Mark()
			_, err := a.lock.TryLock(z.Ctx, 0)
			require.ErrorIs(t, err, ErrLocked)
			require.Empty(t, a.requests(mark), "requests")
			b.release(held)
			a.release(waiter.in())
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, b := cohort(join(t, z, "A")), join(t, z, "B")
			b.release(b.acquire()) // makes the directory
			story(t, z, a, b)
			z.Await("the queue to be empty", func() bool { return len(a.queue()) == 0 })
		})
	}
}

// A second goroutine joins while the create of a TryLock that waits for nobody is
// under way. B holds the lock: TryLock must come back.
func TestTryLockOfACohortComesBackThoughAnotherJoins(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := cohort(join(t, z, "A")), join(t, z, "B")
	held := b.acquire()
	create := a.Tap.HoldReply(wiretap.Create, 1)
	try := a.call(func(context.Context) (context.Context, error) { return a.lock.TryLock(context.Background(), 0) })
	zktest.AwaitChan(z, "the create to be under way", create.Sprung())
	other := a.lineUp(1)
	create.Let()
	require.ErrorIs(t, try.Err(), ErrLocked)
	a.waits(other, "B holds the lock")
	b.release(held)
	a.release(other.in())
}

// Two goroutines of A wait in the process, and each asks ZooKeeper in its turn: an
// error is for the one whose question it answers.
func TestEachWaiterGetsItsOwnError(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := cohort(join(t, z, "A")), join(t, z, "B")
	held := b.acquire()
	first := a.start()
	a.waits(first, "B holds the lock")
	second := a.lineUp(1)
	a.permit(zk.PermAll &^ zk.PermRead)
	turn := a.Tap.HoldRequest(wiretap.Create, 1) // the second one's
	b.release(held)
	require.ErrorIs(t, first.Err(), zk.ErrNoAuth)
	zktest.AwaitChan(z, "the second to have its turn", turn.Sprung())
	a.permit(zk.PermAll)
	turn.Let()
	a.release(second.in())
}

// A tenure is handed on to somebody who gives up at that moment, and the server
// refuses to end it. The next one must not wait behind the process's own znode.
func TestATenureThatCannotBeEndedIsNotForgotten(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := cohort(join(t, z, "A"))
	c := a.lock.(*Cohort)
	h, err := exit(a.acquire(), c) // what Unlock does before it hands on
	require.NoError(t, err)
	h.end()
	<-c.turn
	a.permit(zk.PermAll &^ zk.PermDelete)
	c.sweep()
	_, err = c.TryLock(z.Ctx, zktest.Patience)
	require.ErrorIs(t, err, zk.ErrNoAuth, "the old znode is still there")
	a.permit(zk.PermAll)
	a.release(a.acquire())
	require.Empty(t, a.queue())
}
