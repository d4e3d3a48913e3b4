package reentrant

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A's create is lost while it is being decided: the leader has proposed it, and
// nobody has agreed. A comes back to a follower that hears of it late. Whoever
// looks there without asking first finds nothing, and makes a second znode.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	lag := zktest.NewLag(t)
	a := joinThrough(t, lag.Zoo, "A", zktest.SessionTimeout, lag.Through)
	a.release(a.acquire()) // makes the directory

	mark := a.Tap.Mark()
	var call *call
	catchUp := lag.LoseCreate(a.Client, func() { call = a.start() })
	before := len(a.queue())
	catchUp()
	require.Equal(t, zktest.Returned, call.Waits(), "A's Lock: it waits for itself; the queue: %v", a.queue())
	creates := a.requests(mark)[wiretap.Create]
	chapter.Says(t, "back at a server that lags: %d names there while the write in vain is under way, %d name when it is answered; creates: %d",
		before, len(a.queue()), creates)
	require.Equal(t, []int{0, 1}, []int{before, creates})
	a.holds(call.in())
}

// A network is what parts A, who holds the lock, from the majority. The others
// end A's session, and let B in. By then A must have been told, each time.
type network struct {
	*testing.T
	*zkserver.Ensemble
	z                *zktest.Zoo
	leader, follower *zkserver.Peer // A's server is one of them
	followers        []*zkserver.Peer
	held             context.Context
	a, b             *party
	next             *call // B's
}

// part brings A, over server, and B, who waits behind A's znode.
func part(t *testing.T, e *zkserver.Ensemble, timeout time.Duration, server func(*network) *zkserver.Peer, line func(net.Conn) net.Conn) *network {
	ctx, cancel := context.WithTimeout(context.Background(), zktest.Patience)
	defer cancel()
	require.NoError(t, e.Serving(ctx))
	n := &network{T: t, Ensemble: e}
	var err error
	n.leader, n.followers, err = e.Roles(ctx)
	require.NoError(t, err)
	n.follower = n.followers[0]
	n.z = zktest.NewOn(t, n.followers[1].Server)
	n.a = joinThrough(t, n.z, "A", timeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) {
			conn, err := dial(network, server(n).Addr, limit)
			if err == nil {
				conn = line(conn)
			}
			return conn, err
		}
	})
	n.b = join(t, n.z, "B")
	n.held = n.a.acquire()
	n.next = n.b.start()
	n.b.waits(n.next, "A holds the lock")
	require.NoError(t, n.held.Err())
	return n
}

func sound(c net.Conn) net.Conn               { return c }
func (n *network) toLeader() *zkserver.Peer   { return n.leader }
func (n *network) toFollower() *zkserver.Peer { return n.follower }

// told fails the test if B is let in before A has been told.
func (n *network) told(why string) {
	n.Helper()
	n.next.in()
	require.ErrorIs(n, context.Cause(n.held), ErrLost, "%s: B has the lock, and A has not been told", why)
}

