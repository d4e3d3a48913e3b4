// How to read these tests: the head of ../step01_plain_node/lock_test.go explains their words.

package sequentialspin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Each waiter polls, and each list names everyone in the queue.
func TestStillBrokenWaitingCostsWaitersTimesNames(t *testing.T) {
	t.Parallel()
	const looks = 3
	for _, n := range []int{5, 10, 20} {
		z := zktest.New(t)
		_, waiting := queue(z, n)
		count := z.Count(waiting...)
		names := n + 1 // the holder's, and those of all waiters
		bytes := 92 + 19*names
		for _, w := range waiting {
			for _, list := range lists(z, w, looks) {
				assert.Equal(t, names, list.Names, "names in a list")
				assert.Equal(t, bytes, list.Bytes, "bytes of a list: 92, and 19 for each name")
			}
		}
		sent := count()
		assert.Equal(t, sent.Requests[wiretap.GetChildren], sent.All(), "requests: lists, and nothing else")
		chapter.Says(t, "%d waiters poll once: %d lists of %d names", n, n, names)
	}
}

// queue brings a holder and n waiters to a lock.
func queue(z *zktest.Zoo, n int) (held *zktest.Turn, waiting []*zktest.Turn) {
	held = lock.Join(z, "the holder").Acquire()
	for i := range n {
		waiting = append(waiting, lock.Join(z, fmt.Sprintf("waiter %d", i+1)).Start())
		waiting[i].Queued()
	}
	for _, w := range waiting { // no reply from before the last arrival is still on its way
		z.Barrier(w.Client)
	}
	return held, waiting
}

// lists are the next lists that a waiter gets.
func lists(z *zktest.Zoo, waiter *zktest.Turn, times int) (all []wiretap.Frame) {
	mark := waiter.Tap.Mark()
	z.Await(waiter.Name+" to poll again", func() bool {
		all = nil
		for _, f := range waiter.Tap.Since(mark) {
			if f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren {
				all = append(all, f)
			}
		}
		return len(all) >= times
	})
	return all
}

// Five wait. The holder releases, and the next list of the first waiter is delayed. In step 1
// any client that tried now would get the lock.
func TestStillBrokenTheLockStaysFreeUntilTheNextOnePolls(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	held, waiting := queue(z, 5)
	first, others := waiting[0], waiting[1:]
	look := first.Tap.HoldRequest(wiretap.GetChildren, 1)
	zktest.AwaitChan(z, "the first waiter's list", look.Sprung())
	held.Release()
	for _, other := range others {
		assert.Equal(t, zktest.Polling, other.StillWaits(), "what %s does, which is not the next in the queue", other.Name)
	}
	assert.Len(t, first.Queue(), 5, "the queue: all waiters, and no holder")
	chapter.Says(t,
		"the lock is free, %d others keep polling, and nobody holds the lock: the next in the queue has not polled yet",
		len(others))
	look.Let()
	first.Acquired()
}

// The server's numbers do not protect the queue from a client that makes a name of its own: to be allowed to create is
// enough to stand before those who wait, and before the holder.
func TestWhoMayCreateCanJumpTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, mallory := lock.Join(z, "A"), lock.Join(z, "B"), z.Client("Mallory")
	a.Acquire().Release() // takes number 0
	held := a.Acquire()   // has number 1
	waiting := b.Start()  // has number 2
	waiting.Queued()
	first, err := mallory.Create(a.Path+"/lock-0000000000", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	isMallorys, err := isFirst(a.Queue(), "lock-0000000000")
	require.NoError(t, err)
	assert.True(t, isMallorys, "by the lock's rule Mallory holds it, beside A")
	held.Release()
	assert.Equal(t, zktest.Polling, waiting.StillWaits(), "what B does, which is next by the server's numbers")
	require.NoError(t, mallory.Delete(first, -1))
	waiting.Acquired()
}

// The directory is deleted when it is empty, and with it the count of its children: the next znode has the number of
// an earlier one. So the Unlock of a holder whose session has expired deletes it. Step 5's znodes have a guid.
func TestStillBrokenAfterTheDirectoryIsMadeAgainAnExpiredHolderReleasesTheNext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := lock.Join(z, "Ada"), lock.Join(z, "Ben"), lock.Join(z, "Cleo")
	held := a.Acquire()
	z.Expire(a.Client)
	require.NoError(t, z.Observer().Delete(a.Path, -1), "somebody deletes the empty directory")
	next := b.Acquire()
	require.Equal(t, held.Znode(), next.Znode(), "Ben's znode, beside Ada's earlier one")
	a.Tap.Restore()
	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	require.NoError(t, held.Unlock(), "Ada's Unlock, while Ben holds the lock")
	require.NoError(t, c.Start().Err(), "Cleo's Lock, while Ben still holds the lock")
}

// The long interval is 64 times the short one. The test is not parallel: it measures times.
func TestStillBrokenAShortIntervalCostsRequestsAndALongOneTime(t *testing.T) {
	short, long := 5*time.Millisecond, 320*time.Millisecond
	askedByShort, freeAfterShort := cost(t, short)
	askedByLong, freeAfterLong := cost(t, long)
	assert.Greater(t, askedByShort, 3*askedByLong, "requests of one waiter in half a second, with the short interval")
	assert.Greater(t, freeAfterLong, 2*freeAfterShort, "how long the lock is free after a release, with the long interval")
}

// cost returns what a polling interval costs: how many requests one waiter sends in half a second,
// and how long the lock is free after a release, the median of nine.
func cost(t *testing.T, interval time.Duration) (asked int, free time.Duration) {
	z := zktest.New(t)
	polling := property.Over("an interval of "+interval.String(), func(conn *zk.Conn, path string) *Lock {
		l := New(conn, path)
		l.poll = interval
		return l
	})
	held, waiting := polling.Join(z, "the holder").Acquire(), polling.Join(z, "waiter 0").Start()
	waiting.Queued()
	count := z.Count(waiting)
	time.Sleep(500 * time.Millisecond) // the measure
	asked = count().All()

	const rounds = 9
	var delays []time.Duration
	for i := range rounds {
		lists(z, waiting, 1)
		time.Sleep(interval * time.Duration(2*i+1) / (2 * rounds)) // the releases are spread evenly over the interval
		begin := time.Now()
		held.Release()
		waiting.Acquired()
		delays = append(delays, time.Since(begin))
		held, waiting = waiting, polling.Join(z, fmt.Sprintf("waiter %d", i+1)).Start()
		waiting.Queued()
	}
	slices.Sort(delays)
	t.Logf("in this run, with an interval of %v: %d requests in half a second; the lock is free for %v (%v to %v)",
		interval, asked, delays[rounds/2], delays[0], delays[rounds-1])
	return asked, delays[rounds/2]
}
