package leased

import (
	"context"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
)

func TestMain(m *testing.M) {
	zktest.Main(m)
}

// made from the table of properties: go generate ./...
//
// step 5 has:
//   ✓ one holder at a time
//   ✓ a crashed holder's lock comes free
//   ✓ first come, first served
//   ✓ a stranger cannot release it
//   ✓ giving up leaves nothing behind
//   ✓ unrelated znodes are no obstacle
//   ✓ a waiter's crash lets nobody in
//   ✓ waiting sends no request
//   ✓ a release wakes one
//   ✓ an arrival wakes nobody
//   ✓ no watch is left behind
//   ✓ a lost reply to create does no harm
//   ✓ a lost reply to delete does no harm
//   ✓ the holder may lock again
//   ✓ the holder is told when the lock is lost
//   ✓ each tenure's token is greater than the last
//   ✓ a long hold and a long wait come to a good end
//   ✓ the last number does no harm
//   ✓ missing parents are made
//   ✓ many goroutines share one lock
//   ✓ a znode is deleted whatever is in it
//   ✓ a waiter whose session expires says so or queues again
//   ✓ a release is seen, whenever it comes
//   ✓ an error in the wait leaves nothing behind
//   ✓ an unlock that failed can be called again
//   ✓ unlock says that the lock was lost
//   ✓ who holds nothing sends nothing
//   ✓ a lost create takes nobody else's place
//   ✓ a znode of an old session is no place in the queue
//   ✓ an unlock without the lock says so
//   ✓ each lock has its own hold and token
//   ✓ a loss lets nobody in before the holder unlocks
//   ✓ the hold's context ends before the next is let in
//   ✓ the hold's context is made from the caller's
//   ✓ a short break of the line does not end the hold
//   ✓ unlock does not wait for a line for ever
//   ✓ who is let in can rely on the lock
//   ✓ an outage just before the entry is noticed
//   ✓ a try ends in time, and leaves nothing
//   ✓ a waiter whose znode was deleted is not let in beside another
//   ✓ a broken line does not end the wait
//   ✓ who gives up need not wait for an answer
//   ✓ a release is not missed while the line is down
//   ✓ a server that lags does no harm
//   ✓ what cannot work is refused before anything is sent
//   ✓ a closed session is named in the error
//   ✓ a session closed during a call ends the call
//   ✓ a missing permission is named, and can be given later
//   ✓ a parent that can have no children is named
//   ✓ a reply that is none does no harm
//   ✓ a directory full of foreign children is no obstacle
//
// step 5 lacks:
//   ✗ readers share, writers do not, nobody starves
//
// step 5, a Cohort has:
//   ✓ one holder at a time
//   ✓ a crashed holder's lock comes free
//   ✓ first come, first served
//   ✓ a stranger cannot release it
//   ✓ giving up leaves nothing behind
//   ✓ unrelated znodes are no obstacle
//   ✓ a waiter's crash lets nobody in
//   ✓ waiting sends no request
//   ✓ a release wakes one
//   ✓ an arrival wakes nobody
//   ✓ no watch is left behind
//   ✓ a lost reply to create does no harm
//   ✓ a lost reply to delete does no harm
//   ✓ the holder may lock again
//   ✓ the holder is told when the lock is lost
//   ✓ each tenure's token is greater than the last
//   ✓ the last number does no harm
//   ✓ missing parents are made
//   ✓ many goroutines share one lock
//   ✓ a znode is deleted whatever is in it
//   ✓ a waiter whose session expires says so or queues again
//   ✓ a release is seen, whenever it comes
//   ✓ an error in the wait leaves nothing behind
//   ✓ an unlock that failed can be called again
//   ✓ unlock says that the lock was lost
//   ✓ who holds nothing sends nothing
//   ✓ a lost create takes nobody else's place
//   ✓ a znode of an old session is no place in the queue
//   ✓ an unlock without the lock says so
//   ✓ each lock has its own hold and token
//   ✓ a loss lets nobody in before the holder unlocks
//   ✓ the hold's context ends before the next is let in
//   ✓ the hold's context is made from the caller's
//   ✓ a short break of the line does not end the hold
//   ✓ unlock does not wait for a line for ever
//   ✓ who is let in can rely on the lock
//   ✓ an outage just before the entry is noticed
//   ✓ a try ends in time, and leaves nothing
//   ✓ a waiter whose znode was deleted is not let in beside another
//   ✓ a broken line does not end the wait
//   ✓ who gives up need not wait for an answer
//   ✓ a release is not missed while the line is down
//   ✓ what cannot work is refused before anything is sent
//   ✓ a closed session is named in the error
//   ✓ a session closed during a call ends the call
//   ✓ a missing permission is named, and can be given later
//   ✓ a parent that can have no children is named
//   ✓ a reply that is none does no harm
//   ✓ a directory full of foreign children is no obstacle
//
// end of what was made

