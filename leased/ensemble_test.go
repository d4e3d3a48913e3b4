package leased

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	pathpkg "path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A's create is lost while the servers agree on it: the leader has proposed it, and no server has agreed yet.
// A reconnects to a follower that learns of it late. A client that lists there without a write before finds
// no znode, and creates a second one.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	t.Parallel()
	lag := zktest.NewLag(t)
	a := mutexes.JoinAs(lag.Zoo, "A", property.Seat{Through: lag.Through})
	a.Acquire().Release() // makes the directory

	mark := a.Tap.Mark()
	var call *zktest.Turn
	catchUp := lag.LoseCreate(a.Client, func() { call = a.Start() })
	before := len(a.Queue())
	catchUp()
	require.Equal(t, zktest.Returned, call.Waits(), "A's Lock: it waits for itself; the queue: %v", a.Queue())
	require.Equal(t, 1, a.Requests(mark)[wiretap.Create],
		"creates; %d names were there while the write that changes nothing was under way", before)
	holds(t, lag.Zoo, byMutex, call)
}

// A session has resumed on a new connection, and has made a write that changes nothing there. Then a create
// arrives that was still on the old connection. The server must not carry it out any more, since the list
// after that write could not have shown it. The frames are written by hand, because the Go client sends
// nothing on its old connection.
func TestTheOldConnectionOfASessionIsRefused(t *testing.T) {
	t.Parallel()
	e, _, followers := zktest.ThreeServers(t)
	for _, c := range []struct {
		old  *zkserver.Peer
		says string
	}{
		{followers[0], "a session comes back at another server, and then a create comes over its old connection:" +
			" the server hangs up"},
		{followers[1], "a session comes back at the same server, and then a create comes over its old connection:" +
			" the server hangs up"},
	} {
		z := zktest.NewOn(t, followers[1].Server)
		require.NoError(t, e.Serving(z.Ctx))
		old := connectByHand(t, c.old.Addr, 0, make([]byte, 16))
		old.ask(createKind, z.Root+"/in-time", anybody)
		require.Zero(t, old.answer(), "the answer to a create, as long as the connection is the session's")

		back := connectByHand(t, followers[1].Addr, old.id, old.password)
		require.Equal(t, old.id, back.id, "the session")
		back.xid = old.xid + 100 // a client continues the numbers of its session's requests
		back.ask(deleteKind, z.Root+"/nothing", anyVersion)
		require.Equal(t, zk.ErrCode(wiretap.NoNode), back.answer(), "the answer to the write that changes nothing")

		old.ask(createKind, z.Root+"/late", anybody)
		said, err := io.ReadAll(old.conn)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the old connection stays")
		require.Empty(t, said, "what the server says on the old connection")
		back.ask(deleteKind, z.Root+"/nothing", anyVersion)
		back.answer()
		require.Contains(t, z.Names(z.Root), "in-time")
		require.NotContains(t, strings.Join(z.Names(z.Root), " "), "late", c.says)
	}
}

// byHand is a session whose frames are written by hand. ZooKeeper's numbers are big-endian, and each frame
// begins with its length.
type byHand struct {
	t        *testing.T
	conn     net.Conn
	id       int64
	password []byte
	xid      int32 // of the last request
}

// The kinds of request. In a create, no data, an ACL and flags follow the path; in a delete, a version does.
const createKind, deleteKind int32 = 1, 2

var (
	anyVersion = []byte{0xff, 0xff, 0xff, 0xff}
	anybody    = []byte("\x00\x00\x00\x00" +
		"\x00\x00\x00\x01\x00\x00\x00\x1f\x00\x00\x00\x05world\x00\x00\x00\x06anyone" + "\x00\x00\x00\x01")
)

// connectByHand begins a session, or resumes one.
func connectByHand(t *testing.T, address string, id int64, password []byte) *byHand {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(zktest.Patience)))
	c := &byHand{t: t, conn: conn}
	const version, lastZxid = int32(0), int64(0)
	c.send(version, lastZxid, int32(zktest.SessionTimeout.Milliseconds()), id, int32(len(password)), password)
	answer := c.receive() // version, timeout, id, password
	c.id, c.password = int64(binary.BigEndian.Uint64(answer[8:])), answer[20:36]
	return c
}

