package childrenwatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// join gives a client the lock of its test.
func join(z *zktest.Zoo) func(*zktest.Client) zktest.Locker {
	return func(c *zktest.Client) zktest.Locker { return New(c.Conn, z.Root+"/lock") }
}

// Step 2's waiters list the directory all the time. These sleep.
func TestWaitersAreSilent(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := z.Line(10, join(z))
	count := z.Count(line[1:]...)
	time.Sleep(time.Second) // the length of the measurement
	sent := count()
	chapter.Says(t, "10 waiters, 1 second: %d requests but pings", sent.All())
	if sent.All() != 0 {
		t.Errorf("they sent %v", sent.Requests)
	}
}

// One release is of use to one client. It wakes all of them.
func TestReleaseWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 50} {
		z := zktest.New(t)
		line := z.Line(n, join(z))
		count := z.Count(line[1:]...)
		line = z.Pass(line)
		woken := count()
		chapter.Says(t, "%d waiters, one release: %d notifications, %d lists, %d names and %d bytes in them",
			n, woken.Notifications, woken.Requests[wiretap.GetChildren], woken.Names, listBytes(line))
		if woken.Notifications != n || woken.All() != n || woken.Names != n*n {
			t.Errorf("want %d notifications, %d requests and %d names: got %+v", n, n, n*n, woken)
		}
	}
}

// listBytes is the length of the last list that each of them has received.
func listBytes(members []*zktest.Member) (sum int) {
	for _, m := range members {
		last := 0
		for _, f := range m.Tap.Frames() {
			if f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren {
				last = f.Bytes
			}
		}
		sum += last
	}
	return sum
}

// A newcomer stands behind everybody else and is nobody's business.
func TestArrivalWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := z.Line(10, join(z))
	count := z.Count(line...)
	newcomer := z.Enter("the newcomer", join(z))
	z.Settle(append(line[1:], newcomer)...)
	woken := count()
	chapter.Says(t, "10 waiters, one arrival: %d notifications, %d lists", woken.Notifications, woken.Requests[wiretap.GetChildren])
	if woken.Notifications != 10 || woken.All() != 10 {
		t.Errorf("want 10 notifications and 10 requests: got %+v", woken)
	}
}

// A queue of n is served, each release after all have looked and gone back to
// sleep. With k waiting, a release sends k notifications: n + ... + 1 in all.
//
// There is one more a holder. The list that lets a waiter in has set a watch,
// too, which fires at the next change: here, the holder's own release. (The
// very first holder's fired when the first waiter arrived.)
//
// The server's own counter knows both: zk_sum_node_children_watch_count adds
// up, over all changes of a directory, how many watches each has fired. It
// counts for all clients, so this test runs alone.
func TestQueueDrained(t *testing.T) {
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := z.Line(n, join(z))
		before := fired(t, z)
		waiters, holders, lists, names := 0, 0, 0, 0
		for len(line) > 0 {
			holder, waiting := z.Count(line[0]), z.Count(line[1:]...)
			line = z.Pass(line)
			woken := waiting()
			waiters += woken.Notifications
			lists += woken.Requests[wiretap.GetChildren]
			names += woken.Names
			holders += holder().Notifications
		}
		server := fired(t, z) - before
		chapter.Says(t, "%d waiters, all served: %d notifications to waiters, %d to holders, %d by the server's own count", n, waiters, holders, server)
		chapter.Says(t, "%d waiters, all served: %d lists, %d names in them", n, lists, names)
		if want := n * (n + 1) / 2; waiters != want || lists != want || holders != n || server != int64(waiters+holders) {
			t.Errorf("want %d to waiters, as many lists, %d to holders, and the server's count to be the sum", want, n)
		}
	}
}

// fired is the number of children watches that the server has fired.
func fired(t *testing.T, z *zktest.Zoo) int64 {
	t.Helper()
	counters, err := z.Mntr()
	if err != nil {
		t.Fatal(err)
	}
	return counters["zk_sum_node_children_watch_count"]
}

// Between the list that a waiter reads and its going to sleep, the holder
// releases. The server sets the watch in the same step as it makes the list,
// so a list without the release comes with a watch that the release fires.
func TestReleaseIsNeverMissed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when string
		hold func(*wiretap.Tap) *wiretap.Trap
		want string
	}{
		{"after the server made the list", holdReply, "a list of 2, a notification, a list of 1"},
		{"before the server makes the list", holdRequest, "a list of 1"},
	} {
		z := zktest.New(t)
		holder := z.Line(0, join(z))[0]
		waiter := z.Client("the waiter (the holder released " + c.when + ")")
		slow := c.hold(waiter.Tap)
		attempt := z.Go(waiter, join(z)(waiter).Lock)
		zktest.AwaitChan(z, "the waiter's list to be under way", slow.Sprung())
		if err := holder.Unlock(); err != nil {
			t.Fatal(err)
		}
		slow.Let()
		attempt.Acquired()
		told := received(waiter)
		chapter.Says(t, "a release %s: the waiter gets %s, and the lock", c.when, told)
		if told != c.want {
			t.Errorf("want %s", c.want)
		}
	}
}

func holdReply(tap *wiretap.Tap) *wiretap.Trap   { return tap.HoldReply(wiretap.GetChildren, 1) }
func holdRequest(tap *wiretap.Tap) *wiretap.Trap { return tap.HoldRequest(wiretap.GetChildren, 1) }

// received tells what lists and notifications a client has got, in order.
func received(c *zktest.Client) string {
	var story []string
	for _, f := range c.Tap.Frames() {
		switch {
		case f.Kind == wiretap.Notification:
			story = append(story, "a notification")
		case f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren:
			story = append(story, fmt.Sprintf("a list of %d", f.Names))
		}
	}
	return strings.Join(story, ", ")
}
