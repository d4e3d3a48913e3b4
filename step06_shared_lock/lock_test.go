package sharedlock

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// made from the table of properties: go generate ./...
//
// step 6 has:
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
//   ✓ readers share, writers do not, nobody starves
//   ✓ each release ends its own kind of hold
//   ✓ write inside a read hold is refused
//   ✓ a reader that queues again is a reader
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
// end of what was made

func TestProperties(t *testing.T) {
	t.Parallel()
	lockcheck.AsTheTableSays(t, "6", subject)
	lockcheck.Holds(t, lockcheck.Readers(subject), lockcheck.Contexts...)
}

// The clients of these stories read and write in turn. Left out are Shared, which brings
// readers of its own, ManyShare, which has one client, and where the first one reads
// OneHolder, for readers may meet inside.
func TestReadersAndWritersInTurn(t *testing.T) {
	t.Parallel()
	readersFirst, writersFirst := lockcheck.Reading(subject, true), lockcheck.Reading(subject, false)
	for _, lock := range []lockcheck.Subject{readersFirst, writersFirst} {
		lockcheck.Holds(
			t,
			lock,
			lockcheck.CrashFrees,
			lockcheck.FirstCome,
			lockcheck.NoStranger,
			lockcheck.Unrelated,
			lockcheck.SilentWait,
			lockcheck.WakesOne,
			lockcheck.ArrivalWakesNobody,
			lockcheck.LostCreateReply,
			lockcheck.LostDeleteReply,
			lockcheck.LocksAgain,
			lockcheck.ToldOfLoss,
			lockcheck.Fenced,
			lockcheck.LongHold,
			lockcheck.ParentsMade,
			lockcheck.WhateverIsInIt,
			lockcheck.LostWhileWaiting,
			lockcheck.ReleasedWhileCutOff,
		)
		lockcheck.Holds(t, lockcheck.Trying(lock, time.Hour), lockcheck.FirstCome)
	}
	// A holds the lock, B and C wait, and B leaves the queue. If only B writes, C is let
	// in beside A, and rightly so: only a writer stood between two readers.
	left := []*lockcheck.Property{lockcheck.GivingUp, lockcheck.WaiterCrash, lockcheck.NoWatchLeft}
	lockcheck.Lacks(t, readersFirst, left...)
	lockcheck.Holds(t, writersFirst, append(left, lockcheck.OneHolder)...)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	asked := slices.DeleteFunc(slices.Clone(lockcheck.BadInput), func(p *lockcheck.Property) bool {
		return p == lockcheck.NoServer // which Open says: it is step 5's
	})
	for _, way := range []lockcheck.Subject{subject, lockcheck.Readers(subject)} {
		for _, way := range []lockcheck.Subject{way, lockcheck.Trying(way, 0), lockcheck.Trying(way, time.Hour)} {
			lockcheck.Holds(t, way, asked...)
		}
	}
}

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	turns := queue(zktest.New(t), subject, "WRRWRWWRR")
	behind := []int{ // whom each of the others waits for
		0, 0, // the last writer before a reader,
		2, // the last of all before a writer
		3, 4, 5, 6, 6,
	}
	for i, turn := range turns[1:] {
		require.Equal(
			t,
			[]string{turns[behind[i]].Znode()},
			turn.Tap.Watched(),
			"%s watches number %d",
			turn.Name,
			behind[i]+1,
		)
	}
}

// keepsNothing tells whether nothing hangs on the session's lease.
func (s *Session) keepsNothing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lease.users) == 0
}