func TestProperties(t *testing.T) {
	property.AsTheTableSays(t, "5", locks)
	property.AsTheTableSays(t, "cohort", cohorts) // a long hold of theirs is a Lock's
	property.Holds(
		t,
		property.Trying(locks, time.Hour),
		property.OneHolder,
		property.FirstCome,
		property.GivingUp,
		property.LocksAgain,
	)
}

// That a server is none is for Open to say: see session_test.go.
func TestBadInput(t *testing.T) {
	asked := slices.DeleteFunc(slices.Clone(property.BadInput), func(p *property.Property) bool {
		return p == property.NoServer
	})
	for _, kind := range []property.Subject{locks, cohorts} {
		for _, way := range []property.Subject{kind, property.Trying(kind, 0), property.Trying(kind, time.Hour)} {
			property.Holds(t, way, asked...)
		}
	}
}

// TryLock and deadlines.

func TestTryLockWaitsNoLongerThanItIsTold(t *testing.T) {
	both(t, func(t *testing.T, z *zktest.Zoo, kind property.Subject) {
		a, b := kind.Join(z, "A"), locks.Join(z, "B")
		b.Acquire().Release() // makes the directory
		for _, wait := range []time.Duration{0, zktest.Patience} {
			free := try(a, z.Ctx, wait)
			holds(t, z, free)
			require.NoError(t, free.Held().Err(), "the wait of %v is not for the work", wait)
			free.Release()
		}

		held, mark := b.Acquire(), a.Tap.Mark()
		require.ErrorIs(t, try(a, z.Ctx, 0).Err(), ErrLocked, "B holds the lock")
		asked := map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}
		require.Equal(t, asked, a.Requests(mark), "what TryLock asks, which waits for nobody")
		require.Empty(t, a.Tap.Watched(), "watches left at the server")
		require.ErrorIs(t, try(a, z.Ctx, 30*time.Millisecond).Err(), ErrLocked, "B still holds the lock")
		z.Await("A's znode to leave the queue", func() bool { return len(a.Queue()) == 1 })

		own := a.Start()
		own.MustWait("B holds the lock")
		if kind.Name == cohorts.Name {
			asked = map[wiretap.Op]int{} // in the process, too, it waits for nobody
		}
		for _, does := range []string{"waits", "holds"} {
			mark = a.Tap.Mark()
			require.ErrorIs(t, try(a, z.Ctx, 0).Err(), ErrLocked, "another goroutine of A %s", does)
			require.Equal(t, asked, a.Requests(mark), "what TryLock asks while another goroutine %s", does)
			if does == "waits" {
				held.Release()
				own.Acquired()
			}
		}
		own.Release()
		require.Empty(t, a.Queue())
	})
}

// A holds the lock, and B's TryLock has to leave the queue. The directory's ACL forbids the
// delete: the error says so, and names the znode that stays.
func TestWhoLeavesTellsOfADeleteThatIsRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "A"), locks.Join(z, "B")
	a.Acquire()
	_, err := z.Observer().SetACL(a.Path, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
	require.NoError(t, err)
	_, err = b.TryLock(z.Ctx, 0)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorContains(t, err, b.Znode())
}