func TestAHolderOnTheWrongSideOfAPartitionIsToldInTime(t *testing.T) {
	// A server that is cut off finds out after 10 s only.
	e, _, _ := zktest.Ensemble(t, "syncLimit=100", "initLimit=100")

	// The follower answers pings and reads by itself.
	t.Run("with a follower", func(t *testing.T) {
		n := part(t, e, zktest.MortalTimeout, (*network).toFollower, sound)
		n.follower.CutOff()
		n.told("the server is a follower, cut off")
		chapter.Says(t, "cut off together with its server, the holder is told before the next one is let in")
		n.follower.Rejoin()
	})

	// AddAuth is answered out of turn, by the follower alone.
	t.Run("with a follower, logging in", func(t *testing.T) {
		n := part(t, e, zktest.MortalTimeout, (*network).toFollower, sound)
		n.follower.CutOff()
		ctx, stop := context.WithCancel(n.z.Ctx)
		var logins sync.WaitGroup
		logins.Go(func() {
			for every := time.NewTicker(30 * time.Millisecond); ctx.Err() == nil; <-every.C {
				logins.Go(func() { _ = n.a.AddAuth("digest", []byte("a:b")) })
			}
		})
		n.told("the server is a follower, cut off, and A logs in")
		stop()
		n.follower.Rejoin()
		n.a.Close()
		logins.Wait()
	})

	// The leader answers a sync by itself, too, and lets old sessions come back.
	// The others, started again, have a leader of their own.
	for what, comesBack := range map[string]bool{"with a leader that is deposed": false, "with one, and A comes back to it": true} {
		t.Run(what, func(t *testing.T) {
			n := part(t, e, zktest.MortalTimeout, (*network).toLeader, sound)
			n.leader.CutOff()
			if comesBack {
				n.a.Tap.Cut()
				n.a.Tap.Restore()
			}
			require.NoError(t, zkserver.StartAgain(n.z.Ctx, n.followers))
			n.told("the server is the leader, deposed without knowing")
			n.leader.Rejoin()
		})
	}
}

// after waits until part of the time-out has passed since then.
func (n *network) after(then time.Time, part float64) {
	wait := time.Duration(part * float64(n.a.s.Timeout()))
	n.z.Await("time to pass", func() bool { return time.Since(then) > wait })
}

// asks asks the servers something, and returns when that has been sent. answered
// waits for the answer.
func (n *network) asks() (answered func()) {
	mark := n.a.Tap.Mark()
	answer := make(chan error, 1)
	go func() { answer <- n.a.s.Ask() }()
	n.z.Await("A to ask", func() bool { return n.a.requests(mark)[wiretap.Delete] > 0 })
	return func() { require.NoError(n, zktest.AwaitChan(n.z, "an answer to A", answer)) }
}

// proposed returns when the leader has proposed one thing more than before.
func (n *network) proposed(act func()) {
	count := func() int64 {
		counters, err := n.leader.Mntr()
		require.NoError(n, err)
		return counters["zk_proposal_count"]
	}
	before := count()
	act()
	n.z.Await("the leader to propose it", func() bool { return count() > before })
}

// lastPing is when A last sent a ping.
func (n *network) lastPing() (at time.Time) {
	for _, f := range n.a.Tap.Frames() {
		if f.Kind == wiretap.Request && f.Op == wiretap.Ping {
			at = f.At
		}
	}
	return at
}

// A stall is a line on which what is sent comes late, as behind a full router.
type stall struct {
	net.Conn
	sent chan []byte
}

func stalled(t *testing.T, c net.Conn, gate *sync.Mutex) net.Conn {
	s := &stall{Conn: c, sent: make(chan []byte, 1000)}
	go func() {
		for {
			select {
			case b := <-s.sent:
				gate.Lock()
				_, _ = c.Write(b) // a line that is closed takes nothing
				gate.Unlock()
			case <-t.Context().Done(): // the client does not close every line
				return
			}
		}
	}()
	return s
}

func (s *stall) Write(b []byte) (int, error) {
	s.sent <- slices.Clone(b)
	return len(b), nil
}

// The way from A to its follower stalls, what A asks in the meantime comes
// together, and then the follower is cut off. Whoever counts from what was sent
// half a tick before, and not from what was answered, counts on questions of
// which the leader has never heard.
func TestQuestionsThatArriveTogetherProveNothing(t *testing.T) {
	e, _, _ := zktest.Ensemble(t, "tickTime=600", "syncLimit=20") // five ticks are a time-out
	var gate sync.Mutex
	n := part(t, e, 3*time.Second, (*network).toFollower, func(c net.Conn) net.Conn { return stalled(t, c, &gate) })
	gate.Lock()
	begun := time.Now()
	answers := make(chan error, 3)
	for _, at := range []float64{0.4, 0.51, 0.62} {
		n.after(begun, at)
		go func() { answers <- n.a.s.Ask() }()
	}
	n.after(begun, 0.63)
	n.a.Tap.Delay(5 * time.Millisecond) // A takes the answers in their order
	gate.Unlock()
	for range cap(answers) {
		require.NoError(t, zktest.AwaitChan(n.z, "an answer to A", answers))
	}
	n.follower.CutOff()
	n.told("three questions came together")
	n.follower.Rejoin()
}

