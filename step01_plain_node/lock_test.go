package plainnode

import (
	"strings"
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
	zktest.Child("holder", ephemeral.Hold)
	zktest.Main(m)
}

// The three kinds of this step's lock.
var (
	plain     = property.Over("New", New)
	ephemeral = property.Over("NewEphemeral", NewEphemeral)
	watched   = property.Over("NewWatched", NewWatched)
)

func init() {
	for _, kind := range []*property.Subject{&plain, &ephemeral, &watched} {
		kind.Znode, kind.NotHeld = true, zk.ErrNoNode
	}
}

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) {
	property.Holds(t, plain,
		property.OneHolder,
		property.GivingUp,
		property.Unrelated,
		property.NoWatchLeft,
		property.LongHold,
		property.ParentsMade,
		property.ManyShare,
		property.WhateverIsInIt,
		property.LostWhileWaiting,
		property.ReleaseSeen,
		property.FailsClean,
		property.UnlockRepeated,
		property.LostTold,
		property.UnlockTooMany,
		property.QuietAfter,
		property.OwnPlace,
		property.OldZnode,
	)
	property.Lacks(t, plain,
		property.CrashFrees,
		property.FirstCome,
		property.NoStranger,
		property.SilentWait,
		property.LostCreateReply,
		property.LostDeleteReply,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.Shared,
		property.LineBreaks,
		property.GivesUpAtOnce,
	)
	property.DoesNotArise(t, plain,
		property.WaiterCrash, property.NotBeside, // here a waiter has no znode
		property.WakesOne, property.ArrivalWakesNobody, // here nobody sleeps
	)
}

// NewEphemeral gives the znode to the session of its holder.
func TestPropertiesOfNewEphemeral(t *testing.T) {
	property.Holds(t, ephemeral,
		// which New lacks
		property.CrashFrees,
		property.OneHolder,
		property.GivingUp,
		property.LongHold,
		property.ParentsMade,
		property.ManyShare,
		property.WhateverIsInIt,
		property.LostWhileWaiting,
		property.ReleaseSeen,
		property.FailsClean,
		property.UnlockRepeated,
		property.LostTold,
		property.UnlockTooMany,
		property.QuietAfter,
		property.OwnPlace,
		property.OldZnode,
	)
}

// NewWatched watches the znode in place of asking for it.
func TestPropertiesOfNewWatched(t *testing.T) {
	property.Holds(t, watched,
		property.OneHolder,
		property.CrashFrees,
		property.GivingUp,
		property.Unrelated,
		property.SilentWait,
		property.ArrivalWakesNobody,
		property.NoWatchLeft,
		property.LongHold,
		property.ParentsMade,
		property.ManyShare,
		property.WhateverIsInIt,
		property.LostWhileWaiting,
		property.ReleaseSeen,
		property.FailsClean,
		property.UnlockRepeated,
		property.LostTold,
		property.UnlockTooMany,
		property.QuietAfter,
		property.OwnPlace,
		property.OldZnode,
		property.ReleasedWhileCutOff,
	)
	property.Lacks(t, watched,
		property.FirstCome,
		property.NoStranger,
		property.WakesOne,
		property.LostCreateReply,
		property.LostDeleteReply,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.Shared,
		property.LineBreaks,
		property.GivesUpAtOnce,
	)
	property.DoesNotArise(t, watched, property.WaiterCrash, property.NotBeside)
}

func TestLockIsOneCreateAndUnlockOneDelete(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a := kind.Join(z, "A")
		turn := a.Acquire()
		owner, there := z.Owner(a.Path)
		assert.True(t, there, "%s: the lock is held, and its znode is there", kind.Name)
		assert.Equal(
			t,
			map[string]int64{"New": 0, "NewEphemeral": a.ID}[kind.Name],
			owner,
			"%s: the session that the znode belongs to",
			kind.Name,
		)
		turn.Release()
		assert.Empty(t, z.Names(z.Root), "%s: what is left when the lock is released", kind.Name)
		assert.Equal(
			t,
			map[wiretap.Op]int{wiretap.Create: 1, wiretap.Delete: 1},
			a.Requests(0),
			"%s: the requests",
			kind.Name,
		)
	}
}

// A waiter that rests for an hour is told at once that its context has ended.
func TestGivingUpDoesNotWaitForTheNextTry(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	plain.Join(z, "A").Acquire()
	patient := property.Over("an hour between two tries", func(conn *zk.Conn, path string) *Lock {
		l := New(conn, path)
		l.poll = time.Hour
		return l
	})
	b := patient.Join(z, "B")
	waiting := b.Start()
	waiting.Queued()
	z.Barrier(b.Client)
	assert.EqualError(t, waiting.Cancel(), "zklock: lock "+b.Path+": context canceled")
	assert.Equal(t, 1, b.Requests(0)[wiretap.Create], "tries within the hour")
}

// The znode goes before B has set its watch on it. Then C, who waits, closes its session.
func TestAWaiterThatWatchesIsToldOfAnEnd(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := watched.Join(z, "A"), watched.Join(z, "B"), watched.Join(z, "C")
	held, slow := a.Acquire(), b.Tap.HoldRequest(wiretap.GetData, 1)
	second := b.Start()
	zktest.AwaitChan(z, "B to be about to watch", slow.Sprung())
	held.Release()
	slow.Let()
	second.Acquired()
	third := c.Start()
	third.MustWait("B holds the lock")
	c.Session.Close()
	assert.ErrorContains(t, third.Err(), "zklock: lock "+c.Path+": ")
	second.Release()
}

// Whoever puts a znode below the lock's keeps it from being deleted.
func TestUnlockSaysWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := plain.Join(z, "A")
	turn := a.Acquire()
	_, err := z.Observer().Create(a.Path+"/note", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	err = a.Unlock(turn.Held())
	assert.ErrorIs(t, err, zk.ErrNotEmpty)
	assert.ErrorContains(t, err, "zklock: unlock "+a.Path+": ")
	require.NoError(t, z.Observer().Delete(a.Path+"/note", -1))
	turn.Release()
}

// A server that reads a request of more than 1 MB hangs up.
func TestAPathLongerThanARequestIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := plain.JoinAs(z, "A", property.Seat{Path: z.Root + "/" + strings.Repeat("k", 1_100_000)})
	err := a.Start().Err()
	require.ErrorContains(t, err, "bytes, and 500000 are the most")
	assert.Less(t, len(err.Error()), 200, "bytes of the error: it does not repeat the path")
	assert.Empty(t, a.Asked(0), "requests")
}