// Hundreds give up, each at another moment: while the create is under way, while it
// waits, just as it is let in.
func TestGivingUpAtAnyMomentLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, z *zktest.Zoo, kind property.Subject) {
		a := kind.Join(z, "A")
		a.Acquire().Release() // makes the directory
		begun := time.Now()
		a.Acquire().Release()
		span := 2 * time.Since(begun)
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				for i := range 60 {
					ctx, cancel := context.WithTimeout(z.Ctx, span*time.Duration(60*n+i)/240)
					held, err := a.Lock(ctx)
					if err == nil {
						err = a.Unlock(held)
					}
					if err != nil {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
					cancel()
				}
			})
		}
		all.Wait()
		z.Await("the queue to be empty", func() bool { return len(a.Queue()) == 0 })
		a.Acquire().Release()
	})
}

func TestABrokenLineDoesNotEndTheHoldAndTheContextGivenToLockDoes(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	ctx, cancel := context.WithCancel(z.Ctx)
	turn := lock(a, ctx)
	turn.Acquired()
	for range 3 {
		a.Tap.LoseReply(wiretap.Exists, 1)
		_, _, err := a.Exists("/")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
	}
	z.Barrier(a.Client)
	require.NoError(t, turn.Held().Err(), "three times A's line was down for a moment")
	cancel()
	require.ErrorIs(t, context.Cause(turn.Held()), context.Canceled)
	holds(t, z, turn) // until Unlock
	turn.Release()
	require.Empty(t, a.Queue())
}

// Reentrancy.

// The goroutines to which the context is handed share the hold, whoever is the first
// to unlock.
func TestAsManyUnlocksAsLocksAndTheLastOneDeletes(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "A"), locks.Join(z, "B")
	mark := a.Tap.Mark()
	first := a.Acquire()
	held := first.Held()
	derived, cancel := context.WithTimeout(held, zktest.Patience)
	defer cancel()
	turns := []*zktest.Turn{first, first.StartIn(first.Held()), lock(a, derived), try(a, held, 0)}
	for _, turn := range turns {
		turn.Acquired()
	}
	waiting := b.Start()
	for i, turn := range turns {
		waiting.MustWait("%d of %d Unlocks", i, len(turns))
		require.NoError(t, turn.Held().Err(), "the hold after %d of %d Unlocks", i, len(turns))
		require.Zero(t, a.Requests(mark)[wiretap.Delete], "deletes after %d of %d Unlocks", i, len(turns))
		turn.Release()
	}
	require.Equal(t, 1, a.Requests(mark)[wiretap.Delete], "deletes after the last Unlock")
	waiting.Release()

	for _, released := range []context.Context{held, derived} {
		require.ErrorIs(t, a.Unlock(released), ErrNotHeld, "an Unlock too many")
		_, err := a.Lock(released)
		require.ErrorIs(t, err, context.Canceled, "Lock with a context that ended with the hold")
		require.ErrorIs(t, err, ErrNotHeld, "why it ended")
	}
}

// A context that was made from the hold's can end before the hold does. Lock with it is no
// re-entry: it answers as to any context that has ended, and no Unlock is due for it.
func TestAContextThatEndsBeforeItsHoldIsNoReentry(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	turn := a.Acquire()
	ended, cancel := context.WithCancel(turn.Held())
	cancel()
	_, err := a.Lock(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, turn.Held().Err(), "the hold goes on")
	turn.Release()
	require.Empty(t, a.Queue(), "one Unlock was due")
}

