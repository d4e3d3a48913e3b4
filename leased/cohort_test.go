package leased

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A process is a client whose goroutines share a Cohort.
type process struct {
	*zktest.Member
	*zktest.Zoo
	cohort *Cohort
}

func joinProcess(z *zktest.Zoo, name string, options ...Option) *process {
	p := &process{Zoo: z}
	w := &way{locks: property.OverHolds("a Cohort", open, func(s *Session, path string) *Cohort {
		p.cohort = NewCohort(s, path)
		return p.cohort
	})}
	p.Member = w.with(options...).join(z, name)
	return p
}

// lineUp calls Lock, and returns when the call is the nth in the process's line. Only the Cohort knows that,
// because the call sends no request.
func (p *process) lineUp(n int) *zktest.Turn {
	turn := p.Start()
	p.Await(p.Name+"'s next goroutine to stand in the process's line", func() bool { return p.cohort.inLine() == n })
	return turn
}

// inLine returns how many goroutines wait in the process's line.
func (c *Cohort) inLine() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.line)
}

func TestGoroutinesAreServedInTheOrderTheyCameWithOneZnode(t *testing.T) {
	t.Parallel()
	a := joinProcess(zktest.New(t), "A")
	a.Acquire().Release()           // makes the directory
	for inTime := false; !inTime; { // on a busy machine the process hold may end before all of them have had their turn
		require.NoError(t, a.Ctx.Err(), "timed out waiting for six goroutines to have their turns within %v", maxProcessHold)
		mark, begun := a.Tap.Mark(), time.Now()
		line := []*zktest.Turn{a.Acquire()}
		for n := range 5 {
			line = append(line, a.lineUp(n+1))
		}
		for i, turn := range line {
			turn.Acquired()
			for _, later := range line[i+1:] {
				require.False(t, later.Returned(), "a later goroutine was served beside, or before, an earlier one")
			}
			inTime = time.Since(begun) < maxProcessHold
			turn.Release()
		}
		if inTime {
			require.Equal(
				t,
				map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1},
				a.Requests(mark),
				"requests of 6 holds, handed on from one to the next",
			)
		}
	}
}

// Of three goroutines, the second one gives up while it waits in the process, and then the first one gives up
// while it waits at ZooKeeper.
func TestAWaiterThatGivesUpLeavesTheTurnToTheNext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := joinProcess(z, "A"), mutexes.Join(z, "B")
	held := b.Acquire()
	first := a.Start()
	first.MustWait("B holds the lock")
	second, third := a.lineUp(1), a.lineUp(2)
	require.ErrorIs(t, second.Cancel(), context.Canceled)
	require.ErrorIs(t, first.Cancel(), context.Canceled)
	third.MustWait("B holds the lock")
	z.Await("the first one's znode to leave the queue", func() bool { return len(a.Queue()) == 2 })
	held.Release()
	third.Release()
}

// More goroutines of A wait than there may be hand-overs in one process hold, and B waits behind A's znode.
func TestAProcessHoldIsHandedOnSixteenTimesAtMost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := joinProcess(z, "A"), joinProcess(z, "B")
	var mu sync.Mutex // the race detector does not know of the lock
	order := ""
	visit := func(p *process) *zktest.Turn {
		return p.Call(inTurn(p.Member, func() {
			mu.Lock()
			defer mu.Unlock()
			order += p.Name
		}))
	}
	held := a.Acquire()
	var turns []*zktest.Turn
	for range 2 * maxHandOns {
		turns = append(turns, visit(a))
	}
	z.Await("A's goroutines to stand in line", func() bool { return a.cohort.inLine() == len(turns) })
	for range 3 {
		turns = append(turns, visit(b))
	}
	z.Await("B to stand in the queue", func() bool { return len(a.Queue()) == 2 })
	held.Release()
	for _, turn := range turns {
		turn.Acquired()
	}
	// There are fewer than 16 if the machine is so slow that the time of the process hold ends first.
	require.LessOrEqual(t, strings.Index(order, "B"), 16, "hand-ons before B's turn: %s", order)
	require.Len(t, order, len(turns))
}

func TestAProcessHoldIsHandedOnForATenthOfASecondAtMost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := joinProcess(z, "A"), mutexes.Join(z, "B")
	held, begun := a.Acquire(), time.Now()
	next := a.lineUp(1)
	other := b.Start()
	other.MustWait("A holds the lock")
	z.Await("the process hold's time to be over", func() bool { return time.Since(begun) > maxProcessHold })
	held.Release()
	z.Await("the next to be let in", func() bool { return other.Returned() || next.Returned() })
	require.False(t, next.Returned(), "A's process hold was over, B waited, and A's next goroutine was let in first")
	other.Release()
	next.Release()
}

