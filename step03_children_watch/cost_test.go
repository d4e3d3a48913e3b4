// How to read these tests: the head of ../step01_plain_node/lock_test.go explains their words.

package childrenwatch

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Step 2's waiters poll: they list the directory all the time.
func TestWaitersAreSilent(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 10)
	count := z.Count(line...)
	time.Sleep(time.Second) // the measure
	requests := count().All()
	assert.Zero(t, requests, "requests of the holder and of the waiters, in one second")
	chapter.Says(t, "10 waiters, 1 second: %d requests besides pings", requests)
}

// A new client is the last in the queue.
func TestStillBrokenAnArrivalWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	const n = 10
	z := zktest.New(t)
	line := lock.Line(z, n)
	waiting := line[1:]
	count := z.Count(waiting...)
	newcomer := lock.Join(z, "the newcomer").Start()
	z.Settle(append(waiting, newcomer)...)
	woken := count()
	lists := woken.Requests[wiretap.GetChildren]
	assert.Equal(t, n, woken.Notifications, "notifications to the waiters: one to each")
	assert.Equal(t, n, lists, "lists that they request: one each")
	chapter.Says(t, "%d waiters, one arrival: %d notifications, %d lists", n, woken.Notifications, lists)
}

// One release helps one client. It wakes all of them.
func TestStillBrokenAReleaseWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := lock.Line(z, n)
		waiting := line[1:]
		count := z.Count(waiting...)
		z.Pass(line)
		woken := count()
		lists := woken.Requests[wiretap.GetChildren]
		assert.Equal(t, n, woken.Notifications, "notifications: one to each waiter")
		assert.Equal(t, n, lists, "lists: one for each waiter")
		assert.Equal(t, n*n, woken.Names, "names: each list has all that are left")
		chapter.Says(t, "%d waiters, one release: %d notifications, %d lists, %d names in them",
			n, woken.Notifications, lists, woken.Names)
	}
}

// Three of twelve waiters expire, and each of the others lists after every crash.
func TestStillBrokenEachCrashWakesEveryWaiter(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dead, alive := threeOfTwelve(z)
	count := z.Count(alive...)
	for _, d := range dead {
		z.Expire(d.Client)
		z.Settle(alive...)
	}
	woken := count()
	assert.Equal(t, len(dead)*len(alive), woken.Notifications, "notifications: one per crash, to each of the others")
	chapter.Says(t, "%d waiters, %d expire one after the other: %d notifications to the %d others, %d lists",
		len(dead)+len(alive), len(dead), woken.Notifications, len(alive), woken.Requests[wiretap.GetChildren])
}

// Three of twelve waiters are disconnected: nobody is notified. Then their sessions expire all at once. One notification
// may stand for several deletions: so each of the others gets at least one, and at most one for each.
func TestStillBrokenCrashesAtOnceWakeEveryWaiter(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dead, alive := threeOfTwelve(z)
	count := z.Count(alive...)
	var clients []*zktest.Client
	for _, d := range dead {
		d.Tap.Cut()
		z.Await("the client to notice", func() bool { return d.State() != zk.StateHasSession })
		clients = append(clients, d.Client)
	}
	assert.Zero(t, count().Notifications, "notifications while the sessions live")
	z.Expire(clients...)
	z.Settle(alive...)
	told := count().Notifications
	assert.GreaterOrEqual(t, told, len(alive), "notifications: one to each of the others")
	assert.LessOrEqual(t, told, len(dead)*len(alive), "notifications: one per crash, to each of the others")
}

// threeOfTwelve brings twelve waiters to a held lock: the first three, which will die, and the others.
func threeOfTwelve(z *zktest.Zoo) (dead, alive []*zktest.Turn) {
	waiters := lock.Line(z, 12)[1:]
	return waiters[:3], waiters[3:]
}