// ask sends a request: its number, its kind, and the rest.
func (c *byHand) ask(kind int32, parts ...any) {
	c.t.Helper()
	c.xid++
	c.send(append([]any{c.xid, kind}, parts...)...)
}

// send writes a frame. The server may have hung up.
func (c *byHand) send(parts ...any) {
	c.t.Helper()
	var frame []byte
	for _, part := range parts {
		if text, ok := part.(string); ok {
			frame = binary.BigEndian.AppendUint32(frame, uint32(len(text)))
			part = []byte(text)
		}
		var err error
		frame, err = binary.Append(frame, binary.BigEndian, part)
		require.NoError(c.t, err)
	}
	_, _ = c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
}

func (c *byHand) receive() (frame []byte) {
	c.t.Helper()
	frame, err := wiretap.ReadFrame(c.conn)
	require.NoError(c.t, err)
	return frame[4:]
}

// answer returns the error in the next reply, which comes after its xid and its zxid.
func (c *byHand) answer() zk.ErrCode {
	c.t.Helper()
	return zk.ErrCode(int32(binary.BigEndian.Uint32(c.receive()[12:])))
}

// A network partitions A, which holds the lock, from the majority. The other servers end A's session, and B
// acquires the lock. Each time, A must have been notified before.
type network struct {
	*testing.T
	*zkserver.Ensemble
	z                *zktest.Zoo
	leader, follower *zkserver.Peer // A's server is one of them
	followers        []*zkserver.Peer
	a, b             *zktest.Member
	held, next       *zktest.Turn // A's, and B's behind it
}

// These are timeouts of A's session, by the tick of zktest.ThreeServers.
const (
	tenTicks    = 3 * time.Second
	twentyTicks = 2 * tenTicks
)

// part lets A, connected to the leader or a follower, hold the lock, and B wait behind A's znode.
func part(
	t *testing.T,
	e *zkserver.Ensemble,
	timeout time.Duration,
	server func(*network) *zkserver.Peer,
	line func(net.Conn) net.Conn,
) *network {
	ctx, cancel := context.WithTimeout(context.Background(), 3*zktest.Patience)
	defer cancel()
	require.NoError(t, e.Serving(ctx))
	t.Cleanup(func() {
		for _, m := range e.Members {
			m.Rejoin()
		}
	})
	n := &network{T: t, Ensemble: e}
	n.leader, n.followers = zktest.Roles(t, e)
	n.follower = n.followers[0]
	n.z = zktest.NewOn(t, n.followers[1].Server)
	const tries = 5 // on a busy machine A may lose its hold before the story has begun
	for try := 1; try <= tries; try++ {
		n.join(timeout, server, line)
		if n.held.Context().Err() == nil {
			return n
		}
		n.a.Close()
		n.b.Close()
	}
	require.Fail(t, "A has lost its hold each time, and nothing was wrong yet")
	return n
}

// join lets A hold the lock, and B wait for it.
func (n *network) join(timeout time.Duration, server func(*network) *zkserver.Peer, line func(net.Conn) net.Conn) {
	n.a = mutexes.JoinAs(n.z, "A", property.Seat{Timeout: timeout, Through: func(dial zk.Dialer) zk.Dialer {
		return zktest.Over(line)(func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, server(n).Addr, limit)
		})
	}})
	n.b = mutexes.Join(n.z, "B")
	n.held, n.next = n.a.Acquire(), n.b.Start()
	n.next.MustWait("A holds the lock")
}

// hold is Ensemble.Hold, until release is called or the test ends.
func (n *network) hold(from, to *zkserver.Peer) (release func()) {
	release = n.Hold(from, to)
	n.Cleanup(release)
	return release
}