// A hold keeps each context that it has given out until that one ends. So a long hold whose
// caller locks again and again keeps no more than the contexts that still go on.
func TestAHoldKeepsNoContextThatHasEnded(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	l := New(a.Session.(*Session), a.Path)
	held, err := l.Lock(z.Ctx)
	require.NoError(t, err)
	h := holdIn(held, l)
	kept := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.contexts)
	}
	lockAgain := func(with context.Context) (inner context.Context) {
		inner, err := l.Lock(with)
		require.NoError(t, err)
		require.NoError(t, l.Unlock(inner))
		return inner
	}

	type key struct{}
	ofOurs := context.WithValue(held, key{}, "a value")
	require.Equal(t, held, lockAgain(held), "our own context comes back")
	require.Equal(t, ofOurs, lockAgain(ofOurs), "so does one that has our Done channel")
	require.Equal(t, 1, kept(), "contexts that the hold keeps: the first Lock's")

	const rounds = 10
	own, cancel := context.WithCancel(held)
	for range rounds {
		lockAgain(own)
	}
	require.Equal(t, 1+rounds, kept(), "one more for each round, while the caller's own context goes on")
	cancel()
	z.Await("the hold to forget the contexts that have ended", func() bool { return kept() == 1 })

	require.NoError(t, l.Unlock(held))
	z.Await("the hold to forget the last context after the release", func() bool { return kept() == 0 })
}

func TestTokenOfNoHold(t *testing.T) {
	t.Parallel()
	for _, ctx := range []context.Context{nil, context.Background()} {
		n, ok := Token(ctx)
		require.False(t, ok, "whether there is a token")
		require.Zero(t, n)
	}
}

// Beside the client library's own lock.

var clientLocks = property.Over("zk.Lock", property.ClientLock)

func TestStep5AndTheClientsLockExcludeOneAnother(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	joined := 0
	line := z.Line(3, func(name string) *zktest.Member {
		joined++
		return []property.Subject{clientLocks, locks}[joined%2].Join(z, name)
	})
	for len(line) > 0 {
		line = z.Pass(line)
	}
}

// The reply to a create of zk.Lock is lost. It looks for its own znode among ours,
// and takes each name that begins with _c_ to have 32 characters behind that: with
// fewer it would panic.
func TestTheClientsLockFindsItsZnodeAmongOurs(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, c := locks.Join(z, "A"), clientLocks.Join(z, "zk.Lock")
	held := a.Acquire()
	lost := c.Tap.LoseReply(wiretap.Create, 1)
	theirs := c.Start()
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
	theirs.MustWait("A holds the lock")
	require.Len(t, a.Queue(), 2)
	held.Release()
	theirs.Release()
}

// What is lost, and what others put into the queue.

// A's create is lost, and while A is cut off somebody else, whose session lives,
// makes znodes with A's guid: one before A's own number and one behind it.
func TestAZnodeOfAnotherSessionIsNotAdopted(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"the server has made A's": (*wiretap.Tap).LoseReply,
		"the server has not":      (*wiretap.Tap).LoseRequest,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a := locks.Join(z, "A")
			a.Acquire().Release() // takes number 0
			begun, end := outage(z, a, lose(a.Tap, wiretap.Create, 1))
			mark := a.Tap.Mark()
			call := a.Start()
			begun()
			create := a.Tap.Since(mark)[0]
			before, behind := create.Path+"0000000000", create.Path+"0000000007"
			for _, path := range []string{before, behind} {
				_, err := z.Observer().Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}

			end()
			call.MustWait("number 0, whoever owns it")
			require.NoError(t, z.Observer().Delete(before, -1))
			holds(t, z, call)
			call.Release()
			require.Len(t, a.Queue(), 1, "the other's second znode alone")
		})
	}
}

