package tour

import (
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
	b.Quiet = waits(replies(c, path, func() { time.Sleep(Window / 2) }))
	marks := make([]int, len(q.members))
	for i, m := range q.members {
		marks[i] = m.Tap.Mark()
	}
	served := replies(c, path, func() {
		for begin := time.Now(); time.Since(begin) < Window/2; {
			time.Sleep(holdTime)
			q.handOver()
		}
	})
	b.Served = waits(served)
	var others []wiretap.Frame
	for i, m := range q.members {
		others = append(
			others,
			slices.DeleteFunc(
				m.Tap.Since(marks[i]),
				func(f wiretap.Frame) bool { return f.Kind == wiretap.Request },
			)...)
	}
	for _, reply := range served {
		sent := 0
		for _, f := range others {
			if f.At.After(reply.Asked) && f.At.Before(reply.At) {
				sent += f.Bytes
			}
		}
		b.Meanwhile = max(b.Meanwhile, sent)
	}
	q.crowd().Bystander = b
	q.settles(q.waiting)
	c.Close()
}

// replies are what a client gets that reads and writes a znode for as long as the
// work takes.
func replies(c *zktest.Client, path string, work func()) []wiretap.Frame {
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
	isOther := func(f wiretap.Frame) bool { return f.Kind != wiretap.Reply || !f.IsShown() }
	return slices.DeleteFunc(c.Tap.Since(mark), isOther)
}

// waits are the times from the requests to their replies, the shortest first.
func waits(replies []wiretap.Frame) (all []time.Duration) {
	for _, f := range replies {
		all = append(all, f.At.Sub(f.Asked))
	}
	slices.Sort(all)
	return all
}

// times is by how much a bystander's median wait is longer while the crowd is served.
func (b *Bystander) times() float64 {
	return float64(b.Served[len(b.Served)/2]) / float64(b.Quiet[len(b.Quiet)/2])
}