// returnsInTime reports whether a call of A's returns within A's timeout.
func (n *network) returnsInTime(call *zktest.Turn) bool {
	end := time.Now().Add(n.session().Timeout())
	for !call.Returned() && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	return call.Returned()
}

// seenOnce repeats a story until it has seen what it is about. The story depends on its timing: on a busy machine
// it can miss a moment. If it is not seen in any try, otherwise says what that means.
func seenOnce(t *testing.T, otherwise string, story func(t *testing.T) (seen bool)) {
	const tries = 5
	for try := 1; try <= tries; try++ {
		seen := false
		passed := t.Run(fmt.Sprintf("try %d", try), func(t *testing.T) { seen = story(t) })
		if seen || !passed {
			return
		}
	}
	require.Fail(t, otherwise)
}

// notifiedInTime is for seenOnce, about a story that ends with two holders.
const notifiedInTime = "A was notified in time each time: README.md could promise more"

func sound(c net.Conn) net.Conn            { return c }
func toLeader(n *network) *zkserver.Peer   { return n.leader }
func toFollower(n *network) *zkserver.Peer { return n.follower }

// told fails the test if B acquires the lock before A is notified.
func (n *network) told(why string) {
	n.Helper()
	n.next.Acquired()
	require.ErrorIs(n, context.Cause(n.held.Context()), ErrLost, "%s: B has the lock, and A has not been notified", why)
}

