package predecessorwatch

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

// Three of the twelve who wait expire in one moment: each is of interest to the one
// behind it.
func TestDeathsWakeThoseBehind(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 12)
	alive := slices.Concat(line[1:2], line[3:6], line[7:10], line[11:])
	count := z.Count(alive...)
	z.Expire(line[2].Client, line[6].Client, line[10].Client)
	z.Settle(alive...)
	woken := count()
	chapter.Says(
		t,
		"12 waiters, 3 expire in one moment: %d notifications, %d lists",
		woken.Notifications,
		woken.Requests[wiretap.GetChildren],
	)
}

// Each waiter watches one znode, and each znode is watched by one waiter. So a
// release wakes one client, and one client lists, however long the queue is.
//
// The server's own counter agrees: zk_sum_node_deleted_watch_count adds up,
// over all znodes deleted, how many watches each has fired. It counts for all
// clients, so this server is the test's own.
func TestReleaseWakesOne(t *testing.T) {
	t.Parallel()
	server, err := zkserver.StartWith(t.Context(), zkserver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	fired := func() int64 {
		counters, err := server.Mntr()
		require.NoError(t, err)
		return counters["zk_sum_node_deleted_watch_count"]
	}
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.NewOn(t, server)
		line := lock.Line(z, n)
		before, count := fired(), z.Count(line[1:]...)
		line = z.Pass(line)
		woken := count()
		chapter.Says(t, "%d waiters, one release: %d notification, %d list, %d names in it",
			n, woken.Notifications, woken.Requests[wiretap.GetChildren], woken.Names)
		for len(line) > 0 {
			line = z.Pass(line)
		}
		all, byServer := count(), fired()-before
		lists := all.Requests[wiretap.GetChildren]
		chapter.Says(
			t,
			"%d waiters, all served: %d notifications, %d by the server's own count",
			n,
			all.Notifications,
			byServer,
		)
		chapter.Says(t, "%d waiters, all served: %d lists, %d names in them", n, lists, all.Names)
		assert.Equal(t, n, all.Notifications, "notifications")
		assert.EqualValues(t, n, byServer, "notifications by the server's own count")
		assert.Equal(t, n, lists, "lists")
	}
}

// A watch on a znode that does not exist waits for it to be made. A directory
// gives no number twice before the last one, until it is made again. So that
// watch would stay for as long as its session does. GetW fails without one.
func TestWatchOnAGoneZnode(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, gone := z.Client("the client"), z.Root+"/lock-0000000007"
	watches := func() int { // by the server's own list
		sessions, err := z.Watches()
		require.NoError(t, err)
		return len(sessions[gone])
	}
	_, _, _, err := c.GetW(gone)
	require.ErrorIs(t, err, zk.ErrNoNode, "what GetW answers")
	got := watches()
	_, _, _, err = c.ExistsW(gone)
	require.NoError(t, err, "what ExistsW answers")
	exists := watches()
	chapter.Says(t, "a znode that is gone: GetW leaves %d watches at the server, ExistsW %d", got, exists)
}

func TestArrivalWakesNobody(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 10)
	count := z.Count(line...)
	newcomer := lock.Join(z, "the newcomer").Start()
	z.Settle(append(line[1:], newcomer)...)
	woken := count()
	chapter.Says(
		t,
		"10 waiters, one arrival: %d notifications, %d lists",
		woken.Notifications,
		woken.Requests[wiretap.GetChildren],
	)
}

// What a lock and an unlock cost the client, the directory being there.
func TestRequestsForOneTenure(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := lock.Join(z, "A")
	a.Acquire().Release() // makes the directory
	mark := a.Tap.Mark()
	a.Acquire().Release()
	alone := a.Asked(mark)

	line := lock.Line(z, 1)
	z.Pass(z.Pass(line))
	waited := line[1].Asked(0)
	chapter.Says(t, "lock and unlock, alone: %d requests: %s", len(alone), strings.Join(alone, ", "))
	chapter.Says(t, "lock and unlock, after a wait: %d requests: %s", len(waited), strings.Join(waited, ", "))
}

// The second in the queue dies. The third watched it and is woken, but it is
// not the third's turn: it looks again, and watches the holder.
func TestWaiterDies(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 2)
	third := line[2]
	count := z.Count(third)
	line[1].Client.Close()
	z.Settle(third)
	told := count()
	chapter.Says(t, "a waiter dies: the one behind it gets %d notification, sends %s, and waits on",
		told.Notifications, strings.Join(told.Asked, ", "))
	line[0].Release()
	third.Acquired()
}

// The server carries out a create, and the connection breaks before it can say
// so. The znode stands in the queue like any other; its owner does not know it
// and queues up behind it. Its session lives, so the znode stays.
func TestStillBrokenLostCreateReply(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	unlucky, other := lock.Join(z, "the unlucky client"), lock.Join(z, "the other client")
	other.Acquire().Release() // makes the directory
	unlucky.Tap.LoseReply(wiretap.Create, 1)
	require.ErrorIs(t, unlucky.Start().Err(), zk.ErrConnectionClosed, "what Lock answers, its create being unanswered")

	unlucky.Start().MustWait("a znode of its own")
	waiting := other.Start()
	waiting.MustWait("the unlucky client")
	sessions, err := z.Sessions()
	require.NoError(t, err)
	chapter.Says(
		t,
		"a lost reply to create: %d znodes of one session stand in the queue, nobody holds the lock, and everyone waits",
		len(sessions[unlucky.ID]),
	)

	unlucky.Client.Close() // what a restart does
	waiting.Acquired()
	chapter.Says(t, "the lock comes free when that session ends")
}

// The lock does not know who calls it. A holder that locks again is one more
// waiter, behind itself.
func TestStillBrokenLockingTwice(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	first := lock.Join(z, "the holder").Acquire()
	znode := first.Znode()
	second := first.Start()
	second.MustWait("the first hold")
	assert.Equal(t, []string{znode}, first.Tap.Watched(), "what the second Lock waits for")
	chapter.Says(t, "locking twice: the holder has %d znodes in the queue, and waits for its own", len(first.Queue()))

	assert.Error(t, second.Cancel(), "the second Lock")
	assert.Len(t, first.Queue(), 1, "the queue when the second Lock has given up")
	first.Release()
}
