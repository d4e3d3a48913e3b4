package sequentialspin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// None of these tests is parallel: they measure how busy a server is kept.

// polling gives a client the lock at path, looked at in the given interval.
func polling(path string, interval time.Duration) func(*zktest.Client) zktest.Locker {
	return func(c *zktest.Client) zktest.Locker {
		lock := New(c.Conn, path)
		lock.poll = interval
		return lock
	}
}

func TestWaitingCostsWaitersTimesNames(t *testing.T) {
	z := zktest.New(t)
	crowds := []int{5, 10, 20} // each at a lock of its own, all in the same second
	var counts []func() wiretap.Counts
	for _, n := range crowds {
		join := polling(fmt.Sprintf("%s/lock%02d", z.Root, n), pollInterval)
		z.Enter("the holder", join).Acquired()
		var waiters []*zktest.Member
		for i := range n {
			waiters = append(waiters, z.Enter(fmt.Sprintf("waiter %d of %d", i+1, n), join))
		}
		for _, w := range waiters { // no list from before the last arrival is on its way
			z.Barrier(w.Client)
		}
		counts = append(counts, z.Count(waiters...))
	}
	time.Sleep(time.Second) // the measure
	for i, n := range crowds {
		sum := counts[i]()
		lists, writes := sum.Names/(n+1), sum.All()-sum.Requests[wiretap.GetChildren]
		if lists == 0 {
			t.Fatalf("%d waiters asked for no list: %v", n, sum.Requests)
		}
		chapter.Says(t, "%d waiters, one second: %v lists of %d names and %d bytes, %v kB received, %d writes",
			n, chapter.About(lists, 8), sum.Names/lists, sum.Received/lists, chapter.About(float64(sum.Received)/1000, 8), writes)
	}
}

// A short interval finds the lock free sooner and asks more often in vain.
func TestThePollIntervalIsPaidEitherWay(t *testing.T) {
	z := zktest.New(t)
	intervals := []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond}
	var holders, waiters []*zktest.Member
	var counts []func() wiretap.Counts
	join := func(p time.Duration) func(*zktest.Client) zktest.Locker { return polling(z.Root+"/"+p.String(), p) }
	for _, p := range intervals {
		holders = append(holders, z.Enter("the holder", join(p)))
		waiters = append(waiters, z.Enter("the waiter", join(p)))
		counts = append(counts, z.Count(waiters[len(waiters)-1]))
	}
	time.Sleep(time.Second) // the measure
	var asked []int
	for _, count := range counts {
		asked = append(asked, count().All())
	}
	for i, p := range intervals {
		const rounds = 9
		var delays []time.Duration
		holder, waiter := holders[i], waiters[i]
		for r := range time.Duration(rounds) {
			z.Await("its first list", func() bool { return wiretap.Count(waiter.Tap.Frames()).Names > 0 })
			time.Sleep(p * (2*r + 1) / (2 * rounds)) // the releases spread evenly between two looks
			delays = append(delays, handOver(t, holder, waiter))
			holder, waiter = waiter, z.Enter("the next waiter", join(p))
		}
		slices.Sort(delays)
		chapter.Says(t, "polling every %d ms: %v requests a second for one waiter, and a hand-over takes %v ms",
			p.Milliseconds(), chapter.About(asked[i], 8), chapter.About(delays[rounds/2].Seconds()*1000, 8))
	}
}

// handOver is the time from the holder's call to Unlock to the waiter's return
// from Lock.
func handOver(t *testing.T, holder, waiter *zktest.Member) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	waiter.Acquired()
	return time.Since(begin)
}

// spinOnCreate is the lock of step 1, as far as the comparison needs it: the
// steps do not import one another.
type spinOnCreate struct {
	conn *zk.Conn
	path string
}

func (l spinOnCreate) Lock(ctx context.Context) error {
	for ctx.Err() == nil {
		_, err := l.conn.Create(l.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (l spinOnCreate) Unlock() error { return l.conn.Delete(l.path, -1) }

// Ten waiters take one turn each, of a random length: a release falls anywhere
// between two looks.
func TestSlowerThanSpinningOnCreate(t *testing.T) {
	z := zktest.New(t)
	for _, contest := range []struct {
		name string
		join func(*zktest.Client) zktest.Locker
	}{
		{"create", func(c *zktest.Client) zktest.Locker { return spinOnCreate{c.Conn, z.Root + "/lock01"} }},
		{"list", polling(z.Root+"/lock02", pollInterval)},
	} {
		holder := z.Enter("the holder", contest.join)
		holder.Acquired()

		var mu sync.Mutex
		var delays []time.Duration
		released := time.Now()
		var clients []*zktest.Client
		var turns []*zktest.Attempt
		for i := range 10 {
			c := z.Client(fmt.Sprintf("waiter %d", i+1))
			lock := contest.join(c)
			time.Sleep(rand.N(pollInterval)) // not all look at the same moment
			turn := z.Go(c, func(ctx context.Context) error {
				if err := lock.Lock(ctx); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				delays = append(delays, time.Since(released))
				time.Sleep(rand.N(pollInterval))
				released = time.Now()
				return lock.Unlock()
			})
			turn.Queued()
			clients, turns = append(clients, c), append(turns, turn)
		}
		for _, turn := range turns {
			turn.Waits()
		}
		var marks []int
		for _, c := range clients {
			marks = append(marks, c.Tap.Mark())
		}
		mu.Lock()
		released = time.Now()
		mu.Unlock()
		if err := holder.Unlock(); err != nil {
			t.Fatal(err)
		}
		var all [][]wiretap.Frame
		for i, turn := range turns {
			turn.Acquired()
			all = append(all, clients[i].Tap.Since(marks[i]))
		}
		slices.Sort(delays)
		sum := wiretap.Count(all...)
		reads := sum.Requests[wiretap.GetChildren]
		chapter.Says(t, "spin on %s, 10 waiters, a turn each: the next is let in by look %v after a release, in %v ms; %v writes, %v reads, %v kB received",
			contest.name, chapter.About(looks(all), 4), chapter.About(delays[len(delays)/2].Seconds()*1000, 20),
			chapter.About(sum.All()-reads, 8), chapter.About(reads, 8), chapter.About(float64(sum.Received)/1000, 8))
	}
}

// looks is how many creates or lists, of all clients together, the server
// carries out after a release until one of them lets the next client in: the
// mean of all releases but the last. Their order is told by the replies: each
// bears the zxid of the last write before it.
func looks(clients [][]wiretap.Frame) float64 {
	type reply struct {
		wiretap.Frame
		client int
	}
	var all []reply
	for i, frames := range clients {
		for _, f := range frames {
			if f.Kind == wiretap.Reply && f.Op != wiretap.Exists && f.Op != wiretap.Ping {
				all = append(all, reply{f, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b reply) int { return cmp.Or(cmp.Compare(a.Zxid, b.Zxid), a.At.Compare(b.At)) })
	// From the end: each delete was made by the client that was let in before it.
	sum, releases, next := 0, 0, -1
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Op != wiretap.Delete {
			continue
		}
		if next >= 0 {
			in := slices.IndexFunc(all[i:], func(r reply) bool { return r.client == next && r.Op != wiretap.Delete })
			sum, releases = sum+in, releases+1
		}
		next = all[i].client
	}
	return float64(sum) / float64(releases)
}