// The leader's word to A's follower stalls as soon as A has an answer; A asks
// again; and when the leader has heard that, the follower's word is held up, too,
// and the leader's let go. So A has two answers, a tenth of the time-out apart, and
// the follower has not reported since before the first.
func TestTwoAnswersAreNotEnough(t *testing.T) {
	e, _, _ := zktest.Ensemble(t, "syncLimit=100", "initLimit=100")
	n := part(t, e, 4500*time.Millisecond, (*network).toFollower, sound)
	// The session's own questions are a fifth apart. Ours comes just before one is
	// due, and with no ping since the last.
	last := n.question(0)
	for n.after(last, 0.185); n.lastPing().After(last); n.after(last, 0.185) {
		last = n.question(n.a.Tap.Mark())
	}
	n.asks()()
	release := n.Hold(n.leader, n.follower)
	first := time.Now()
	n.after(first, 0.11)
	var answered func()
	n.proposed(func() { answered = n.asks() })
	back := n.Hold(n.follower, n.leader)
	release()
	answered()
	n.told("two answers came, and no report has reached the leader since before the first")
	back()
}

// question returns when A's next question after the mark has been answered.
func (n *network) question(mark int) (at time.Time) {
	n.z.Await("A to have an answer to a write in vain", func() bool {
		for _, f := range n.a.Tap.Since(mark) {
			if f.Kind == wiretap.Reply && f.Op == wiretap.Delete {
				at = f.At
			}
		}
		return !at.IsZero()
	})
	return at
}

// What the lease assumes when A, who has held nothing for long, is let in after
// one write: that its follower reports as it should. Here the leader's word to the
// follower is held up, so that it cannot, until the leader knows of A's create;
// and from then on the follower's word is. A's lease is two fifths of the time-out
// then, and the leader has not heard of A for longer than the other three.
func TestTheFirstWriteAfterAnIdleTimeAssumesAReport(t *testing.T) {
	e, _, _ := zktest.Ensemble(t, "syncLimit=100", "initLimit=100")
	n := part(t, e, 3*time.Second, (*network).toFollower, sound)
	n.a.release(n.held)
	n.b.release(n.next.in())
	n.z.Await("A's lease to run out", func() bool {
		n.a.s.mu.Lock()
		defer n.a.s.mu.Unlock()
		return n.a.s.life.Err() != nil
	})
	ping := n.lastPing()
	n.z.Await("A's next ping", func() bool { return n.lastPing().After(ping) })
	ping = n.lastPing()
	n.after(ping, 0.25) // the next one is due after a third
	release := n.Hold(n.leader, n.follower)
	n.after(ping, 0.8)
	var call *call
	n.proposed(func() { call = n.a.start() })
	back := n.Hold(n.follower, n.leader)
	release()
	held := call.in()
	second := n.b.start().in()
	require.NoError(t, held.Err(), "A was told in time: docs/lease.md could promise more")
	both := time.Now()
	zktest.AwaitChan(n.z, "A to be told", held.Done())
	part := time.Since(both).Seconds() / n.a.s.Timeout().Seconds()
	require.Greater(t, token(second), token(held), "a store that checks tokens is safe")
	chapter.SaysIn(t, "../docs/lease.md", "after the double fault B is inside, too, %v of a time-out before A is told; B's token is greater",
		chapter.About(part, 4))
	back()
}

func token(held context.Context) int64 {
	n, _ := Token(held)
	return n
}
