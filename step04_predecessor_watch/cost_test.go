package predecessorwatch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// join gives a client the lock of its test.
func join(z *zktest.Zoo) func(*zktest.Client) zktest.Locker {
	return func(c *zktest.Client) zktest.Locker { return New(c.Conn, z.Root+"/lock") }
}

// Each waiter watches one znode, and each znode is watched by one waiter. So a
// release wakes one client, however long the queue is.
//
// The server's own counter agrees: zk_sum_node_deleted_watch_count adds up,
// over all znodes deleted, how many watches each has fired. It counts for all
// clients, so this test runs alone.
func TestReleaseWakesOne(t *testing.T) {
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := z.Line(n, join(z))
		before := counter(t, z, "zk_sum_node_deleted_watch_count")
		notifications, lists, names := 0, 0, 0
		for len(line) > 1 {
			everybody, next := z.Count(line...), z.Count(line[1])
			line = z.Pass(line)
			woken := everybody()
			if woken.Notifications != 1 || next().Notifications != 1 {
				t.Fatalf("a release with %d waiting sent %d notifications, %d of them to the next in line; want 1, to the next", len(line), woken.Notifications, next().Notifications)
			}
			notifications += woken.Notifications
			lists += woken.Requests[wiretap.GetChildren]
			names += woken.Names
		}
		z.Pass(line)
		server := counter(t, z, "zk_sum_node_deleted_watch_count") - before
		chapter.Says(t, "%d waiters, all served: %d notifications, %d by the server's own count", n, notifications, server)
		chapter.Says(t, "%d waiters, all served: %d lists, %d names in them", n, lists, names)
		if notifications != n || lists != n || server != int64(n) {
			t.Errorf("want %d notifications and as many lists", n)
		}
	}
}

// counter is one of the server's own.
func counter(t *testing.T, z *zktest.Zoo, name string) int64 {
	t.Helper()
	counters, err := z.Mntr()
	if err != nil {
		t.Fatal(err)
	}
	return counters[name]
}

// A watch on a znode that does not exist waits for it to be made. A directory
// gives no number twice, so that watch would stay for as long as its session
// does. GetW fails without one. The server's count of watches is for all
// clients, so this test runs alone.
func TestWatchOnAGoneZnode(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	z.Await("the watches of earlier tests to be gone", func() bool { return counter(t, z, "zk_watch_count") == 0 })
	gone := z.Root + "/lock-0000000007"

	if _, _, _, err := c.GetW(gone); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("GetW answered %v", err)
	}
	got := counter(t, z, "zk_watch_count")
	if there, _, _, err := c.ExistsW(gone); there || err != nil {
		t.Errorf("ExistsW answered %v, %v", there, err)
	}
	exists := counter(t, z, "zk_watch_count")
	chapter.Says(t, "a znode that is gone: GetW leaves %d watches at the server, ExistsW %d", got, exists)
	if got != 0 || exists != 1 {
		t.Errorf("want 0 and 1")
	}
}

// Step 3's bill for one release grew with waiters × names. Here one client
// lists.
func TestReleaseIsOneList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 50} {
		z := zktest.New(t)
		line := z.Line(n, join(z))
		count := z.Count(line[1:]...)
		z.Pass(line)
		woken := count()
		chapter.Says(t, "%d waiters, one release: %d notification, %d list, %d names in it",
			n, woken.Notifications, woken.Requests[wiretap.GetChildren], woken.Names)
		if woken.Notifications != 1 || woken.All() != 1 || woken.Names != n {
			t.Errorf("want 1 notification, 1 request and %d names: got %+v", n, woken)
		}
	}
}

func TestArrivalWakesNobody(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := z.Line(10, join(z))
	count := z.Count(line...)
	newcomer := z.Enter("the newcomer", join(z))
	z.Settle(append(line[1:], newcomer)...)
	woken := count()
	chapter.Says(t, "10 waiters, one arrival: %d notifications, %d lists", woken.Notifications, woken.Requests[wiretap.GetChildren])
	if woken.Notifications != 0 || woken.All() != 0 {
		t.Errorf("want neither: got %+v", woken)
	}
}