// A second goroutine joins while the create of a TryLock is under way. B holds the lock, so TryLock must
// return: it does not wait for other clients.
func TestTryLockOfACohortComesBackThoughAnotherJoins(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := joinProcess(z, "A"), mutexes.Join(z, "B")
	b.Acquire().Release() // makes the directory
	create := a.Tap.HoldRequest(wiretap.Create, 1)
	once := a.Call(a.TryLock)
	zktest.AwaitChan(z, "the create to be under way", create.Sprung())
	held := b.Acquire()
	other := a.lineUp(1)
	require.ErrorContains(t, a.Call(a.TryLock).Err(), "another goroutine of this process, whose label is ")
	create.Let()
	require.ErrorIs(t, once.Err(), ErrLocked)
	other.MustWait("B holds the lock")
	held.Release()
	other.Release()
}

// Two goroutines of A wait in the process, and each makes its own requests to ZooKeeper in its turn. An error
// goes only to the goroutine whose request it answers.
func TestEachWaiterGetsItsOwnError(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := joinProcess(z, "A"), mutexes.Join(z, "B")
	held := b.Acquire()
	first := a.Start()
	first.MustWait("B holds the lock")
	second := a.lineUp(1)
	permit(t, z, a.Path, zk.PermAll&^zk.PermRead)
	turn := a.Tap.HoldRequest(wiretap.Create, 1) // the second one's
	held.Release()
	require.ErrorIs(t, first.Err(), zk.ErrNoAuth)
	zktest.AwaitChan(z, "the second to have its turn", turn.Sprung())
	permit(t, z, a.Path, zk.PermAll)
	turn.Let()
	second.Release()
}

// takeFrom does what Unlock does before it hands the process hold on.
func takeFrom(t *testing.T, c *Cohort, h *Hold) {
	t.Helper()
	isLast, err := h.exit()
	require.NoError(t, err)
	require.True(t, isLast)
	h.end(errReleased)
	h.stopUsing()
	require.True(t, c.takeTurnFrom(h), "whether the holder has the turn")
}

// A goroutine gives up just when the process hold is handed on to it, and then the server refuses the delete
// that would end the process hold. The next goroutine must not wait behind the process's own znode.
func TestAProcessHoldThatCannotBeEndedIsNotForgotten(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	h := &heard{}
	a := joinProcess(z, "A", h.logger())
	first, err := a.cohort.Lock(z.Ctx)
	require.NoError(t, err)
	takeFrom(t, a.cohort, first) // the test cannot time this moment
	permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
	node := a.Znode()
	a.cohort.passTurn()
	z.Await("the refusal in the log", func() bool {
		return h.has("level=ERROR", "has refused to delete a znode that belongs to no hold", node)
	})
	next := a.Acquire()
	require.Equal(t, node, a.Znode(), "the znode with which the process holds the lock")
	require.ErrorIs(t, next.Unlock(), zk.ErrNoAuth)
	require.Len(t, a.Queue(), 1)
	permit(t, z, a.Path, zk.PermAll)
	require.NoError(t, next.Unlock(), "the release that was refused, tried again")
	require.Empty(t, a.Queue())
}

// The turn is handed on with a process hold whose lease is over. The next goroutine must not wait behind its znode. If
// a server refuses to delete that, the goroutine after it gets the turn.
func TestAProcessHoldWithoutALeaseIsEndedFirst(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	first, err := a.cohort.Lock(z.Ctx)
	require.NoError(t, err)
	takeFrom(t, a.cohort, first)
	a.cohort.processHold.lease = &lease{}
	a.cohort.giveTurn()
	permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
	_, err = a.cohort.Lock(z.Ctx)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	permit(t, z, a.Path, zk.PermAll)
	a.Acquire().Release()
	require.Empty(t, a.Queue())
}

// The turn was given to a goroutine that has given up. The next one gets the lock with it, without another znode.
func TestAPassedTurnKeepsTheProcessHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	first, err := a.cohort.Lock(z.Ctx)
	require.NoError(t, err)
	next := a.lineUp(1)
	takeFrom(t, a.cohort, first)
	a.cohort.processHold.since = time.Now().Add(time.Hour) // however slow the machine is
	mark := a.Tap.Mark()
	a.cohort.passTurn()
	next.Release()
	require.Zero(t, a.Requests(mark)[wiretap.Create], "creates")
}

// A goroutine has got the turn, and its create is not answered yet: it waits for no other goroutine any more.
func TestAGoroutineWithTheTurnWaitsForTheServers(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	first, err := a.cohort.Lock(z.Ctx)
	require.NoError(t, err)
	next := a.lineUp(1)
	takeFrom(t, a.cohort, first)
	require.NoError(t, a.cohort.endProcessHold(a.cohort.q.leave))
	asks := a.Tap.HoldRequest(wiretap.Create, 1)
	behind := func() *LockedError { return session(a.Member).Locks()[0].Behind }
	require.True(t, behind().SameProcess)
	a.cohort.giveTurn()
	zktest.AwaitChan(z, "the create of the next", asks.Sprung())
	require.Nil(t, behind())
	asks.Let()
	next.Release()
}

