package reentrant

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A's create is lost while it is being decided: the leader has proposed it, and
// nobody has agreed. A comes back to a follower that hears of it late. Whoever
// looks there without asking first finds nothing, and makes a second znode.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	lag := zktest.NewLag(t)
	a := locks.JoinAs(lag.Zoo, "A", lockcheck.Seat{Through: lag.Through})
	a.Acquire().Release() // makes the directory

	mark := a.Tap.Mark()
	var call *zktest.Turn
	catchUp := lag.LoseCreate(a.Client, func() { call = a.Start() })
	before := len(a.Queue())
	catchUp()
	require.Equal(t, zktest.Returned, call.Waits(), "A's Lock: it waits for itself; the queue: %v", a.Queue())
	chapter.Says(t, "back at a server that lags: %d names there while the write in vain is under way, %d name when it is answered; creates: %d",
		before, len(a.Queue()), a.Requests(mark)[wiretap.Create])
	holds(t, lag.Zoo, call)
}

// A network is what parts A, who holds the lock, from the majority. The others
// end A's session, and let B in. By then A must have been told, each time.
type network struct {
	*testing.T
	*zkserver.Ensemble
	z                *zktest.Zoo
	leader, follower *zkserver.Peer // A's server is one of them
	followers        []*zkserver.Peer
	a, b             *zktest.Member
	held, next       *zktest.Turn // A's, and B's behind it
}

// part brings A, over a line to the leader or a follower, and B, who waits behind
// A's znode.
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
	n.a = locks.JoinAs(n.z, "A", lockcheck.Seat{Timeout: timeout, Through: func(dial zk.Dialer) zk.Dialer {
		return zktest.Over(line)(func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, server(n).Addr, limit)
		})
	}})
	n.b = locks.Join(n.z, "B")
	n.held, n.next = n.a.Acquire(), n.b.Start()
	n.next.MustWait("A holds the lock")
	require.NoError(t, n.held.Held().Err())
	return n
}

func sound(c net.Conn) net.Conn            { return c }
func toLeader(n *network) *zkserver.Peer   { return n.leader }
func toFollower(n *network) *zkserver.Peer { return n.follower }

// told fails the test if B is let in before A has been told.
func (n *network) told(why string) {
	n.Helper()
	n.next.Acquired()
	require.ErrorIs(n, context.Cause(n.held.Held()), ErrLost, "%s: B has the lock, and A has not been told", why)
}

func TestAHolderOnTheWrongSideOfAPartitionIsToldInTime(t *testing.T) {
	// A server that is cut off finds out after 10 s only.
	e, _, _ := zktest.Ensemble(t, "syncLimit=100", "initLimit=100")

	// The follower answers pings and reads by itself.
	t.Run("with a follower", func(t *testing.T) {
		n := part(t, e, zktest.MortalTimeout, toFollower, sound)
		n.follower.CutOff()
		n.told("the server is a follower, cut off")
		chapter.Says(t, "cut off together with its server, the holder is told before the next one is let in")
		n.follower.Rejoin()
	})

	// AddAuth is answered out of turn, by the follower alone.
	t.Run("with a follower, logging in", func(t *testing.T) {
		n := part(t, e, zktest.MortalTimeout, toFollower, sound)
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
			n := part(t, e, zktest.MortalTimeout, toLeader, sound)
			n.leader.CutOff()
			if comesBack {
				n.a.Tap.HangUp()
			}
			require.NoError(t, zkserver.StartAgain(n.z.Ctx, n.followers))
			n.told("the server is the leader, deposed without knowing")
			n.leader.Rejoin()
		})
	}
}

// after waits until part of the time-out has passed since then.
func (n *network) after(then time.Time, part float64) {
	wait := time.Duration(part * float64(n.session().Timeout()))
	n.z.Await("time to pass", func() bool { return time.Since(then) > wait })
}

func (n *network) session() *Session { return n.a.Session.(*Session) }

// asks asks the servers something in the background.
func (n *network) asks() (answer chan error) {
	answer = make(chan error, 1)
	go func() { answer <- n.session().Ask() }()
	return answer
}

