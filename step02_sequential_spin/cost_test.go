package sequentialspin

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/chapter"
	plainnode "zklock/step01_plain_node"
)

var measuring sync.Mutex

// alone is for the tests that measure how busy a server is kept. Being parallel,
// they come when all others are done, and then one after the other.
func alone(t *testing.T) {
	t.Parallel()
	measuring.Lock()
	t.Cleanup(measuring.Unlock)
}

func TestWaitingCostsWaitersTimesNames(t *testing.T) {
	alone(t)
	for _, n := range []int{5, 10, 20} {
		z := zktest.New(t)
		lock.Join(z, "the holder").Acquire()
		var waiters []*zktest.Turn
		for i := range n {
			waiters = append(waiters, lock.Join(z, fmt.Sprintf("waiter %d", i+1)).Start())
			waiters[i].Queued()
		}
		for _, w := range waiters { // no list from before the last arrival is on its way
			z.Barrier(w.Client)
		}
		count := z.Count(waiters...)
		time.Sleep(time.Second) // the measure
		sum := count()
		lists, writes := sum.Names/(n+1), sum.All()-sum.Requests[wiretap.GetChildren]
		require.NotZero(t, lists, "lists that %d waiters have asked for", n)
		chapter.Says(
			t,
			"%d waiters, one second: %v lists of %d names and %d bytes, %v kB received, %d writes",
			n,
			chapter.About(lists, 8),
			sum.Names/lists,
			sum.Received/lists,
			chapter.About(float64(sum.Received)/1000, 8),
			writes,
		)
	}
}

// A short interval finds the lock free sooner and asks more often in vain.
func TestThePollIntervalIsPaidEitherWay(t *testing.T) {
	alone(t)
	for _, p := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond} {
		z := zktest.New(t)
		polling := property.Over("step 2", func(conn *zk.Conn, path string) *Lock {
			l := New(conn, path)
			l.poll = p
			return l
		})
		holder, waiter := polling.Join(z, "the holder").Acquire(), polling.Join(z, "the waiter").Start()
		waiter.Queued()
		count := z.Count(waiter)
		time.Sleep(time.Second) // the measure
		asked := count().All()

		const rounds = 9
		var delays []time.Duration
		for r := range time.Duration(rounds) {
			z.Await("its first list", func() bool { return wiretap.Count(waiter.Tap.Frames()).Names > 0 })
			time.Sleep(p * (2*r + 1) / (2 * rounds)) // the releases spread evenly between two looks
			begin := time.Now()
			holder.Release()
			waiter.Acquired()
			delays = append(delays, time.Since(begin))
			holder, waiter = waiter, polling.Join(z, "the next waiter").Start()
		}
		slices.Sort(delays)
		chapter.Says(t, "polling every %d ms: %v requests a second for one waiter, and a hand-over takes %v ms",
			p.Milliseconds(), chapter.About(asked, 8), chapter.About(delays[rounds/2].Seconds()*1000, 8))
	}
}

// Ten waiters take one turn each, of a random length: a release falls anywhere
// between two looks.
func TestSlowerThanSpinningOnCreate(t *testing.T) {
	alone(t)
	for _, contest := range []struct {
		name string
		lock property.Subject
	}{
		{"create", property.Over("step 1", plainnode.NewEphemeral)},
		{"list", lock},
	} {
		z := zktest.New(t)
		holder := contest.lock.Join(z, "the holder").Acquire()
		var turns []*zktest.Turn
		for i := range 10 {
			m := contest.lock.Join(z, fmt.Sprintf("waiter %d", i+1))
			time.Sleep(rand.N(pollInterval)) // not all look at the same moment
			turns = append(turns, z.Go(m.Client, func(ctx context.Context) error {
				held, err := m.Lock(ctx)
				if err == nil {
					time.Sleep(rand.N(pollInterval))
					err = m.Unlock(held)
				}
				return err
			}))
			turns[i].Waits()
		}
		count := z.Count(turns...)
		holder.Release()
		for _, turn := range turns {
			turn.Acquired()
		}
		sum := count()
		reads := sum.Requests[wiretap.GetChildren]
		looks, delay := handOvers(turns)
		chapter.Says(
			t,
			"spin on %s, 10 waiters, a turn each: the next is let in by look %v after a release, in %v ms; %v writes, %v reads, %v kB received",
			contest.name,
			chapter.About(looks, 4),
			chapter.About(delay.Seconds()*1000, 500),
			chapter.About(sum.All()-reads, 8),
			chapter.About(reads, 8),
			chapter.About(float64(sum.Received)/1000, 8),
		)
	}
}

// handOvers is about the time after a release until the next client is let in:
// how many creates or lists, of all clients together, the server carries out
// (the mean), and how long it takes (the median). The order is told by the
// replies: each bears the zxid of the last write before it.
func handOvers(turns []*zktest.Turn) (looks float64, delay time.Duration) {
	type reply struct {
		wiretap.Frame
		client int
	}
	var all []reply
	for i, turn := range turns {
		for _, f := range turn.Tap.Frames() {
			if f.Kind == wiretap.Reply && f.Op != wiretap.Exists && f.Op != wiretap.Ping {
				all = append(all, reply{f, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b reply) int { return cmp.Or(cmp.Compare(a.Zxid, b.Zxid), a.At.Compare(b.At)) })
	// From the end: each delete was made by the client that was let in before it.
	var delays []time.Duration
	sum, next := 0, -1
	for i, release := range slices.Backward(all) {
		if release.Op != wiretap.Delete {
			continue
		}
		if next >= 0 {
			in := slices.IndexFunc(all[i:], func(r reply) bool { return r.client == next && r.Op != wiretap.Delete })
			sum, delays = sum+in, append(delays, all[i+in].At.Sub(release.At))
		}
		next = release.client
	}
	slices.Sort(delays)
	return float64(sum) / float64(len(delays)), delays[len(delays)/2]
}