// A hears that its session has expired, and has another one, before the znodes of
// the first are gone: here, long before. The old znode comes to the front, and is
// no place in the queue.
func TestAZnodeOfAnEndedSessionIsNoPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lines := 0
	a := locks.JoinAs(z, "A", property.Seat{Through: zktest.Over(func(c net.Conn) net.Conn {
		lines++
		return zktest.Handshake{Expired: lines == 2}.Conn(c)
	})})
	held := locks.Join(z, "B").Acquire()
	call := a.Start()
	call.MustWait("B holds the lock")
	old := a.Znode()
	a.Tap.HangUp()
	z.Await("A to have another session", func() bool {
		return a.State() == zk.StateHasSession && a.SessionID() != a.ID
	})
	held.Release()
	z.Await("A to queue again, or to be let in", func() bool { return len(a.Queue()) == 2 || call.Returned() })
	require.False(t, call.Returned(), "A holds the lock with %s, a znode of its old session", old)
	require.NoError(t, z.Observer().Delete(old, -1))
	holds(t, z, call)
}

// The server has made A's znode, and A, who is cut off, does not know.
// B waits, its znode goes, and the directory's ACL forbids to make another one: Lock says so.
func TestAPlaceThatCannotBeMadeAnewEndsTheWait(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for _, why := range []string{"deleted", "gone with its session"} {
		a, b := locks.Join(z, "A"), locks.JoinMortal(z, "B")
		held, waiting := a.Acquire(), b.Start()
		waiting.MustWait("A holds the lock")
		permit := func(permissions int32) {
			_, err := z.Observer().SetACL(a.Path, zk.WorldACL(permissions), -1)
			require.NoError(t, err)
		}
		permit(zk.PermAll &^ zk.PermCreate)
		mark := b.Tap.Mark()
		if why == "deleted" {
			require.NoError(t, z.Observer().Delete(b.Znode(), -1))
		} else {
			b.Crash()
			z.AwaitExpiry(b.Client)
			b.Tap.Restore()
		}
		held.Release()
		require.ErrorIs(t, waiting.Err(), zk.ErrNoAuth, "B's znode was %s", why)
		if why == "deleted" {
			require.Equal(t, 1, b.Requests(mark)[wiretap.Create], "creates that are refused")
		}
		permit(zk.PermAll)
	}
}

// Somebody forbids everybody to read A's znode. B cannot wait for it to go.
func TestAWatchThatIsRefusedEndsTheWait(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "A"), locks.Join(z, "B")
	a.Acquire()
	_, err := z.Observer().SetACL(a.Znode(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
	require.NoError(t, err)
	require.ErrorIs(t, b.Start().Err(), zk.ErrNoAuth)
	require.Len(t, a.Queue(), 1, "B has left the queue")
}

func TestACreateWithoutAReplyIsRepeatedWhenTheSessionHasExpired(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.JoinMortal(z, "A")
	a.Acquire().Release() // makes the directory
	begun, end := outage(z, a, a.Tap.LoseReply(wiretap.Create, 1))
	call := a.Start()
	begun()
	z.AwaitExpiry(a.Client)
	end()
	holds(t, z, call)
	require.NotEqual(t, a.ID, a.SessionID(), "A's session")
	require.Len(t, a.Queue(), 1)
}

// The create's reply is lost, and each step of the recovery loses its reply once: the
// write in vain, the list, the look at the owner.
// The reply to a create is lost, and the directory's ACL forbids the list. Nobody can know
// whether there is a znode: Lock says why, and makes no other one.
func TestARecoveryThatIsRefusedEndsTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	a.Acquire().Release() // makes the directory
	_, err := z.Observer().SetACL(a.Path, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
	require.NoError(t, err)
	a.Tap.LoseReply(wiretap.Create, 1)
	mark := a.Tap.Mark()
	require.ErrorIs(t, lock(a, z.Ctx).Err(), zk.ErrNoAuth)
	require.Equal(t, 1, a.Requests(mark)[wiretap.Create], "creates")
}

// A create that does not reach the server is repeated. It takes one list to find that there
// is no znode, and one to see that it is the first. The first time there is no directory yet.
func TestACreateThatDoesNotArriveIsRepeated(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	for _, directory := range []string{"missing", "there"} {
		mark := a.Tap.Mark()
		a.Tap.LoseRequest(wiretap.Create, 1)
		a.Acquire().Release()
		require.Equal(t, 2, a.Requests(mark)[wiretap.GetChildren], "lists, with the directory %s", directory)
	}
}

// The znode that Lock has found, after a lost reply, goes before Lock has read it. Lock makes
// another one.
func TestAZnodeThatGoesWhileItIsLookedForIsMadeAnew(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	a.Tap.LoseReply(wiretap.Create, 3) // after one in vain, and the directory's
	read := a.Tap.HoldRequest(wiretap.GetData, 1)
	turn := a.Start()
	zktest.AwaitChan(z, "A to read the znode that it has found", read.Sprung())
	require.NoError(t, z.Observer().Delete(a.Znode(), -1))
	read.Let()
	turn.Release()
}

func TestARecoveryThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	a.Acquire().Release()
	var traps []*wiretap.Trap
	for _, op := range []wiretap.Op{wiretap.Create, wiretap.Delete, wiretap.GetChildren, wiretap.GetData} {
		traps = append(traps, a.Tap.LoseReply(op, 1))
	}
	mark := a.Tap.Mark()
	turn := a.Acquire()
	for _, trap := range traps {
		zktest.AwaitChan(z, "each reply to be lost", trap.Sprung())
	}
	holds(t, z, turn)
	require.Equal(t, 1, a.Requests(mark)[wiretap.Create], "creates: the one without a reply was found")
	require.Equal(t, 4, a.Requests(mark)[wiretap.Delete], "writes in vain: one before each of three lists, and one without a reply")
	turn.Release()
}