// FuzzNames puts a znode of each kind with a number among names of anybody's. It asks
// functions that are not exported: a server would not give these numbers.
func FuzzNames(f *testing.F) {
	// Sorted by the whole name, or by the kind, or by the first digits, the order
	// would be another.
	f.Add(
		"_c_f-",
		"z-__WRIT__0000000002/_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-__READ__0000000003/a-__READ__0000000010/_c_00-__WRIT__0000000011/b-__WRIT__2147483647",
		int32(100),
	)
	f.Add("", "", int32(0))
	f.Add(
		"_c_0-",
		"_c_1-__WRIT__0000000001/_c_3-__READ__0000000003/_c_2-__WRIT__0000000002/_c_5-__WRIT__0000000005/foreign",
		int32(4),
	)
	f.Add("__READ__", "__READ__-2147483648/__WRIT__2147483647/__WRIT__99999999999999999999", int32(-1))
	f.Add(
		"__WRIT__",
		"__READ__/__WRIT__x/__READ__+1/lock-0000000000/__WRIT__٣/__READ____WRIT__0000000003/__WRIT__0000000000-old",
		int32(7),
	)
	ofTheQueue := regexp.MustCompile(`(?s)^.*__(READ|WRIT)__[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		others := strings.Split(names, "/")
		for _, name := range others {
			_, k, ok := number(name)
			if digits := len(name) - strings.LastIndex(name, "_"); digits < 18 {
				require.Equal(t, ofTheQueue.MatchString(name), ok, "%q is of the queue, of kind %q", name, k)
			}
		}
		for _, k := range []kind{read, write} {
			mine := fmt.Sprintf("%s%s%010d", prefix, k, own)
			n, is, ok := number(mine)
			require.Equal(t, fmt.Sprint(own, k, true), fmt.Sprint(n, is, ok), mine)
			waitsFor := func(name string) (int, bool) { // the number, if it is of those whom mine waits for
				n, other, ok := number(name)
				return n, ok && (k == write || other == write)
			}
			if !slices.Contains(others, mine) && own >= 0 && own < math.MaxInt32 {
				_, err := predecessor(others, mine)
				require.ErrorIs(t, err, zk.ErrNoNode, "%q is not among %q", mine, others)
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
					lockcheck.IsBefore(waitsFor, before, others, int(own)),
					"before %q in %q stands %q",
					mine,
					list,
					before,
				)
			}
		}
	})
}

// Whatever is inside a write hold is one znode, a writer's until it goes, and nobody
// gets in before all is released, in whatever order.
func TestAWriteHoldStaysExclusiveUntilAllIsReleased(t *testing.T) {
	t.Parallel()
	for _, entriesAndExits := range []string{"Rrw", "Rwr", "WRwwr", "RRrwr", "RwWrw"} { // in capitals: entries
		z := zktest.New(t)
		a, b := subject.Join(z, "the writer"), subject.Join(z, "a reader")
		held := a.Acquire().Held()
		_, err := b.Reader.TryLock(z.Ctx, 0)
		require.ErrorIs(t, err, ErrLocked, "a reader that asks once")
		mark, reader := a.Tap.Mark(), b.Reader.Start()
		for i, letter := range entriesAndExits {
			reader.MustWait("the end of %s, from number %d", entriesAndExits, i+1)
			k := map[rune]kind{'R': read, 'W': write}[unicode.ToUpper(letter)]
			if unicode.IsUpper(letter) {
				_, err := as(k, a).Lock(held)
				require.NoError(t, err, "%s inside a write hold", k)
			} else {
				require.NoError(t, as(k, a).Unlock(held), "exit number %d of %s", i+1, entriesAndExits)
			}
		}
		reader.Acquired()
		require.Zero(t, a.Requests(mark)[wiretap.Create], "znodes made by %s", entriesAndExits)
		// No exported call tells for how many holds the session asks.
		z.Await("the session to rest", func() bool { return a.Session.(*Session).keepsNothing() })
	}
}

// B waits, its znode goes, and the directory's ACL forbids to make another one: Lock says so.
func TestAPlaceThatCannotBeMadeAnewEndsTheWait(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for _, why := range []string{"deleted", "gone with its session"} {
		a, b := subject.Join(z, "A"), subject.JoinMortal(z, "B")
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
	a, b := subject.Join(z, "A"), subject.Join(z, "B")
	a.Acquire()
	_, err := z.Observer().SetACL(a.Znode(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
	require.NoError(t, err)
	require.ErrorIs(t, b.Start().Err(), zk.ErrNoAuth)
	require.Len(t, a.Queue(), 1, "B has left the queue")
}

// The directory's ACL forbids the delete. The lock stays as it is until the exit
// that was refused is tried again; the other kind's is not that exit.
func TestARefusedReleaseCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	for last, other := range map[kind]kind{read: write, write: read} {
		z := zktest.New(t)
		a := subject.Join(z, "the holder that calls for "+string(last)+" last")
		permit := func(permissions int32) {
			_, err := z.Observer().SetACL(a.Path, zk.WorldACL(permissions), -1)
			require.NoError(t, err)
		}
		held := a.Acquire().Held()
		_, err := a.Reader.Lock(held)
		require.NoError(t, err)
		permit(zk.PermAll &^ zk.PermDelete)
		require.NoError(t, as(other, a).Unlock(held), "the exit that is not the last")
		for range 2 {
			require.ErrorIs(t, as(last, a).Unlock(held), zk.ErrNoAuth)
			require.Len(t, a.Queue(), 1, "the lock, which is still held")
		}
		require.ErrorIs(t, context.Cause(held), ErrNotHeld, "who has called for the release does not work on")
		permit(zk.PermAll)
		require.ErrorIs(t, as(other, a).Unlock(held), ErrNotHeld, "the exit that was not refused")
		require.NoError(t, as(last, a).Unlock(held), "the exit that was")
		require.ErrorIs(t, as(last, a).Unlock(held), ErrNotHeld, "once more")
	}
}

// An error of RUnlock or Unlock names the lock, or the znode once there is one to release.
// A read hold that was lost lets nobody in again, neither to read nor to write.
func TestUnlocksErrorsNameIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := subject.Join(z, "A")
	l := New(a.Session.(*Session), a.Path)
	held, err := l.RLock(z.Ctx)
	require.NoError(t, err)
	inner, err := l.RLock(held)
	require.NoError(t, err)
	require.Equal(t, held, inner, "our own context comes back")
	h := holdIn(held, l)
	ofTheLock, ofTheZnode := "zklock: unlock "+l.dir+": ", "zklock: unlock "+h.node+": "
	fails := func(unlock func(context.Context) error, ctx context.Context, with error, says string) {
		t.Helper()
		err := unlock(ctx)
		require.ErrorIs(t, err, with)
		require.ErrorContains(t, err, says)
	}

	fails(l.RUnlock, z.Ctx, ErrNotHeld, ofTheLock)
	fails(l.Unlock, held, ErrNotHeld, ofTheLock)
	h.lose() // as when the lease is over
	for _, lockAgain := range []func(context.Context) (context.Context, error){l.RLock, l.Lock} {
		_, err = lockAgain(context.WithoutCancel(held))
		require.ErrorIs(t, err, ErrLost, "inside a hold that was lost")
	}
	fails(l.RUnlock, inner, ErrLost, ofTheLock)
	fails(l.RUnlock, held, ErrLost, ofTheZnode) // the delete succeeds, and the hold was lost
	require.Empty(t, a.Queue())

	held, err = l.Lock(z.Ctx)
	require.NoError(t, err)
	node := holdIn(held, l).node
	require.NoError(t, z.Observer().Delete(node, -1))
	fails(l.Unlock, held, ErrLost, "zklock: unlock "+node+": ")
}