func (n *network) answered(answer chan error) {
	n.Helper()
	require.NoError(n, zktest.AwaitChan(n.z, "an answer to A", answer))
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

// last is when such a frame was last on A's line, once there was one after then.
func (n *network) last(kind wiretap.Kind, op wiretap.Op, then time.Time) (at time.Time) {
	n.z.Await("A's next question", func() bool {
		for _, f := range n.a.Tap.Frames() {
			if f.Kind == kind && f.Op == op {
				at = f.At
			}
		}
		return at.After(then)
	})
	return at
}

// The way from A to its follower stalls, as behind a full router. What A asks in the
// meantime comes together, and then the follower is cut off. Whoever counts from what
// was sent half a tick before, and not from what was answered, counts on questions of
// which the leader has never heard.
func TestQuestionsThatArriveTogetherProveNothing(t *testing.T) {
	e, _, _ := zktest.Ensemble(t, "tickTime=600", "syncLimit=20") // five ticks are a time-out
	n := part(t, e, 3*time.Second, toFollower, func(c net.Conn) net.Conn { return patient{c} })
	stall, begun := n.a.Tap.HoldRequest(wiretap.Any, 1), time.Now()
	var answers []chan error
	for _, at := range []float64{0.4, 0.51, 0.62} {
		n.after(begun, at)
		answers = append(answers, n.asks())
	}
	n.after(begun, 0.63)
	n.a.Tap.Delay(5 * time.Millisecond) // A takes the answers in their order
	stall.Let()
	for _, answer := range answers {
		n.answered(answer)
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
	n := part(t, e, 4500*time.Millisecond, toFollower, sound)
	// The session's own questions are a fifth apart. Ours comes just before one is
	// due, and with no ping since the last.
	last := n.last(wiretap.Reply, wiretap.Delete, time.Time{})
	for n.after(last, 0.185); n.last(wiretap.Request, wiretap.Ping, time.Time{}).After(last); n.after(last, 0.185) {
		last = n.last(wiretap.Reply, wiretap.Delete, time.Now())
	}
	n.answered(n.asks())
	release := n.Hold(n.leader, n.follower)
	n.after(time.Now(), 0.11)
	var answer chan error
	n.proposed(func() { answer = n.asks() })
	back := n.Hold(n.follower, n.leader)
	release()
	n.answered(answer)
	n.told("two answers came, and no report has reached the leader since before the first")
	back()
}

// What the lease assumes when A, who has held nothing for long, is let in after
// one write: that its follower reports as it should. Here the leader's word to the
// follower is held up, so that it cannot, until the leader knows of A's create;
// and from then on the follower's word is. A's lease is two fifths of the time-out
// then, and the leader has not heard of A for longer than the other three.
func TestTheFirstWriteAfterAnIdleTimeAssumesAReport(t *testing.T) {
	e, _, _ := zktest.Ensemble(t, "syncLimit=100", "initLimit=100")
	n := part(t, e, 3*time.Second, toFollower, sound)
	n.held.Release()
	n.next.Release()
	zktest.AwaitChan(n.z, "A's lease to run out", n.session().Lease().Done())
	ping := n.last(wiretap.Request, wiretap.Ping, time.Now())
	n.after(ping, 0.25) // the next one is due after a third
	release := n.Hold(n.leader, n.follower)
	n.after(ping, 0.8)
	var turn *zktest.Turn
	n.proposed(func() { turn = n.a.Start() })
	back := n.Hold(n.follower, n.leader)
	release()
	held := turn.Held()
	second := n.b.Acquire()
	require.NoError(t, held.Err(), "A was told in time: docs/lease.md could promise more")
	both := time.Now()
	zktest.AwaitChan(n.z, "A to be told", held.Done())
	part := time.Since(both).Seconds() / n.session().Timeout().Seconds()
	require.Greater(t, token(second), token(turn), "a store that checks tokens is safe")
	chapter.SaysIn(t, "../docs/lease.md", "after the double fault B is inside, too, %v of a time-out before A is told; B's token is greater",
		chapter.About(part, 4))
	back()
}