// A queue of n is served, each release after all have listed and sleep again. At the last
// release one waiter is left: n + (n-1) + ... + 1 notifications.
//
// Each holder gets one more: the list that showed its turn also set a watch, and its own
// release fires that. The very first holder's watch fired when the first waiter arrived.
func TestStillBrokenServingAllCostsTheSquareOfThem(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := lock.Line(z, n)
		all, toHolders := z.Count(line...), 0
		for len(line) > 0 {
			holder := z.Count(line[0])
			line = z.Pass(line)
			toHolders += holder().Notifications
		}
		sum := all()
		toWaiters, lists := sum.Notifications-toHolders, sum.Requests[wiretap.GetChildren]
		assert.Equal(t, n*(n+1)/2, toWaiters, "notifications to waiters: n + ... + 1")
		assert.Equal(t, toWaiters, lists, "lists: one after each of these")
		assert.Equal(t, n, toHolders, "notifications to holders: to all but the very first")
		chapter.Says(t, "%d waiters, all served: %d notifications to waiters, %d to holders", n, toWaiters, toHolders)
		chapter.Says(t, "%d waiters, all served: %d lists, %d names in them", n, lists, sum.Names)
	}
}

// All requests of the waiters, arrivals included, when they arrive one after another. One waiter costs one request less
// than in step 4, because the list sets the watch; two cost the same; from three on, those who are woken in vain cost
// more.
func TestRequestsUntilAllAreServed(t *testing.T) {
	t.Parallel()
	for i, want := range []int{4, 10, 18} {
		n := i + 1
		z := zktest.New(t)
		line := []*zktest.Turn{lock.Join(z, "the holder").Acquire()}
		for len(line) <= n {
			waiter := lock.Join(z, "a waiter").Start()
			waiter.Queued()
			line = append(line, waiter)
			z.Settle(line[1:]...)
		}
		waiters := line[1:]
		for len(line) > 0 {
			line = z.Pass(line)
		}
		sent := 0
		for _, waiter := range waiters {
			sent += len(waiter.Asked(0))
		}
		assert.Equal(t, want, sent, "requests of %d waiters", n)
		last := []string{"create"}
		for range n + 1 {
			last = append(last, "getChildren")
		}
		assert.Equal(t, append(last, "delete"), waiters[i].Asked(0), "the last of %d waiters", n)
	}
}

// The server makes the list and sets the watch in one step. So the list of a waiter is from
// before the release, and then the watch fires; or it is from after it.
func TestAReleaseAfterTheListIsNotMissed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	held, waiter := lock.Join(z, "the holder").Acquire(), lock.Join(z, "the waiter")
	answer := waiter.Tap.HoldReply(wiretap.GetChildren, 1)
	waiting := waiter.Start()
	zktest.AwaitChan(z, "the server to make the list", answer.Sprung())
	held.Release()
	answer.Let()
	waiting.Acquired()
	seen := wiretap.Count(waiter.Tap.Frames())
	assert.Equal(t, []string{"create", "getChildren", "getChildren"}, seen.Asked, "requests: it lists again")
	assert.Equal(t, 1, seen.Notifications, "notifications to the waiter")
	chapter.Says(t,
		"a release after the server has made the list: the waiter is notified, lists again, and holds the lock")
}

func TestAReleaseBeforeTheListIsNotMissed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	held, waiter := lock.Join(z, "the holder").Acquire(), lock.Join(z, "the waiter")
	request := waiter.Tap.HoldRequest(wiretap.GetChildren, 1)
	waiting := waiter.Start()
	zktest.AwaitChan(z, "the waiter to ask for the list", request.Sprung())
	held.Release()
	request.Let()
	waiting.Acquired()
	seen := wiretap.Count(waiter.Tap.Frames())
	assert.Equal(t, []string{"create", "getChildren"}, seen.Asked, "requests: it lists once")
	assert.Zero(t, seen.Notifications, "notifications to the waiter")
	chapter.Says(t, "a release before the server makes the list: the waiter lists once, and holds the lock")
}