// A believes that the server gave it a short time-out; the server keeps the session
// for longer.
func TestUnlockWithoutALineForGoodIsErrLostAndTheZnodeGoesLater(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.JoinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: zktest.MortalTimeout}.Through})
	turn := a.Acquire()
	a.Tap.Cut()
	require.ErrorIs(t, a.Unlock(turn.Held()), ErrLost, "Unlock's answer while A is cut off")
	require.Len(t, a.Queue(), 1, "A's znode, which it could not delete")
	next := a.Start() // while it is cut off, too
	a.Tap.Restore()
	holds(t, z, next) // so the delete went on
	require.Equal(t, a.ID, a.SessionID(), "A's session: the release must not need its end")
	next.Release()
}

// The session expires while the delete is on its way. The server keeps it for
// less than it said, so that A is still patient when the line is back.
func TestADeleteThatComesAfterTheSessionsEndIsErrLost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.JoinAs(
		z,
		"A",
		property.Seat{Timeout: zktest.MortalTimeout, Through: zktest.Handshake{Tell: zktest.SessionTimeout}.Through},
	)
	turn := a.Acquire()
	owner, _ := z.Owner(turn.Znode()) // the session may be another one already
	begun, end := outage(z, a, a.Tap.LoseRequest(wiretap.Delete, 1))
	unlock := z.Go(a.Client, func(context.Context) error { return a.Unlock(turn.Held()) })
	begun()
	z.AwaitExpiry(&zktest.Client{Name: "A", ID: owner})
	end()
	require.ErrorIs(t, unlock.Err(), ErrLost, "the znode went with the session and not by the delete")
}

func TestAZnodeDeletedByHand(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "A"), locks.Join(z, "B")
	held, waiting := a.Acquire(), b.Start()
	waiting.MustWait("A holds the lock")
	for _, node := range []string{b.Znode(), a.Znode()} {
		require.NoError(t, z.Observer().Delete(node, -1))
	}
	holds(t, z, waiting) // with a znode that it has made anew
	require.NoError(t, held.Held().Err(), "nobody asks the server, and so nobody knows")
	require.ErrorIs(t, a.Unlock(held.Held()), ErrLost)
	waiting.Release()
}