func TestAHolderOnTheWrongSideOfAPartitionIsToldInTime(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)

	// The follower answers pings and reads by itself.
	t.Run("with a follower", func(t *testing.T) {
		n := part(t, e, twentyTicks, toFollower, sound)
		n.follower.CutOff()
		n.told("the server is a follower, cut off")
		n.follower.Rejoin()
	})

	// The follower alone answers AddAuth, and does so out of turn.
	t.Run("with a follower, logging in", func(t *testing.T) {
		n := part(t, e, twentyTicks, toFollower, sound)
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

	// The leader alone answers a sync, and lets old sessions resume. The other servers, started again, elect
	// a leader of their own.
	for what, comesBack := range map[string]bool{
		"with a leader that is deposed":    false,
		"with one, and A comes back to it": true,
	} {
		t.Run(what, func(t *testing.T) {
			n := part(t, e, twentyTicks, toLeader, sound)
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

// Open asks for a timeout of five ticks or more. At five and six ticks, too, the holder is notified in time.
func TestAPartitionAtFiveAndSixTicks(t *testing.T) {
	t.Parallel()
	const tick = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 3*zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 3, fmt.Sprintf("tickTime=%d", tick.Milliseconds()), "syncLimit=100")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	for _, timeout := range []time.Duration{5 * tick, 6 * tick} {
		t.Run(fmt.Sprintf("%v with a follower", timeout), func(t *testing.T) {
			n := part(t, e, timeout, toFollower, sound)
			n.follower.CutOff()
			n.told("the server is a follower, cut off")
		})
		t.Run(fmt.Sprintf("%v with a leader", timeout), func(t *testing.T) {
			n := part(t, e, timeout, toLeader, sound)
			n.leader.CutOff()
			require.NoError(t, zkserver.StartAgain(n.z.Ctx, n.followers))
			n.told("the server is the leader, deposed without knowing")
		})
	}
}

// after waits until part of the timeout has passed since then.
func (n *network) after(then time.Time, part float64) {
	wait := time.Duration(part * float64(n.session().Timeout()))
	n.z.Await("time to pass", func() bool { return time.Since(then) > wait })
}

// leaseRunsOut returns when A's session, which has no hold, has no lease any more.
func (n *network) leaseRunsOut() {
	s := n.session()
	current := s.takeLease(context.Background())
	n.z.Await("A's lease to run out", func() bool { return s.isOver(current) })
}

func (n *network) session() *Session { return n.a.Session.(*Session) }

// asks makes a write that changes nothing, in the background.
func (n *network) asks() (answer chan error) {
	answer = make(chan error, 1)
	go func() { answer <- n.session().ask() }()
	return answer
}

func (n *network) answered(answer chan error) {
	n.Helper()
	require.NoError(n, zktest.AwaitChan(n.z, "an answer to A", answer))
}

// proposed returns when the leader has proposed one more transaction than before.
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

// last returns when such a frame was last on A's connection. It first waits for one after then.
func (n *network) last(kind wiretap.Kind, op wiretap.Op, then time.Time) (at time.Time) {
	n.z.Await("A's next question", func() bool {
		at = n.latest(kind, op)
		return at.After(then)
	})
	return at
}

// latest returns when such a frame was last on A's connection until now.
func (n *network) latest(kind wiretap.Kind, op wiretap.Op) (at time.Time) {
	for _, f := range n.a.Tap.Frames() {
		if f.Kind == kind && f.Op == op {
			at = f.At
		}
	}
	return at
}

// isLost reports whether A has lost its hold.
func (n *network) isLost() bool { return n.held.Context().Err() != nil }

// The connection from A to its follower stalls, as behind a full router. A's writes of that time arrive
// together, and then the follower is partitioned. A client that counts from a write sent a tick before, and
// not from one answered a tick before, relies on writes of which the leader has never heard.
func TestQuestionsThatArriveTogetherProveNothing(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)

	n := part(t, e, tenTicks, toFollower, func(c net.Conn) net.Conn { return patient{c} })
	stall, begun := n.a.Tap.HoldRequest(wiretap.Any, 1), time.Now()
	var answers []chan error
	for _, at := range []float64{0.2, 0.41, 0.62} {
		n.after(begun, at)
		answers = append(answers, n.asks())
	}
	n.after(begun, 0.63)
	n.a.Tap.Delay(5 * time.Millisecond) // so that A takes the answers in their order
	stall.Let()
	for _, answer := range answers {
		n.answered(answer)
	}
	n.follower.CutOff()
	n.told("three questions came together")
	n.follower.Rejoin()
}

// Messages from the leader to A's follower stall as soon as A has an answer. A makes another write a tick
// later. When the leader has proposed that write, messages from the follower also stall, and those from the
// leader flow again. So A has two answers, a tick apart, and the follower has not reported since before the
// first one.
func TestTwoAnswersAreNotEnough(t *testing.T) {
	t.Parallel()
	seenOnce(t, "A lost its hold each time before it had two answers: is this machine too busy?", hasTwoAnswers)
}

// hasTwoAnswers fails the test if A is not notified in time. It returns false if A lost its hold before it had both
// answers, as on a busy machine.
func hasTwoAnswers(t *testing.T) bool {
	e, _, _ := zktest.ThreeServers(t)
	n := part(t, e, 4500*time.Millisecond, toFollower, sound)
	// The session's own writes are a tick apart. The follower must not hear of A between two of them, so
	// there must be no ping.
	var release func()
	for release == nil {
		if !n.isAnsweredAfter(time.Now()) {
			return false
		}
		before := n.latest(wiretap.Reply, wiretap.Delete)
		first := n.a.Tap.HoldReply(wiretap.Delete, 1)
		n.z.Await("the first answer, or A to lose its hold", func() bool { return first.IsSprung() || n.isLost() })
		if n.isLost() {
			return false
		}
		noPing := n.last(wiretap.Request, wiretap.Ping, time.Time{}).Before(before)
		if noPing {
			release = n.hold(n.leader, n.follower)
		}
		first.Let()
	}
	first := time.Now()
	proposals := func() int64 { return n.counter(n.leader, "zk_proposal_count") }
	before := proposals()
	n.z.Await("the leader to propose A's next write, or A to lose its hold", func() bool {
		return proposals() > before || n.isLost()
	})
	back := n.hold(n.follower, n.leader)
	release()
	if !n.isAnsweredAfter(first) {
		return false
	}
	if n.isLost() { // if A had lost its hold before the second answer, the story would pass with any rule
		return false
	}
	n.told("two answers came, and no report has reached the leader since before the first")
	back()
	return true
}

// isAnsweredAfter returns whether a write of A's has been answered since then. If A loses its hold before that, it
// makes no more writes.
func (n *network) isAnsweredAfter(then time.Time) (isAnswered bool) {
	n.z.Await("an answer to A's next write, or A to lose its hold", func() bool {
		isAnswered = n.latest(wiretap.Reply, wiretap.Delete).After(then)
		return isAnswered || n.isLost()
	})
	return isAnswered
}

// A, which has held nothing for long, acquires the lock after one write. Its lease then assumes that the
// follower reports as it should. Here the follower cannot: messages from the leader to the follower are held
// back until the leader has proposed A's create, and from then on messages from the follower are. So A's
// lease counts from a ping of which the leader has not heard.
func TestTheFirstWriteAfterAnIdleTimeAssumesAReport(t *testing.T) {
	t.Parallel()
	seenOnce(t, notifiedInTime, bothAreInsideAfterOneWrite)
}

func bothAreInsideAfterOneWrite(t *testing.T) (seen bool) {
	e, _, _ := zktest.ThreeServers(t)
	n := part(t, e, twentyTicks, toFollower, sound)
	n.held.Release()
	n.next.Release()
	n.leaseRunsOut()
	ping := n.last(wiretap.Request, wiretap.Ping, time.Now())
	n.after(ping, 0.25) // the next one is due after a third
	release := n.hold(n.leader, n.follower)
	n.after(ping, 0.8)
	var turn *zktest.Turn
	n.proposed(func() { turn = n.a.Start() })
	back := n.hold(n.follower, n.leader)
	release()
	if !n.returnsInTime(turn) {
		return false // the follower has left its leader, of which it had not heard for too long
	}
	held := turn.Context()
	second := n.b.Acquire()
	if held.Err() != nil {
		return false
	}
	both := time.Now()
	zktest.AwaitChan(n.z, "A to be notified", held.Done())
	part := time.Since(both).Seconds() / n.session().Timeout().Seconds()
	require.Greater(t, token(second), token(turn), "a store that checks tokens is safe")
	t.Logf("after the double fault B also holds the lock, %.2f of a timeout before A is notified; "+
		"B's token is greater", part)
	back()
	return true
}

// A's server is an observer, connected to the leader through a follower. So both the follower and the leader
// ask for a report. Here the follower does not ask between write 1 and the answer to write 2, and then the
// follower's own reports do not reach the leader. The three writes are answered, and the leader has not heard
// of A since before the first one.
func TestBehindAnotherFollowerThreeAnswersAreNotEnough(t *testing.T) {
	t.Parallel()
	seenOnce(t, notifiedInTime, bothAreInsideAfterThreeWrites)
}

func bothAreInsideAfterThreeWrites(t *testing.T) (seen bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*zktest.Patience)
	defer cancel()
	const timeout, tick = 4500 * time.Millisecond, 300 * time.Millisecond
	e, err := zkserver.StartEnsembleWith(ctx, 4, zkserver.Config{Observers: 1, Behind: true,
		Lines: []string{fmt.Sprintf("tickTime=%d", tick.Milliseconds()), "syncLimit=100"}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	observer := e.Members[3]
	n := part(t, e, timeout, func(*network) *zkserver.Peer { return observer }, sound)
	require.Equal(t, e.Members[0], n.follower, "the follower that the observer hears of the leader through")
	var asked atomic.Int32 // how often the follower has asked, while it sends nothing else
	e.Overhear(n.follower, observer, func([]byte) { asked.Add(1) })
	n.held.Release()
	n.next.Release()

	proposals := func() int64 { return n.counter(n.leader, "zk_proposal_count") }
	var mine *zktest.Turn
	var ping, begun time.Time
	var quiet func()
	for inTime := false; !inTime; { // on a busy machine the follower may ask again too soon
		// Both ways for a report are free, so the leader hears of this ping within a tick.
		ping = n.last(wiretap.Request, wiretap.Ping, time.Now())
		n.after(ping, 0.28) // the next one is due after a third
		before := asked.Load()
		n.z.Await("the follower to ask", func() bool { return asked.Load() > before })
		begun = time.Now()
		mine = n.a.Acquire() // its create is write 1
		quiet = n.hold(n.follower, observer)
		if inTime = time.Since(begun) < tick/2; !inTime {
			quiet()
			mine.Release()
		}
	}

	// The session makes write 2 by itself, and write 3 follows at once.
	first := n.zxid(n.follower)
	n.z.Await("the follower to carry write 2 out", func() bool { return n.zxid(n.follower) != first })
	two, mark := proposals(), n.a.Tap.Mark()
	late := n.hold(n.leader, n.follower)
	quiet()
	n.z.Await("write 3 to be proposed", func() bool { return proposals() > two })
	back := n.hold(n.follower, n.leader)
	late()
	n.z.Await("write 3 to be answered", func() bool { return len(answers(n.a, mark)) >= 2 })

	second := n.b.Acquire()
	both := time.Now()
	if mine.Context().Err() != nil {
		return false
	}
	zktest.AwaitChan(n.z, "A to be notified", mine.Context().Done())
	t.Logf("B was inside, too, for %.2f of a timeout", time.Since(both).Seconds()/timeout.Seconds())
	require.Greater(t, token(second), token(mine), "a store that checks tokens is safe")
	back()
	return true
}

// The client's own connection stalls while it holds nothing: its pings do not reach its follower. A
// notification from the server keeps the client from giving the connection up. Then the connection recovers,
// the client makes its first write, and its follower is partitioned. The pings and the write arrive together,
// and the leader may not have heard of the client for almost a timeout. So the lease must not count from the
// sending of that write.
func TestTheFirstWriteAfterAnIdleTimeCountsFromAPing(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)
	n := part(t, e, tenTicks, toFollower, sound)
	n.held.Release()
	n.next.Release()
	news := n.z.Root + "/news"
	_, _, _, err := n.a.ExistsW(news)
	require.NoError(t, err)
	var asked atomic.Int32 // how often the leader has asked, while it sends nothing else
	e.Overhear(n.leader, n.follower, func([]byte) { asked.Add(1) })
	defer e.Overhear(n.leader, n.follower, nil)
	ping := n.last(wiretap.Request, wiretap.Ping, time.Now())
	n.last(wiretap.Reply, wiretap.Ping, ping)
	stall := n.a.Tap.HoldRequest(wiretap.Ping, 1) // the next ping, and everything behind it
	n.after(ping, 0.55)
	_, err = n.z.Observer().Create(news, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	n.after(ping, 0.93)
	call := n.a.Start()
	before := asked.Load()
	n.z.Await("the leader to ask", func() bool { return asked.Load() > before })
	begun := time.Now()
	stall.Let()
	n.last(wiretap.Reply, wiretap.Create, begun) // A's write is answered
	n.follower.CutOff()

	n.b.Acquire() // so A's session has ended: its znode was before B's
	aIsInside := call.Returned() && call.Context().Err() == nil
	require.False(t, aIsInside, "A and B have the lock, and A has not been notified")
	n.follower.Rejoin()
}

// Servers can be configured to check the ACLs before they pass a write on (enableEagerACLCheck). Then a
// follower alone answers a delete that is forbidden. Another client has forbidden the delete that changes
// nothing, and A's follower is partitioned. A must not take the follower's answers for the majority's.
func TestARefusalByAFollowerAloneProvesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 3, "syncLimit=1000", "enableEagerACLCheck=true")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	n := part(t, e, 10*time.Second, toFollower, sound)
	nothing := n.session().nobody
	for _, znode := range []string{pathpkg.Dir(nothing), nothing} {
		_, err := n.z.Observer().Create(znode, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	_, err = n.z.Observer().SetACL(pathpkg.Dir(nothing), zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
	require.NoError(t, err)
	asked := n.a.Tap.Mark()
	held := n.held.Context()
	n.z.Await("A to have asked twice since, or to have lost its hold", func() bool {
		return len(answers(n.a, asked)) >= 2 || held.Err() != nil
	})
	require.NoError(t, context.Cause(held), "A's hold, before the follower is partitioned")
	n.follower.CutOff()
	n.told("the server is a follower, cut off, that refuses writes by itself")
	n.follower.Rejoin()
}

func (n *network) counter(server *zkserver.Peer, name string) int64 {
	counters, err := server.Mntr()
	require.NoError(n, err)
	return counters[name]
}

// zxid returns the zxid of the last transaction that a server has carried out.
func (n *network) zxid(server *zkserver.Peer) string {
	said, err := server.Word("srvr")
	require.NoError(n, err)
	_, said, _ = strings.Cut(said, "Zxid: ")
	said, _, _ = strings.Cut(said, "\n")
	return said
}

// The leader is killed, and the others elect another one. A holds the lock all the time, since the new leader
// gives each session a whole timeout. B, which waits, acquires the lock in its turn.
func TestAHoldOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)
	n := part(t, e, zktest.SessionTimeout, toFollower, sound)
	node, id := n.next.Znode(), n.a.SessionID()
	require.NoError(t, zkserver.StartAgain(n.z.Ctx, []*zkserver.Peer{n.leader}))
	require.NoError(t, e.Serving(n.z.Ctx))
	n.z.Await("A and B to be back", func() bool {
		return n.a.State() == zk.StateHasSession && n.b.State() == zk.StateHasSession
	})
	require.NoError(t, context.Cause(n.held.Context()), "A's hold")
	require.False(t, n.next.Returned(), "B is in beside A")
	n.held.Release()
	n.next.Acquired()
	require.Equal(t, id, n.a.SessionID(), "A's session")
	require.Equal(t, node, n.next.Znode(), "B's place in the queue")
	n.next.Release()
}

// No majority is left. A loses the lock because no server answers, and B waits. When the servers run again, B
// acquires the lock as soon as A has unlocked, with its place in the queue.
func TestWithoutAMajority(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)
	n := part(t, e, tenTicks, toFollower, sound)
	killed := []*zkserver.Peer{n.leader, n.followers[1]}
	for _, server := range killed {
		require.NoError(t, server.Kill())
	}
	zktest.AwaitChan(n.z, "A to be notified", n.held.Context().Done())
	requireReason(t, context.Cause(n.held.Context()), ReasonLeaseOver)
	require.False(t, n.next.Returned())
	require.NoError(t, zkserver.StartAgain(n.z.Ctx, killed))
	require.NoError(t, e.Serving(n.z.Ctx))
	err := n.held.Unlock()
	require.ErrorIs(t, err, ErrLost)
	n.next.Acquired()
	require.Greater(t, token(n.next), token(n.held))
	n.next.Release()
}

// The leader is paused. If the pause were short, A would not notice. Here it lasts until A is notified of the
// loss. B waits until the servers serve again, and A has unlocked.
func TestALeaderThatIsStopped(t *testing.T) {
	t.Parallel()
	e, _, _ := zktest.ThreeServers(t)
	for server, at := range map[string]func(*network) *zkserver.Peer{"a follower": toFollower, "the leader": toLeader} {
		n := part(t, e, zktest.MortalTimeout, at, sound)
		require.NoError(t, n.leader.Pause())
		zktest.AwaitChan(n.z, "A, whose server is "+server+", to be told", n.held.Context().Done())
		requireReason(t, context.Cause(n.held.Context()), ReasonLeaseOver)
		require.False(t, n.next.Returned(), "no majority can end A's session, and B is in")
		require.NoError(t, n.leader.Resume())
		require.NoError(t, e.Serving(n.z.Ctx))
		require.ErrorIs(t, n.held.Unlock(), ErrLost)
		n.next.Acquired()
		require.Greater(t, token(n.next), token(n.held))
		n.next.Release()
		n.a.Close()
		n.b.Close()
	}
}
