package tour

import (
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Bystander is a client that does not use the lock. Every 2 ms it reads or writes a znode of its
// own, whether or not the server has answered the requests before. Its waits are the times from a
// request to the reply, the shortest first.
type Bystander struct {
	Quiet     []time.Duration // while the crowd waits
	Served    []time.Duration // while the crowd is served: each client holds the lock for 20 ms
	Meanwhile int             // the most bytes sent to the lock's clients during one wait of Served
}

// A bystander sends a request every pace. Each client of the crowd holds the lock for holdTime.
const (
	pace     = 2 * time.Millisecond
	holdTime = 20 * time.Millisecond
)

// bystander lets a Bystander read and write for half a Window while the crowd waits, and for half a
// Window while the crowd is served.
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

// replies lets a client read and write a znode while work runs, and returns the replies to these
// requests.
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
			asking.Go(func() { // the tap records the result
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

// waits returns the times from the requests to these replies, the shortest first.
func waits(replies []wiretap.Frame) (all []time.Duration) {
	for _, f := range replies {
		all = append(all, f.At.Sub(f.Asked))
	}
	slices.Sort(all)
	return all
}

// times returns how many times longer a bystander's median wait is while the crowd is served.
func (b *Bystander) times() float64 {
	return float64(b.Served[len(b.Served)/2]) / float64(b.Quiet[len(b.Quiet)/2])
}
