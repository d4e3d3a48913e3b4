package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) {
	t.Parallel()
	lockcheck.Holds(t, subject, slices.Concat(lockcheck.Properties, lockcheck.Promises,
		[]*lockcheck.Property{lockcheck.ReleasedWhileCutOff, lockcheck.ByKind, lockcheck.Upgrade})...)
}

// The clients of these stories read and write in turn. Left out are Shared, which brings
// readers of its own, ManyShare, which has one client, and where the first one reads
// OneHolder, for readers may meet inside.
func TestReadersAndWritersInTurn(t *testing.T) {
	t.Parallel()
	readersFirst, writersFirst := lockcheck.Reading(subject, true), lockcheck.Reading(subject, false)
	for _, lock := range []lockcheck.Subject{readersFirst, writersFirst} {
		lockcheck.Holds(t, lock, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger, lockcheck.Unrelated,
			lockcheck.SilentWait, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody, lockcheck.LostCreateReply, lockcheck.LostDeleteReply,
			lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced, lockcheck.LongHold,
			lockcheck.ParentsMade, lockcheck.WhateverIsInIt, lockcheck.LostWhileWaiting, lockcheck.ReleasedWhileCutOff)
		lockcheck.Holds(t, lockcheck.Trying(lock, time.Hour), lockcheck.FirstCome)
	}
	// A holds the lock, B and C wait, and B leaves the queue. If only B writes, C is let
	// in beside A, and rightly so: only a writer stood between two readers.
	left := []*lockcheck.Property{lockcheck.GivingUp, lockcheck.WaiterCrash, lockcheck.NoWatchLeft}
	lockcheck.Fails(t, readersFirst, left...)
	lockcheck.Holds(t, writersFirst, append(left, lockcheck.OneHolder)...)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	lock := subject
	lock.NotHeld, lock.Lost = ErrNotHeld, ErrLost
	asked := slices.DeleteFunc(slices.Clone(lockcheck.BadInput), func(p *lockcheck.Property) bool {
		return p == lockcheck.NoServer // which Open says: it is step 5's
	})
	for _, way := range []lockcheck.Subject{lock, lockcheck.Readers(lock)} {
		for _, way := range []lockcheck.Subject{way, lockcheck.Trying(way, 0), lockcheck.Trying(way, time.Hour)} {
			lockcheck.Holds(t, way, asked...)
		}
	}
}

// Whom one waits for, and who wakes whom.

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	turns := queue(zktest.New(t), subject, "WRRWRWWRR")
	behind := []int{ // whom each of the others waits for
		0, 0, // the last writer before a reader,
		2, // the last of all before a writer
		3, 4, 5, 6, 6,
	}
	for i, turn := range turns[1:] {
		require.Equal(t, []string{turns[behind[i]].Znode()}, turn.Tap.Watched(), "%s watches number %d", turn.Name, behind[i]+1)
	}
}

func TestAReadersReleaseWakesTheWriterThatWatchesItAndNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		order []int // in which the readers 1, 2, 3 release
		woken []int // notifications to the writer, who watches reader 3
	}{
		{[]int{3, 1, 2}, []int{1, 0, 1}}, // after 3 it watches 2
		{[]int{3, 2, 1}, []int{1, 1, 1}},
	} {
		z := zktest.New(t)
		turns := queue(z, subject, "RRRW")
		writer := turns[3]
		for i, who := range c.order {
			count := z.Count(writer)
			turns[who-1].Release()
			if i < 2 {
				z.Settle(writer)
			} else {
				writer.Acquired()
			}
			require.Equal(t, c.woken[i], count().Notifications, "notifications to the writer when reader %d leaves, of %v", who, c.order)
		}
	}
}