// What a lock and an unlock cost the client, the directory being there.
func TestRequestsForOneTenure(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	first := z.Line(0, join(z)) // makes the directory
	z.Pass(first)
	mark := first[0].Tap.Mark()
	if err := first[0].Lock(z.Ctx); err != nil {
		t.Fatal(err)
	}
	z.Pass(first)
	alone := requests(first[0], mark)

	line := z.Line(1, join(z))
	z.Pass(z.Pass(line))
	waited := requests(line[1], 0)
	chapter.Says(t, "lock and unlock, alone: %d requests: %s", len(alone), strings.Join(alone, ", "))
	chapter.Says(t, "lock and unlock, after a wait: %d requests: %s", len(waited), strings.Join(waited, ", "))
	if len(alone) != 3 || len(waited) != 5 {
		t.Errorf("want 3 and 5")
	}
}

// requests lists what a client has asked since the mark, in order.
func requests(m *zktest.Member, mark int) (ops []string) {
	for _, f := range m.Tap.Since(mark) {
		if wiretap.Count([]wiretap.Frame{f}).All() == 1 { // neither a ping nor the test's own
			ops = append(ops, f.Op.String())
		}
	}
	return ops
}

// The second in the queue dies. The third watched it and is woken, but it is
// not the third's turn: it looks again, and watches the holder.
func TestWaiterDies(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := z.Line(2, join(z))
	holder, second, third := line[0], line[1], line[2]
	mark, count := third.Tap.Mark(), z.Count(third)
	second.Close()
	z.Settle(third)
	woken, asked := count().Notifications, requests(third, mark)
	chapter.Says(t, "a waiter dies: the one behind it gets %d notification, sends %s, and waits on",
		woken, strings.Join(asked, ", "))
	if woken != 1 || !slices.Equal(asked, []string{"getChildren", "getData"}) {
		t.Errorf("want 1 notification, one list and one new watch: got %d and %v", woken, asked)
	}
	z.Pass([]*zktest.Member{holder, third})
}

// The server carries out a create, and the connection breaks before it can say
// so. The znode stands in the queue like any other; its owner does not know it
// and queues up behind it. Its session lives, so the znode stays.
func TestStillBrokenLostCreateReply(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	unlucky, other := z.Client("the unlucky client"), z.Client("the other client")
	lock, dir := join(z)(unlucky), z.Root+"/lock"
	z.Pass(z.Line(0, join(z))) // makes the directory

	unlucky.Tap.LoseReply(wiretap.Create, 1)
	if err := lock.Lock(z.Ctx); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Fatalf("with the reply to its create lost, Lock answered %v", err)
	}
	again := z.Go(unlucky, lock.Lock)
	if how := again.Waits(); how != zktest.Silently {
		t.Fatalf("the unlucky client %v", how)
	}
	waiting := z.Go(other, join(z)(other).Lock)
	if how := waiting.Waits(); how != zktest.Silently {
		t.Fatalf("the other client %v", how)
	}
	own := 0
	for _, name := range z.Names(dir) {
		if owner, _ := z.Owner(dir + "/" + name); owner == unlucky.ID {
			own++
		}
	}
	chapter.Says(t, "a lost reply to create: %d znodes of one session stand in the queue, nobody holds the lock, and everyone waits", own)
	if own != 2 || len(z.Names(dir)) != 3 {
		t.Errorf("want 2 znodes of session %#x and 1 of the other: %v", unlucky.ID, z.Names(dir))
	}

	unlucky.Close() // what a restart does
	waiting.Acquired()
	chapter.Says(t, "the lock comes free when that session ends")
}

// The lock does not know who calls it. A holder that locks again is one more
// waiter, behind itself.
func TestStillBrokenLockingTwice(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder := z.Line(0, join(z))[0]
	dir := z.Root + "/lock"
	first := z.Names(dir)

	second := z.Go(holder.Client, holder.Lock)
	if how := second.Waits(); how != zktest.Silently {
		t.Fatalf("the second Lock of the holder %v", how)
	}
	watched := holder.Tap.Watched()
	chapter.Says(t, "locking twice: the holder has %d znodes in the queue, and waits for its own", len(z.Names(dir)))
	if len(first) != 1 || !slices.Equal(watched, []string{dir + "/" + first[0]}) || len(z.Names(dir)) != 2 {
		t.Errorf("want the second of two znodes to wait for %v: it watches %v", first, watched)
	}

	if err := second.Cancel(); err == nil {
		t.Error("the second Lock was let in")
	}
	if left := z.Names(dir); !slices.Equal(left, first) {
		t.Errorf("the second Lock was cancelled: want %v in the queue, not %v", first, left)
	}
	if err := holder.Unlock(); err != nil {
		t.Errorf("the first hold outlives the second try: Unlock answered %v", err)
	}
	z.Barrier(holder.Client)
	if left := holder.Tap.Watched(); len(left) > 0 {
		t.Errorf("left at the server: watches on %v", left)
	}
}
