package childrenwatch

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

var watched = property.Over("NewWatched", NewWatched)

func init() { watched.Znode, watched.NotHeld = true, zk.ErrNoNode }

// It differs from step 1's NewEphemeral in how it waits, and in nothing else.
func TestPropertiesOfNewWatched(t *testing.T) {
	property.Holds(t, watched,
		// which step 1 lacks
		property.SilentWait,
		property.ArrivalWakesNobody,
		// as NewEphemeral
		property.OneHolder,
		property.CrashFrees,
		property.GivingUp,
		property.Unrelated,
		property.NoWatchLeft,
		property.LongHold,
		property.LostWhileWaiting,
		property.ReleaseSeen,
		property.FailsClean,
		property.ReleasedWhileCutOff,
	)
	property.Lacks(t, watched, property.FirstCome, property.OnlyHolder, property.WakesOne)
}

func TestNewWatchedIsOneCreateAndOneDelete(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := watched.Join(z, "A")
	held := a.Acquire()
	_, there := z.Owner(a.Path)
	assert.True(t, there, "the znode exists while A holds the lock")
	held.Release()
	_, there = z.Owner(a.Path)
	assert.False(t, there, "the znode exists after Unlock")
	assert.Equal(t, []string{"create", "delete"}, a.Asked(0), "A's requests")
}

// A releases after B's create has failed, and before B has listed the directory.
func TestNewWatchedSeesAReleaseBeforeTheWatch(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := watched.Join(z, "A"), watched.Join(z, "B")
	held := a.Acquire()
	list := b.Tap.HoldRequest(wiretap.GetChildren, 1)
	second := b.Start()
	zktest.AwaitChan(z, "B's list to be on its way", list.Sprung())
	held.Release()
	list.Let()
	second.Acquired()
}

func TestAWaiterOfNewWatchedLearnsThatItsSessionIsClosed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := watched.Join(z, "A"), watched.Join(z, "B")
	a.Acquire()
	waiting := b.Start()
	waiting.MustWait("A to release")
	b.Session.Close()
	assert.ErrorContains(t, waiting.Err(), "zklock: lock "+b.Path+": ", "B's Lock, after its session was closed")
}

func TestNewWatchedRefusesABadArgument(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := z.Client("A")
	require.ErrorContains(t, NewWatched(a.Conn, "locks/orders").Lock(z.Ctx), "want an absolute path below the root")
	require.ErrorContains(t, NewWatched(a.Conn, "locks/orders").Unlock(), "want an absolute path below the root")
	assert.Empty(t, wiretap.Count(a.Tap.Frames()).Asked, "requests")
	property.BadInput(t, watched)
}

// All clients that watch the directory are notified when the znode is deleted, and all try to create it.
func TestStillBrokenWithoutAQueueAReleaseMakesEachWaiterWrite(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := watched.Line(z, n)
		holder, waiting := line[0], line[1:]
		count := z.Count(waiting...)
		holder.Release()
		z.Await("one of them to hold the lock", func() bool {
			return slices.ContainsFunc(waiting, (*zktest.Turn).Returned)
		})
		z.Settle(slices.DeleteFunc(slices.Clone(waiting), (*zktest.Turn).Returned)...)
		woken := count()
		creates := woken.Requests[wiretap.Create]
		assert.Equal(t, n, woken.Notifications, "notifications: one to each waiter")
		assert.Equal(t, n, creates, "creates: each waiter tries")
		chapter.Says(t, "NewWatched, %d waiters, one release: %d notifications, %d creates, and %d of them fail",
			n, woken.Notifications, creates, creates-1)
	}
}

// The same directory has another lock's znode, /locks/stock beside /locks/orders.
func TestStillBrokenWithoutAQueueALockBesideItWakesAll(t *testing.T) {
	t.Parallel()
	const n = 10
	z := zktest.New(t)
	line := watched.Line(z, n)
	waiting := line[1:]
	beside := watched.JoinAs(z, "the neighbour", property.Seat{Path: z.Root + "/the lock beside it"})
	count := z.Count(waiting...)
	held := beside.Acquire()
	z.Settle(waiting...)
	held.Release()
	z.Settle(waiting...)
	woken := count()
	creates := woken.Requests[wiretap.Create]
	assert.Equal(t, 2*n, woken.Notifications, "notifications: two to each waiter, about another lock")
	assert.Equal(t, 2*n, creates, "creates: each waiter tries each time, and fails")
	chapter.Says(t,
		"NewWatched, %d waiters, another lock in its directory is taken and released: %d notifications, %d creates, and all fail",
		n, woken.Notifications, creates)
}