// Several goroutines wait in the process, and all of them give up just when the holder unlocks. No other
// goroutine of the process waits after them. One of them may have been given the process hold at that moment.
// Then it must end the process hold, or its znode blocks all other processes.
func TestAProcessHoldGivenToWhoGivesUpComesToItsEnd(t *testing.T) {
	t.Parallel()
	const waiters = 8
	z := zktest.New(t)
	z.Untapped = true
	a := joinProcess(z, "A")
	c := a.cohort
	for what, round := range map[string]struct {
		times  int
		unlock func(hold *Hold, cancel func())
	}{
		"at the same time": {60, func(hold *Hold, cancel func()) {
			go cancel()
			require.NoError(t, hold.Unlock())
		}},
		"just before the turn is given": {20, func(hold *Hold, cancel func()) {
			takeFrom(t, c, hold)
			c.mu.Lock()
			cancel()
			for range 100 { // so that the waiters see it, and begin to leave the line
				runtime.Gosched()
			}
			c.callFirst() // as handOn does
			c.mu.Unlock()
		}},
	} {
		given := 0 // how often a goroutine acquired the lock even so
		for range round.times {
			hold, err := c.Lock(z.Ctx)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(z.Ctx)
			var all sync.WaitGroup
			var got atomic.Int32
			for range waiters {
				all.Go(func() {
					if hold, err := c.Lock(ctx); err == nil {
						got.Add(1)
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			z.Await("all to stand in the process's line", func() bool { return c.inLine() == waiters })
			round.unlock(hold, cancel)
			cancel()
			all.Wait()
			given += int(got.Load())
			z.Await(
				"the znode to go, now that nobody of the process holds the lock or waits for it: they gave up "+what,
				func() bool { return len(a.Queue()) == 0 },
			)
		}
		t.Logf("they gave up %s: in %d rounds %d had acquired the lock anyway", what, round.times, given)
		if round.times == 20 {
			require.Less(t, given, round.times, "rounds in which nobody gave up too late")
		}
	}
}

// A goroutine gets the turn just when it sees that the session is closed. So no goroutine has the turn, and
// none passes it on. A later call must return that the session is closed, and not forever that another
// goroutine holds the lock.
func TestTryLockOfACohortOverAClosedSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	c := a.cohort
	require.NoError(t, c.takeTurn(&try{s: c.q.s, ctx: z.Ctx, mayWait: true}), "the turn, as a holder has it")
	waiting := a.lineUp(1)
	c.q.s.markClosed(byClose) // as at the beginning of Close
	c.giveTurn()              // as at the end of the holder's Unlock
	require.ErrorIs(t, waiting.Err(), zk.ErrClosing)
	_, err := c.TryLock(z.Ctx)
	require.ErrorIs(t, err, zk.ErrClosing)
}

// A server refuses the delete of a holder's Unlock, and the holder does not call Unlock again. When the znode
// is deleted anyway, by hand or with its session, the process's other goroutines can also acquire the lock.
func TestACohortOutlivesAnUnlockThatWasRefused(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"deleted by hand", "gone with its session"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a := cohorts.JoinMortal(z, "A")
			c := NewCohort(session(a), a.Path)
			hold, err := c.Lock(z.Ctx)
			require.NoError(t, err)
			permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
			require.ErrorIs(t, hold.Unlock(), zk.ErrNoAuth)
			permit(t, z, a.Path, zk.PermAll)
			_, err = c.TryLock(z.Ctx)
			require.ErrorIs(t, err, ErrLocked, "the znode still exists")
			if how == "deleted by hand" {
				require.NoError(t, z.Observer().Delete(hold.place.node, -1))
			} else {
				z.Expire(a.Client)
				a.Tap.Restore()
			}
			next, err := c.Lock(z.Ctx)
			require.NoError(t, err)
			require.Error(t, hold.Unlock(), "the refused one, tried again")
			require.NoError(t, next.Context(z.Ctx).Err(), "the hold of the other goroutine")
			require.NoError(t, next.Unlock())
			require.Empty(t, a.Queue())
			_, used := session(a).lasts()
			require.False(t, used, "whether the session still renews its lease")
		})
	}
}

// The same, but the holder calls Unlock again. Then the goroutine that waits behind the znode acquires the
// lock.
func TestACohortsRefusedUnlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	hold, err := a.cohort.Lock(z.Ctx)
	require.NoError(t, err)
	permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
	require.ErrorIs(t, hold.Unlock(), zk.ErrNoAuth)
	next := a.Start()
	next.MustWait("the znode still exists")
	permit(t, z, a.Path, zk.PermAll)
	require.NoError(t, hold.Unlock())
	next.Release()
	require.Empty(t, a.Queue())
}
