package property

import (
	"context"
	"net"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// It is A's turn: the list that says so arrives, and at this moment A's line breaks. What A
// asks from now on waits in its client, until the outage is over. By then A's session has
// expired, and C is inside.
var OutageAtEntry = property(
	text("an outage just before the entry is noticed", "进来之前的那次断线会被发现"),
	text("a session that began after the outage would vouch for a place in the queue from before it",
		"断线之后开始的会话，会给断线之前的队列位置作保"),
	text("the list says that it is your turn: since when can you rely on the session that your znode belongs to?",
		"列表说轮到你了：你的 znode 所属的会话，从什么时候起靠得住？"),
	func(s *story) {
		line := &stalling{write: make(chan struct{}), dial: make(chan struct{})}
		a, b := s.joinAs("A", Seat{Timeout: zktest.MortalTimeout, Through: line.through}), s.writerAs("B", Seat{})
		s.Cleanup(line.end)
		s.needsHold(a)
		held := b.Acquire()
		entering := s.queue(a)[0]
		// the time is the story: A's create is long ago
		for begin := time.Now(); time.Since(begin) < zktest.MortalTimeout; time.Sleep(10 * time.Millisecond) {
			s.failsIf(entering.Returned(), "B holds the lock, and A's Lock returned")
		}
		turn := a.Tap.HoldReply(wiretap.GetChildren, 1)
		held.Release()
		zktest.AwaitChan(s.Zoo, "the server to tell A that it is its turn", turn.Sprung())

		line.stalls.Store(true)
		const requests = 8 // the first of them waits on the line, and the others behind it
		unsent := reflect.ValueOf(a.Conn).Elem().FieldByName("sendChan")
		for range requests {
			s.Go(a.Client, func(context.Context) error {
				_, _, err := a.Exists("/zklock-nobody")
				return err
			})
		}
		s.Cleanup(line.end) // before they are waited for
		s.Await(
			"A's requests to stand in line",
			func() bool { return line.writes.Load() == 1 && unsent.Len() >= requests-1 },
		)
		before := unsent.Len()
		turn.Let()
		s.Await(
			"A to be let in, or to ask for something",
			func() bool { return entering.Returned() || unsent.Len() > before },
		)
		a.Tap.HangUp()
		s.Await("A's client to see that the line is down", func() bool { return line.broken.Load() > 0 })
		close(line.write)

		next := s.writerAs("C", Seat{}).Start()
		s.AwaitExpiry(a.Client)
		s.letIn(next, "A's session has expired")
		inside := func() bool {
			wasLetIn := entering.Returned() && entering.Err() == nil
			return wasLetIn && entering.Held().Err() == nil
		}
		s.failsIf(inside(), "A was let in, its line broke, its session expired and C was let in: A's context goes on")
		close(line.dial)
		s.Await(
			"A to have another session",
			func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
		)
		if !entering.Returned() {
			entering.StillWaits()
		}
		s.failsIf(
			inside(),
			"A's line broke just when it was its turn, its session expired, C was let in, and A beside it, with a new session; the queue: %v",
			s.Names(s.dir),
		)
		next.Release()
		if !entering.Returned() {
			s.letIn(entering, "C released, and A has queued again")
			s.holds("A's line broke just when it was its turn, its session expired, and A queued again behind C")
		}
		s.holds(
			"A's line broke just when it was its turn, its session expired, and when C was let in, A's context had ended",
		)
	})

// stalling is a line on which, once it stalls, writes and new connections wait: a write
// until the channel write is closed, and then it fails; a connection until dial is.
type stalling struct {
	stalls         atomic.Bool
	write, dial    chan struct{}
	writes, broken atomic.Int32 // writes that wait or have waited; reads that have failed
	ended          atomic.Bool
}

func (l *stalling) through(tap zk.Dialer) zk.Dialer {
	return func(network, address string, limit time.Duration) (net.Conn, error) {
		if l.stalls.Load() {
			<-l.dial
			l.stalls.Store(false)
		}
		conn, err := tap(network, address, limit)
		if err != nil {
			return nil, err
		}
		return &stalled{conn, l}, nil
	}
}

// end ends what waits. A second call does nothing.
func (l *stalling) end() {
	if l.ended.Swap(true) {
		return
	}
	for _, gate := range []chan struct{}{l.write, l.dial} {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// stalled is one connection of such a line.
type stalled struct {
	net.Conn
	line *stalling
}

func (c *stalled) Write(frame []byte) (int, error) {
	if !c.line.stalls.Load() {
		return c.Conn.Write(frame)
	}
	c.line.writes.Add(1)
	<-c.line.write
	return 0, net.ErrClosed
}

func (c *stalled) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.line.broken.Add(1)
	}
	return n, err
}
