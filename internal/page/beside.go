package page

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Bystander is a client that has nothing to do with the lock: every 2 ms it reads
// or writes a znode of its own, whether or not it has been answered. Its waits are
// those of a request for its reply, the shortest first.
type Bystander struct {
	Quiet     []time.Duration // while the crowd waits
	Served    []time.Duration // while the crowd is served: each holds the lock for 20 ms
	HandOvers int             // in that time
	Meanwhile int             // the most bytes that went to the lock's clients during one of these waits
}

// A Bystander's pace, and that of those whom it stands beside.
const (
	pace     = 2 * time.Millisecond
	holdTime = 20 * time.Millisecond
)

// bystander lets somebody else read and write beside the crowd, for half a Window
// while it waits, and half a Window while it is served.
func (q *Queue) bystander() {
	c, b := q.Client("the bystander"), &Bystander{}
	path := q.Root + "/bystander"
	_, err := c.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	q.must(err)
	for _, trip := range trips(c, path, func() { time.Sleep(Window / 2) }) {
		b.Quiet = append(b.Quiet, trip.took())
	}
	marks := make([]int, len(q.actors))
	for i, a := range q.actors {
		marks[i] = a.Tap.Mark()
	}
	served := trips(c, path, func() {
		for begin := time.Now(); time.Since(begin) < Window/2; b.HandOvers++ {
			time.Sleep(holdTime)
			q.handOver()
		}
	})
	var others []wiretap.Frame
	for i, a := range q.actors {
		others = append(others, slices.DeleteFunc(a.Tap.Since(marks[i]), func(f wiretap.Frame) bool { return f.Kind == wiretap.Request })...)
	}
	for _, trip := range served {
		b.Served = append(b.Served, trip.took())
		sent := 0
		for _, f := range others {
			if f.At.After(trip.request.At) && f.At.Before(trip.reply.At) {
				sent += f.Bytes
			}
		}
		b.Meanwhile = max(b.Meanwhile, sent)
	}
	slices.Sort(b.Quiet)
	slices.Sort(b.Served)
	q.Crowds[len(q.Crowds)-1].Bystander = b
	q.settles()
	c.Close()
}

// handOver lets the holder release, and waits for the next one only.
func (q *Queue) handOver() {
	q.holder.releases()
	q.idle = append(q.idle, q.holder)
	q.holder = q.served(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(a *actor) bool { return a == q.holder })
}

// trips are the requests, each with its reply, of a client that reads and writes a
// znode for as long as the work takes.
func trips(c *zktest.Client, path string, work func()) (all []*trip) {
	mark, done := c.Tap.Mark(), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for reads := true; ; reads = !reads {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			asking.Go(func() { // what became of it stands on the wire
				if reads {
					_, _, _ = c.Get(path)
				} else {
					_, _ = c.Set(path, nil, -1)
				}
			})
		}
	})
	func() {
		defer close(done)
		work()
	}()
	asking.Wait()
	d := &deduction{}
	d.pair(0, c.Tap.Since(mark))
	return slices.DeleteFunc(d.trips, func(t *trip) bool { return t.reply == nil })
}

func (t *trip) took() time.Duration { return t.reply.At.Sub(t.request.At) }

// percentile is the wait that so many percent of the waits do not exceed.
func percentile(waits []time.Duration, percent int) time.Duration {
	return waits[min(len(waits)-1, len(waits)*percent/100)]
}

// Deaths is what passes between those who go on waiting and the server because so
// many of the crowd expire in one moment.
type Deaths struct {
	wiretap.Counts
	Dead int
}

// deaths lets every tenth of the line expire.
func (q *Queue) deaths() {
	crowd := &q.Crowds[len(q.Crowds)-1]
	q.fill(crowd.Waiters) // who was served comes again
	slices.SortFunc(q.waiting, func(a, b *actor) int { return cmp.Compare(a.Znode(), b.Znode()) })
	var dead, alive []*actor
	for i, a := range q.waiting {
		if i%10 == 5 {
			dead = append(dead, a)
		} else {
			alive = append(alive, a)
		}
	}
	counted := counting(alive...)
	q.expireTogether(dead)
	q.settles()
	crowd.Deaths = &Deaths{counted(time.Now()), len(dead)}
}

// times is by how much a bystander's wait is longer while the crowd is served.
func (b *Bystander) times(percent int) float64 {
	return float64(percentile(b.Served, percent)) / float64(percentile(b.Quiet, percent))
}