// Readers and writers go on until each of them has had its turns: if one side kept
// the other out, the test would not end. The room tells who else is inside.
func TestNeitherSideStarvesNorMeetsTheOther(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var room sync.RWMutex
	var hungry atomic.Int64
	var calls []*zktest.Turn
	for i := range 6 {
		m, enter, leave := subject.Join(z, fmt.Sprintf("writer %d", i+1)), room.TryLock, room.Unlock
		if i%2 == 0 {
			m, enter, leave = m.Reader, room.TryRLock, room.RUnlock
		}
		hungry.Add(1)
		enough := func(had int) bool {
			if had == 10 {
				hungry.Add(-1)
			}
			return hungry.Load() == 0
		}
		calls = append(calls, againAndAgain(z, m, enough, func(context.Context) error {
			if !enter() {
				return errors.New("somebody is inside who must not be")
			}
			leave()
			return nil
		}))
	}
	for _, c := range calls {
		c.Acquired()
	}
	require.Empty(t, z.Names(z.Root+"/lock"), "the queue, when all is over")
}

// The queue and strangers in it.

// FuzzNames puts a znode of each kind with a number among names of anybody's. It asks
// functions that are not exported: a server would not give these numbers.
func FuzzNames(f *testing.F) {
	// Sorted by the whole name, or by the kind, or by the first digits, the order
	// would be another.
	f.Add("_c_f-", "z-__WRIT__0000000002/_c_f0-__READ__0000000003/a-__READ__0000000010/_c_00-__WRIT__0000000011/b-__WRIT__2147483647", int32(100))
	f.Add("", "", int32(0))
	f.Add("_c_0-", "_c_1-__WRIT__0000000001/_c_3-__READ__0000000003/_c_2-__WRIT__0000000002/_c_5-__WRIT__0000000005/foreign", int32(4))
	f.Add("__READ__", "__READ__-2147483648/__WRIT__2147483647/__WRIT__99999999999999999999", int32(-1))
	f.Add("__WRIT__", "__READ__/__WRIT__x/__READ__+1/lock-0000000000/__WRIT__٣/__READ____WRIT__0000000003/__WRIT__0000000000-old", int32(7))
	ofTheQueue := regexp.MustCompile(`(?s)^.*__(READ|WRIT)__[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		others := strings.Split(names, "/")
		for _, name := range others {
			_, kind, ok := number(name)
			if digits := len(name) - strings.LastIndex(name, "_"); digits < 18 {
				require.Equal(t, ofTheQueue.MatchString(name), ok, "%q is of the queue, of kind %q", name, kind)
			}
		}
		for _, kind := range []string{read, write} {
			mine := fmt.Sprintf("%s%s%010d", prefix, kind, own)
			n, is, ok := number(mine)
			require.Equal(t, fmt.Sprint(own, kind, true), fmt.Sprint(n, is, ok), mine)
			waitsFor := func(name string) (int, bool) { // the number, if it is of those whom mine waits for
				n, other, ok := number(name)
				return n, ok && (kind == write || other == write)
			}
			if !slices.Contains(others, mine) {
				_, err := predecessor(others, mine)
				require.ErrorIs(t, err, zk.ErrNoNode, "%q is not among %q", mine, others)
			}
			for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
				before, err := predecessor(list, mine)
				require.NoError(t, err)
				require.True(t, lockcheck.IsBefore(waitsFor, before, others, int(own)), "before %q in %q stands %q", mine, list, before)
			}
		}
	})
}

// Curator's InterProcessReadWriteLock has such names. What stands before the
// kind says nothing of the order: here it sorts behind our own names.
func TestForeignReadersAndWritersCount(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	queue(z, subject, "R")[0].Release() // makes the directory
	foreign := func(prefix string) (znode string) {
		znode, err := z.Observer().Create(z.Root+"/lock/"+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		return znode
	}
	itsReader := foreign("_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-__READ__")
	early := subject.Join(z, "a reader").Reader.Acquire()
	itsWriter := foreign("~-__WRIT__")
	late := subject.Join(z, "a late reader").Reader.Start()
	late.MustWait("the foreign writer")
	require.Equal(t, []string{itsWriter}, late.Tap.Watched())
	require.NoError(t, z.Observer().Delete(itsWriter, -1))
	late.Acquired()

	writer := subject.Join(z, "a writer").Start()
	writer.MustWait("all the readers")
	foreign("A-__WRIT__") // behind us, whatever its name
	late.Release()
	early.Release()
	writer.MustWait("the foreign reader")
	require.Equal(t, []string{itsReader}, writer.Tap.Watched())
	require.NoError(t, z.Observer().Delete(itsReader, -1))
	writer.Acquired()
}

// Entries and exits of each kind.

// Whatever is inside a write hold is one znode, a writer's until it goes, and nobody
// gets in before all is released, in whatever order.
func TestAWriteHoldStaysExclusiveUntilAllIsReleased(t *testing.T) {
	t.Parallel()
	for _, entriesAndExits := range []string{"Rrw", "Rwr", "WRwwr", "RRrwr", "RwWrw"} { // in capitals: entries
		z := zktest.New(t)
		a, b := subject.Join(z, "the writer"), subject.Join(z, "a reader")
		held := a.Acquire().Held()
		mark, reader := a.Tap.Mark(), b.Reader.Start()
		for i, letter := range entriesAndExits {
			reader.MustWait("the end of %s, from number %d", entriesAndExits, i+1)
			kind := map[rune]string{'R': read, 'W': write}[unicode.ToUpper(letter)]
			if unicode.IsUpper(letter) {
				again, err := as(kind, a).Lock(held)
				require.NoError(t, err, "%s inside a write hold", kind)
				require.Equal(t, tokenIn(held), tokenIn(again))
			} else {
				require.NoError(t, as(kind, a).Unlock(held), "exit number %d of %s", i+1, entriesAndExits)
			}
		}
		reader.Acquired()
		require.Zero(t, a.Requests(mark)[wiretap.Create], "znodes made by %s", entriesAndExits)
		// No exported call tells for how many holds the session asks.
		z.Await("the session to rest", func() bool { return a.Session.(*Session).holds.Load() == 0 })
	}
}

func TestWhatIsNotHeldThatWayIsNotReleased(t *testing.T) {
	eachKind(t, func(t *testing.T, z *zktest.Zoo, kind string) {
		a := subject.Join(z, "the holder")
		holder := as(kind, a).Acquire()
		inside, err := subject.At(z, a, a.Path+"-too").Lock(holder.Held())
		require.NoError(t, err)
		again, err := as(kind, a).Lock(inside)
		require.NoError(t, err)
		require.Greater(t, tokenIn(inside), tokenIn(holder.Held()))
		require.Equal(t, tokenIn(holder.Held()), tokenIn(again), "a token is of the lock that was locked last")
		holder.Release()

		another, theOther := subject.At(z, a, a.Path), map[string]string{read: write, write: read}[kind]
		require.ErrorIs(t, as(theOther, a).Unlock(holder.Held()), ErrNotHeld, "by the other method")
		require.ErrorIs(t, as(kind, another).Unlock(holder.Held()), ErrNotHeld, "through another lock")
		require.Len(t, a.Queue(), 1, "the lock, which is held after all that")
		require.NoError(t, holder.Held().Err())
		holder.Release() // the second entry
		require.ErrorIs(t, context.Cause(holder.Held()), ErrNotHeld, "the hold, after its release")
		require.Empty(t, a.Queue())
		_, err = as(kind, a).Lock(context.WithoutCancel(holder.Held()))
		require.NoError(t, err)
		require.Len(t, a.Queue(), 1, "the lock, locked anew: a hold that has been released is none")
	})
}

// The directory's ACL forbids the delete. The lock stays as it is until the exit
// that was refused is tried again; the other kind's is not that exit.
func TestARefusedReleaseCanBeTriedAgain(t *testing.T) {
	eachKind(t, func(t *testing.T, z *zktest.Zoo, last string) {
		a, other := subject.Join(z, "the holder"), map[string]string{read: write, write: read}[last]
		held := a.Acquire().Held()
		_, err := a.Reader.Lock(held)
		require.NoError(t, err)
		_, err = z.Observer().SetACL(a.Path, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
		require.NoError(t, err)
		require.NoError(t, as(other, a).Unlock(held), "the exit that is not the last")
		for range 2 {
			require.ErrorIs(t, as(last, a).Unlock(held), zk.ErrNoAuth)
			require.Len(t, a.Queue(), 1, "the lock, which is still held")
		}
		require.ErrorIs(t, context.Cause(held), ErrNotHeld, "who has called for the release does not work on")
		_, err = z.Observer().SetACL(a.Path, zk.WorldACL(zk.PermAll), -1)
		require.NoError(t, err)
		require.ErrorIs(t, as(other, a).Unlock(held), ErrNotHeld, "the exit that was not refused")
		require.NoError(t, as(last, a).Unlock(held), "the exit that was")
		require.ErrorIs(t, as(last, a).Unlock(held), ErrNotHeld, "once more")
	})
}

// The lease runs out while the holder is cut off, and the session lives on. Who
// is told may still be stopping: nobody gets in beside it before it has released
// the lock as often as it has locked it, neither elsewhere nor in its own process.
func TestALostHoldKeepsTheOthersOutUntilItsLastRelease(t *testing.T) {
	eachKind(t, func(t *testing.T, z *zktest.Zoo, kind string) {
		short := zktest.Handshake{Tell: 2 * zktest.MortalTimeout} // and the server keeps the session for longer
		a := subject.JoinAs(z, "the holder", lockcheck.Seat{Through: short.Through})
		held := as(kind, a).Acquire().Held()
		inner, err := a.Reader.Lock(held)
		require.NoError(t, err)
		var behind []*zktest.Turn
		wait := func(m *zktest.Member) {
			turn := m.Start()
			turn.MustWait("the holder")
			behind = append(behind, turn)
		}
		wait(subject.Join(z, "the writer behind"))
		a.Tap.Cut()
		zktest.AwaitChan(z, "the holder to be told", held.Done())
		require.ErrorIs(t, context.Cause(held), ErrLost, "the lease ran out")
		require.ErrorIs(t, context.Cause(inner), ErrLost, "and what is inside the hold ends as well")
		a.Tap.Restore()
		for _, ctx := range []context.Context{held, context.WithoutCancel(held)} {
			_, err = as(kind, a).Lock(ctx)
			require.ErrorIs(t, err, ErrLost, "locked again inside a lost hold")
		}
		wait(a.Reader)
		for _, exit := range []string{kind, read} {
			for _, b := range behind {
				b.MustWait("the holder's last release")
			}
			require.ErrorIs(t, as(exit, a).Unlock(held), ErrLost, "each release of a lost hold")
		}
		require.ErrorIs(t, as(kind, a).Unlock(held), ErrNotHeld, "one release more")
		for _, b := range behind {
			b.Release()
		}
		require.Equal(t, a.ID, a.SessionID(), "the holder's session: the znode must not need its end")
	})
}

func TestTryAsksOnceOrForAWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holders string // who holds, and then waits
		kind    string
		got     bool
	}{
		{"", read, true}, {"", write, true},
		{"R", read, true}, {"R", write, false},
		{"W", read, false}, {"W", write, false},
		{"RW", read, false}, {"RW", write, false}, // no overtaking the writer
	} {
		z := zktest.New(t)
		queue(z, subject, c.holders)
		a := as(c.kind, subject.Join(z, "the one that tries"))
		awhile := 20 * time.Millisecond
		if c.got {
			awhile = time.Hour // which it does not take
		}
		for _, wait := range []time.Duration{0, awhile} {
			mark := a.Tap.Mark()
			held, err := a.TryLock(z.Ctx, wait)
			if c.got {
				require.NoError(t, err, "%q in the queue, try %s for %v", c.holders, c.kind, wait)
				require.NoError(t, a.Unlock(held))
			} else {
				require.ErrorIs(t, err, ErrLocked, "%q in the queue, try %s for %v", c.holders, c.kind, wait)
			}
			z.Await("what tried to leave the queue", func() bool { return len(a.Queue()) == len(c.holders) })
			if wait == 0 {
				require.Zero(t, a.Requests(mark)[wiretap.GetData], "watches set by a try that asks once")
			}
		}
	}
}