// Each error of Unlock begins with "unlock", and with the path: the lock's, or that of the
// znode that it was to delete.
func TestUnlocksErrorsNameIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	l := New(a.Session.(*Session), a.Path)
	held, err := l.Lock(z.Ctx)
	require.NoError(t, err)
	inner, err := l.Lock(held)
	require.NoError(t, err)
	h := holdIn(held, l)
	ofTheLock, ofTheZnode := "zklock: unlock "+l.dir+": ", "zklock: unlock "+h.node+": "
	fails := func(unlocked context.Context, with error, says string) {
		t.Helper()
		err := l.Unlock(unlocked)
		require.ErrorIs(t, err, with)
		require.ErrorContains(t, err, says)
	}

	fails(z.Ctx, ErrNotHeld, ofTheLock)
	h.lose() // as when the lease is over
	fails(inner, ErrLost, ofTheLock)
	fails(held, ErrLost, ofTheZnode) // the delete succeeds, and the hold was lost
	require.Empty(t, a.Queue())

	held, err = l.Lock(z.Ctx)
	require.NoError(t, err)
	node := holdIn(held, l).node
	require.NoError(t, z.Observer().Delete(node, -1))
	fails(held, ErrLost, "zklock: unlock "+node+": ")

	held, err = l.Lock(z.Ctx)
	require.NoError(t, err)
	l.s.Close()
	err = l.Unlock(held)
	require.ErrorIs(t, err, ErrLost, "the znode went with the session")
	require.NotContains(t, err.Error(), "no answer", "it has waited for what is never begun")
}

// A hold is lost, and then the server refuses the delete of its znode. Why the hold ended is
// still the loss, and not the release that was tried: Lock and the next Unlock say so.
func TestALostHoldStaysLostThoughItsUnlockWasRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	l := New(a.Session.(*Session), a.Path)
	permit := func(permissions int32) {
		t.Helper()
		_, err := z.Observer().SetACL(a.Path, zk.WorldACL(permissions), -1)
		require.NoError(t, err)
	}
	held, err := l.Lock(z.Ctx)
	require.NoError(t, err)
	holdIn(held, l).lose() // as when the lease is over
	permit(zk.PermAll &^ zk.PermDelete)
	require.ErrorIs(t, l.Unlock(held), zk.ErrNoAuth)

	_, err = l.Lock(context.WithoutCancel(held))
	require.ErrorIs(t, err, ErrLost, "Lock inside the hold")
	permit(zk.PermAll)
	require.ErrorIs(t, l.Unlock(held), ErrLost, "the Unlock that was refused, tried again")
	require.Empty(t, a.Queue())
}

// FuzzNames puts a znode with a number among names of anybody's. It asks the two
// functions that read names, for no server would give such numbers.
func FuzzNames(f *testing.F) {
	f.Add("", "", int32(0))
	f.Add("_c_0-", "_c_1-lock-0000000001/zz-lock-0000000003/_c_2-lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add("lock-", "lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(-1))
	f.Add("-lock-0000000000-", "lock-/lock-x/lock-+1/_c_0-__READ__0000000000/lock-٣", int32(7))
	// the last lock- counts
	f.Add("_c_0-", "_c_block-lock-0000000002/_c_1b2c0000-0000-lock-0000000003-backup/0000000004", int32(5))
	ofTheQueue := regexp.MustCompile(`(?s)^.*lock-[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		mine, others := fmt.Sprintf("%slock-%010d", prefix, own), strings.Split(names, "/")
		n, ok := number(mine)
		require.True(t, ok, "whether %q has a number", mine)
		require.Equal(t, int(own), n, "the number of %q", mine)
		for _, name := range others {
			if digits := len(name) - strings.LastIndex(name, "-"); digits < 18 {
				_, ok := number(name)
				require.Equal(t, ofTheQueue.MatchString(name), ok, "whether %q is of the queue", name)
			}
		}
		for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
			before, err := predecessor(list, mine)
			if own < 0 || own == math.MaxInt32 {
				require.ErrorContains(t, err, "numbers are used up")
				continue
			}
			require.NoError(t, err)
			require.True(
				t,
				property.IsBefore(number, before, others, int(own)),
				"before %q in %q stands %q",
				mine,
				list,
				before,
			)
		}
	})
}
