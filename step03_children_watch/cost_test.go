package childrenwatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

// Step 2's waiters list the directory all the time. These sleep. But a newcomer
// wakes them all, though it stands behind everybody else and is nobody's business.
func TestWaitersAreSilentUntilSomebodyArrives(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 10)
	count := z.Count(line...)
	time.Sleep(time.Second) // the length of the measurement
	chapter.Says(t, "10 waiters, 1 second: %d requests but pings", count().All())
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

// One release is of use to one client. It wakes all of them.
func TestReleaseWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 50} {
		z := zktest.New(t)
		line := lock.Line(z, n)
		count := z.Count(line[1:]...)
		line = z.Pass(line)
		woken, bytes := count(), 0
		for _, w := range line {
			all := received(w)
			bytes += all[len(all)-1].Bytes // the last is a list
		}
		chapter.Says(t, "%d waiters, one release: %d notifications, %d lists, %d names and %d bytes in them",
			n, woken.Notifications, woken.Requests[wiretap.GetChildren], woken.Names, bytes)
		assert.Equal(t, n, woken.All(), "requests: a list for each waiter, and nothing else")
	}
}

// Three of the twelve who wait expire: in one moment, before anybody has looked, and
// one after the other.
func TestDeathsWakeEveryWaiter(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"in one moment", "one after the other"} {
		z := zktest.New(t)
		line := lock.Line(z, 12)
		dead, alive := []*zktest.Client{line[1].Client, line[2].Client, line[3].Client}, line[4:]
		count := z.Count(alive...)
		if at == "in one moment" {
			var looks []*wiretap.Trap
			for _, waiter := range alive {
				looks = append(looks, waiter.Tap.HoldRequest(wiretap.GetChildren, 1))
			}
			z.Expire(dead...)
			for _, look := range looks {
				look.Let()
			}
			z.Settle(alive...)
		} else {
			for _, d := range dead {
				z.Expire(d)
				z.Settle(alive...)
			}
		}
		woken := count()
		chapter.Says(
			t,
			"12 waiters, 3 expire %s: %d notifications, %d lists",
			at,
			woken.Notifications,
			woken.Requests[wiretap.GetChildren],
		)
	}
}

// A queue of n is served, each release after all have looked and gone back to
// sleep: n + ... + 1 notifications. There is one more a holder: the list that
// let it in has set a watch, too, which its own release fires. (The very first
// holder's fired when the first waiter arrived.)
//
// The server's own counter knows both: zk_sum_node_children_watch_count adds
// up, over all changes of a directory, how many watches each has fired. It
// counts for all clients, so this server is the test's own.
func TestQueueDrained(t *testing.T) {
	t.Parallel()
	server, err := zkserver.StartWith(t.Context(), zkserver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	fired := func() int64 {
		counters, err := server.Mntr()
		require.NoError(t, err)
		return counters["zk_sum_node_children_watch_count"]
	}
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.NewOn(t, server)
		line := lock.Line(z, n)
		before, all, holders := fired(), z.Count(line...), 0
		for len(line) > 0 {
			holder := z.Count(line[0])
			line = z.Pass(line)
			holders += holder().Notifications
		}
		sum, byServer := all(), fired()-before
		waiters, lists := sum.Notifications-holders, sum.Requests[wiretap.GetChildren]
		chapter.Says(
			t,
			"%d waiters, all served: %d notifications to waiters, %d to holders, %d by the server's own count",
			n,
			waiters,
			holders,
			byServer,
		)
		chapter.Says(t, "%d waiters, all served: %d lists, %d names in them", n, lists, sum.Names)
		assert.Equal(t, n*(n+1)/2, waiters, "notifications to waiters: n + ... + 1")
		assert.Equal(t, waiters, lists, "lists: one for each of these")
		assert.Equal(t, n, holders, "notifications to holders: to all but the first")
		assert.EqualValues(t, waiters+holders, byServer, "notifications by the server's own count")
	}
}

// received are the notifications and lists that a client has got, in order.
func received(turn *zktest.Turn) (frames []wiretap.Frame) {
	for _, f := range turn.Tap.Frames() {
		if f.Kind == wiretap.Notification || f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren {
			frames = append(frames, f)
		}
	}
	return frames
}

// Between the list that a waiter reads and its going to sleep, the holder
// releases. The server sets the watch in the same step as it makes the list,
// so a list without the release comes with a watch that the release fires.
func TestReleaseIsNeverMissed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when string
		hold func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap
	}{
		{"after the server made the list", (*wiretap.Tap).HoldReply},
		{"before the server makes the list", (*wiretap.Tap).HoldRequest},
	} {
		z := zktest.New(t)
		holder := lock.Join(z, "the holder").Acquire()
		waiter := lock.Join(z, "the waiter (the holder released "+c.when+")")
		slow := c.hold(waiter.Tap, wiretap.GetChildren, 1)
		waiting := waiter.Start()
		zktest.AwaitChan(z, "the waiter's list to be under way", slow.Sprung())
		holder.Release()
		slow.Let()
		waiting.Acquired()
		var told []string
		for _, f := range received(waiting) {
			if f.Kind == wiretap.Notification {
				told = append(told, "a notification")
			} else {
				told = append(told, fmt.Sprintf("a list of %d", f.Names))
			}
		}
		chapter.Says(t, "a release %s: the waiter gets %s, and the lock", c.when, strings.Join(told, ", "))
	}
}
