package leased

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	anywhere := []string{"127.0.0.1:2181"}
	for _, c := range []struct {
		servers []string
		timeout time.Duration
		option  Option
		says    string
	}{
		{nil, time.Second, WithDialer(net.DialTimeout), "servers [] and timeout 1s: want at least one host:port"},
		{anywhere, 0, WithDialer(net.DialTimeout),
			"timeout 0s: want at least one host:port, and a timeout from 1ms to"},
		{anywhere, -time.Second, WithDialer(net.DialTimeout), "timeout -1s: want"},
		{anywhere, time.Microsecond, WithDialer(net.DialTimeout), "timeout 1µs: want"},
		{anywhere, longestTimeout + 1, WithDialer(net.DialTimeout), "timeout 596h31m23.647000001s: want"},
		{anywhere, time.Second, WithAuth("digest", []byte("name")), `"digest" has no colon: want name:password`},
		{anywhere, math.MaxInt64, WithDialer(net.DialTimeout), "timeout 2562047h47m16.854775807s: want"},
		{
			[]string{""},
			time.Second,
			WithDialer(net.DialTimeout),
			`the address "": missing port in address: want host:port`,
		},
		{[]string{"::1::"}, time.Second, WithDialer(net.DialTimeout), `the address "::1::": `},
		{anywhere, time.Second, nil, "an option is nil: leave it out"},
		{anywhere, time.Second, WithDialer(nil), "the dialer is nil: give one, or leave WithDialer out"},
	} {
		_, err := Open(t.Context(), c.servers, c.timeout, c.option)
		require.ErrorContains(t, err, c.says)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := Open(ended, []string{"127.0.0.1:1"}, longestTimeout)
	require.ErrorContains(t, err, "no session after", "the longest timeout")
}

// None of these addresses is a ZooKeeper server. The error of Open says what it found there. Each Open takes
// its ten seconds, so all run at the same time.
func TestOpenSaysWhatKeptItFromASession(t *testing.T) {
	t.Parallel()
	said := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	var opening sync.WaitGroup
	for _, c := range []struct { // FuzzHandshake has more
		answer func(net.Conn)
		says   string
	}{
		{nil, "connection refused"},
		{said(""), "did not answer the handshake"},
		{func(c net.Conn) { c.Close() }, "did not answer the handshake"},
		{said("\x00\x00\x00\x24\x00\x00\x00\x00\x00\x00"), "did not answer the handshake"},
		{
			said("HTTP/1.1 400 Bad Request\r\n\r\n"),
			`answered the handshake with "HTTP/1.1 400 Bad Req": this is not ZooKeeper`,
		},
		// no password
		{
			said("\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x00\x00\x00\x00\x07"),
			"zk: buffer too small",
		},
	} {
		address := zktest.Impostor(t, c.answer)
		opening.Go(func() {
			// short, so that several tries end within the ten seconds
			_, err := Open(t.Context(), []string{address}, 1500*time.Millisecond)
			assert.ErrorContains(t, err, "does ZooKeeper run at [\""+address+"\"]?")
			assert.ErrorContains(t, err, c.says)
		})
	}
	opening.Wait()
}

// Open returns when its context ends. Once Open has succeeded, the context has no effect.
func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	nowhere := zktest.Impostor(t, func(net.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Open(ctx, []string{nowhere}, time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "does ZooKeeper run at")
	var none context.Context
	_, err = Open(none, []string{nowhere}, time.Second)
	require.ErrorContains(t, err, "the context is nil")

	z := zktest.New(t)
	ctx, cancel = context.WithCancel(t.Context())
	s, err := Open(ctx, z.Servers(), zktest.SessionTimeout)
	require.NoError(t, err)
	defer s.Close()
	cancel()
	hold, err := NewMutex(s, z.Root+"/lock").Lock(z.Ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

// A client that asks for a timeout of a few milliseconds is granted more. So it must wait long enough for
// the answer to the handshake.
func TestOpenWithAVeryShortTimeout(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, err := Open(t.Context(), z.Servers(), time.Millisecond)
	require.NoError(t, err)
	defer s.Close()
	require.Greater(t, s.Timeout(), time.Millisecond)
}

// A lock may still use its session after the session has ended.
func TestAClosedSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, err := Open(t.Context(), z.Servers(), zktest.SessionTimeout)
	require.NoError(t, err)
	lease := s.takeLease(context.Background())
	lost := make(chan struct{})
	stop := s.useLease(lease, &leaseUser{lose: func(*LostError) { close(lost) }})
	waiting, closed := make(chan struct{}), make(chan struct{})
	require.False(t, s.isClosed())
	require.False(t, s.isOver(lease))
	require.True(t, s.run(func() { <-waiting }), "an open session runs what it is given")
	// A nil function is the caller's mistake. A caller that recovers still has a session that works.
	require.Panics(t, func() { _ = s.write(nil) })
	require.NoError(t, s.ask())
	go func() {
		s.Close()
		close(closed)
	}()
	zktest.AwaitChan(z, "the user of the lease to be notified", lost)
	require.True(t, s.isOver(lease))
	zktest.AwaitChan(z, "the session to be done", s.Done())
	z.Await("the connection to be closed", func() bool { return s.Conn().State() == zk.StateDisconnected })
	z.Names(z.Root) // and for as long as a request takes
	select {
	case <-closed:
		t.Error("Close has not waited for what run has begun")
	default:
	}
	close(waiting)
	zktest.AwaitChan(z, "Close to return, while the lease is kept", closed)

	require.True(t, s.isClosed())
	require.ErrorIs(t, s.ask(), zk.ErrConnectionClosed)
	own := errors.New("the write's own error")
	require.ErrorIs(t, s.write(func() error { return own }), own)
	for _, err := range []error{nil, zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrNoAuth} {
		require.False(t, s.canRetry(err), "closed, and to be tried again: %v", err)
	}
	require.NoError(t, s.write(func() error { return nil }))
	require.True(t, s.isOver(s.takeLease(context.Background())), "closed, and a write's answer begins a lease")
	require.False(t, s.run(func() { t.Error("closed, and begins something") }))
	require.Equal(t, zktest.SessionTimeout, s.Timeout())
	stop()
	stop()
	told := 0
	s.useLease(s.takeLease(context.Background()), &leaseUser{lose: func(*LostError) { told++ }})()
	require.Equal(t, 1, told, "how often a hold is notified whose lease was over when it began")
	s.Close()
	_, _, err = s.Conn().Exists(z.Root)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
}

// A is the first in the queue. Just when it sends the list, its connection breaks for longer than its lease.
// When the list succeeds in the end, A must not get a hold that is already lost.
func TestAWaiterWhoseLeaseRanOutGetsAGoodHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	believes := zktest.Handshake{Tell: 3 * zktest.MortalTimeout} // the server keeps the session for longer
	a := mutexes.JoinAs(z, "A", property.Seat{Through: believes.Through})
	held := mutexes.Join(z, "B").Acquire()
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	s := session(a)
	node, lease := a.Znode(), s.takeLease(context.Background())
	asks := a.Tap.HoldRequest(wiretap.GetChildren, 1)
	held.Release()
	zktest.AwaitChan(z, "A to ask for the list", asks.Sprung())
	a.Tap.Cut()
	z.Await("A's lease to run out", func() bool { return s.isOver(lease) })
	a.Tap.Restore()
	require.NoError(t, waiting.Context().Err(), "a new hold")
	require.Equal(t, node, a.Znode(), "A's place in the queue")
	waiting.Release()
}

// A becomes the first in the queue when a little more than a tick of its first lease is left, and its answers
// are slow. Three writes during the hold would renew the lease too late. So A makes one write before the hold
// begins, which counts from a ping.
func TestAWaiterWhoseLeaseIsShortKeepsItsHold(t *testing.T) {
	t.Parallel()
	lost := inThreeTries(zktest.MortalTimeout, func(timeout time.Duration) error {
		return lostAfterAShortLease(t, timeout)
	})
	require.NoError(t, lost, "nothing was wrong but that the answers were slow")
}

// lostAfterAShortLease returns why the hold has ended within a timeout, or nil if it has not.
func lostAfterAShortLease(t *testing.T, timeout time.Duration) (lost error) {
	t.Helper()
	z := zktest.New(t)
	held := mutexes.Join(z, "B").Acquire()
	a := mutexes.JoinAs(z, "A", property.Seat{Timeout: timeout})
	begin := time.Now()
	a.Tap.Delay(timeout / 25)
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	z.Await("most of A's first lease to pass", func() bool { return time.Since(begin) > timeout*6/10 })
	held.Release()
	turn := waiting.Context()
	begin = time.Now()
	z.Await("a timeout to pass", func() bool { return time.Since(begin) > timeout })
	lost = context.Cause(turn)
	if lost == nil {
		waiting.Release()
	}
	return lost
}

// A's connection breaks when A becomes the first in the queue. The server answers the next handshake so late
// that A's lease is over by then. It takes at least a tick until A's writes prove another lease. A must not
// poll the servers during that time.
func TestAfterALateHandshakeAWaiterWaitsForItsLease(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	// The new hold has only a part of it left, and must outlast a stall of a busy machine.
	const told = 3 * zktest.MortalTimeout
	a := mutexes.JoinAs(z, "A", property.Seat{Through: zktest.Over(func(c net.Conn) net.Conn { // on each connection
		return patient{zktest.Handshake{Ask: zktest.SessionTimeout, Tell: told}.Conn(c)}
	})})
	held := mutexes.Join(z, "B").Acquire()
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	hello := a.Tap.HoldReply(wiretap.Connect, 1)
	lost := a.Tap.LoseRequest(wiretap.GetChildren, 1)
	held.Release()
	zktest.AwaitChan(z, "A to ask for the list", lost.Sprung())
	zktest.AwaitChan(z, "A's handshake to be answered", hello.Sprung())
	begin, mark := time.Now(), a.Tap.Mark()
	z.Await("the handshake's lease to be over", func() bool { return time.Since(begin) > told })
	free := time.Now()
	hello.Let()
	require.NoError(t, waiting.Context().Err(), "a new hold")
	asked := a.Requests(mark)
	// Two requests in each half of a tick, for about two ticks, and longer on a busy machine. A waiter
	// that does not wait makes hundreds.
	halves := int(time.Since(free) / (longestTick(told) / 2))
	require.Less(t, asked[wiretap.GetChildren]+asked[wiretap.Delete], 20+2*halves,
		"lists and writes that change nothing, until it had a lease: %v, in %d halves of a tick", asked, halves)
	waiting.Release()
}

// patient is a connection without deadlines.
type patient struct{ net.Conn }

func (patient) SetReadDeadline(time.Time) error  { return nil }
func (patient) SetWriteDeadline(time.Time) error { return nil }

// A slow server takes longer to answer a handshake than the first try waits. Each try keeps the session
// alive. If later tries were not more patient, no client would ever acquire the lock, and the znode would
// stay.
func TestASlowServerIsHeardInTheEnd(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := mutexes.JoinAs(
		z,
		"A",
		property.Seat{Timeout: zktest.MortalTimeout, Through: zktest.Over(func(c net.Conn) net.Conn {
			near, far := net.Pipe() // supports deadlines, also when data arrives late
			go func() {
				_, _ = io.Copy(c, far)
				c.Close()
			}()
			go func() {
				_, _ = io.Copy(far, c)
				far.Close()
			}()
			return near
		})},
	)
	turn := a.Acquire()
	a.Tap.Cut()
	z.Await("A to see that it is cut off", func() bool { return a.State() != zk.StateHasSession })
	a.Tap.Delay(zktest.MortalTimeout / 2) // a first try waits for a third
	a.Tap.Restore()
	z.Await("A to be heard", func() bool { return a.State() == zk.StateHasSession })
	a.Tap.Delay(0)
	if err := turn.Unlock(); err != nil { // the lease may be over by now
		require.ErrorIs(t, err, ErrLost)
	}
	z.Await("A's znode to go", func() bool { return len(a.Queue()) == 0 })
}

// The user closes the connection, and not the session. A loop that retries unanswered requests must not spin.
func TestAConnectionClosedByItsUserClosesTheSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinProcess(z, "A")
	other := mutexes.At(z, a.Member, z.Root+"/other")
	held, theirs := a.Acquire(), mutexes.JoinAs(z, "B", property.Seat{Path: other.Path}).Acquire()
	inLine, waiting := a.lineUp(1), other.Start()
	waiting.MustWait("B holds the other lock")
	a.Session.Conn().Close()
	zktest.AwaitChan(z, "the hold to be notified of its loss", held.Context().Done())
	require.ErrorIs(t, context.Cause(held.Context()), ErrLost)
	for _, call := range []*zktest.Turn{inLine, waiting, other.Start()} {
		require.ErrorContains(t, call.Err(), "the session is closed")
	}
	require.ErrorIs(t, held.Unlock(), ErrLost)
	z.Await("A's znodes to go with its session", func() bool { return len(a.Queue()) == 0 && len(other.Queue()) == 1 })
	theirs.Release()
}

// After an interruption A's session lives, and its lease is over: another one takes a tick or more. The lock is free. A
// TryLock that gives up meanwhile says why, and leaves no znode that would refuse the lock to others.
func TestATryWithoutALeaseLeavesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	const told = 10 * zktest.MortalTimeout
	a := mutexes.JoinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: told}.Through})
	s, lock := session(a), NewMutex(session(a), a.Path)
	hold := mustLock(t, lock, z.Ctx)
	require.NoError(t, hold.Unlock())
	s.interrupt()
	ctx, cancel := context.WithCancel(z.Ctx)
	mark := a.Tap.Mark()
	go func() {
		defer cancel()
		z.Await("A to look for the second time", func() bool { return a.Requests(mark)[wiretap.GetChildren] >= 3 })
	}()
	_, err := lock.TryLock(ctx)
	require.ErrorIs(t, err, ErrNoAnswer)
	require.NotErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "the lock is free, and too few answers have come yet to rely on the session")
	require.NotContains(t, err.Error(), "no server has answered")
	begun := time.Now()
	z.Await("A's znode to go", func() bool { return len(a.Queue()) == 0 })
	require.Less(t, time.Since(begun), longestTick(told)/2, "and not only when A would have looked again")
}

// interrupt makes the session what it is after a long interruption: no lease, and nothing that proves one.
func (s *Session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases.present.until, s.leases.lastWrite, s.leases.writeBefore = time.Time{}, proof{}, proof{}
	s.leases.lastPing, s.leases.pingBefore = proof{}, proof{}
}

// A has waited for B, and is the first in the queue now, without a lease. When A gives up, its error does not name B.
func TestALockWithoutALeaseNamesNobody(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := mutexes.JoinAs(z, "A", property.Seat{Through: zktest.Handshake{Tell: 10 * zktest.MortalTimeout}.Through})
	held := mutexes.Join(z, "B").Acquire()
	ctx, cancel := context.WithCancel(z.Ctx)
	defer cancel()
	waiting := lock(a, ctx)
	waiting.MustWait("B holds the lock")
	session(a).interrupt()
	mark := a.Tap.Mark()
	held.Release()
	z.Await("A to look for the second time", func() bool { return a.Requests(mark)[wiretap.GetChildren] >= 2 })
	cancel()
	require.ErrorIs(t, waiting.Err(), ErrNoAnswer)
	require.NotErrorIs(t, waiting.Err(), ErrLocked)
}

// A server answers the handshake of A's old session with a new session, instead of saying that the old one has
// expired. A waits for a watch of the old session, and has no znode in the new one: it queues up again.
func TestAWaiterWhoseSessionIsReplacedQueuesUpAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	held := mutexes.Join(z, "B").Acquire()
	var anew atomic.Bool
	a := mutexes.JoinAs(z, "A", property.Seat{Through: zktest.Over(func(c net.Conn) net.Conn { // on each connection
		return &forgetful{Conn: c, anew: &anew}
	})})
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	old, mark := a.SessionID(), a.Tap.Mark()
	anew.Store(true)
	a.Tap.HangUp()
	z.Await("A to have another session", func() bool { return a.SessionID() != old && a.SessionID() != 0 })
	z.Await("A to queue up again", func() bool { return a.Requests(mark)[wiretap.Create] == 1 })
	held.Release()
	_ = waiting.Cancel()
}

// forgetful is a connection that may ask for a new session in each handshake.
type forgetful struct {
	net.Conn
	anew  *atomic.Bool
	wrote bool
}

func (c *forgetful) Write(frame []byte) (int, error) {
	if !c.wrote && c.anew.Load() { // length, version, last zxid, timeout, session, password
		frame = slices.Clone(frame)
		clear(frame[8:16])
		clear(frame[20:28])
		clear(frame[32:])
	}
	c.wrote = true
	return c.Conn.Write(frame)
}

// B holds the lock, and A's connection breaks right after the list that shows this to A. A's client library
// has not sent A's getData yet, and sends it in A's next session, which has no znode. A watch set in that way
// would wait without a place in the queue. Whether the library still sends the getData depends on timing, so
// there are up to six rounds.
func TestAWatchOfTheNextSessionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	held := mutexes.Join(z, "B").Acquire()
	crowd := mutexes
	crowd.Open = func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
		// With few servers the library drops requests that it has not sent.
		return mutexes.Open(slices.Repeat(servers, 3), timeout, dial)
	}
	late := false
	for round := 0; !late && round < 6; round++ {
		a := crowd.JoinMortal(z, "A")
		list := a.Tap.HoldReply(wiretap.GetChildren, 1)
		busy := a.Tap.HoldRequest(wiretap.Exists, 1) // with it the client is busy sending
		waiting := a.Start()
		zktest.AwaitChan(z, "the list to be answered", list.Sprung())
		go func() { _, _, _ = a.Exists("/") }()
		zktest.AwaitChan(z, "A's client to be busy", busy.Sprung())
		list.Let()
		z.Await("the getData to wait for it", func() bool { return unsent(a.Conn) == 1 })
		begun, end := outage(z, a, busy)
		mark := a.Tap.Mark()
		a.Tap.HangUp()
		begun()
		z.AwaitExpiry(a.Client)
		end()
		z.Await("A to stand in the queue again", func() bool { return len(a.Queue()) == 2 })
		connected := false
		for _, f := range a.Tap.Since(mark) {
			connected = connected || f.Op == wiretap.Connect
			if connected && f.Kind == wiretap.Request && f.Op == wiretap.Create {
				break
			}
			late = late || connected && f.Kind == wiretap.Request && f.Op == wiretap.GetData
		}
		_ = waiting.Cancel()
		a.Close()
	}
	t.Log("a getData went out on the next session:", late)
	held.Release()
}

// unsent returns how many requests the client library holds in its channel.
func unsent(c *zk.Conn) int { return reflect.ValueOf(c).Elem().FieldByName("sendChan").Len() }

// A time in Go can have two readings: the wall clock, which can be set, and a monotonic clock, which no
// setting moves. Two times that have monotonic readings are compared by these alone. So a jump of the wall
// clock does not move the lease, provided that all its times have monotonic readings. Round, UTC, or a
// conversion to a number and back would drop them.
func TestTheLeaseHasMonotonicTimesOnly(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := mutexes.JoinAs(z, "A", property.Seat{Timeout: steadyTimeout})
	s := session(a)
	has := func(p *proof) func() bool {
		return func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return !p.isNone()
		}
	}
	z.Await("two pings to be answered", has(&s.leases.pingBefore))
	a.Acquire()
	z.Await("two writes to be answered, a tick apart", has(&s.leases.writeBefore))

	s.mu.Lock()
	defer s.mu.Unlock()
	for what, at := range map[string]time.Time{
		"the end of the lease": s.leases.present.until,
		"ping, sent":           s.leases.lastPing.sent,
		"ping, answered":       s.leases.lastPing.answered,
		"write 1, sent":        s.leases.writeBefore.sent,
		"write 1, answered":    s.leases.writeBefore.answered,
		"write 2, sent":        s.leases.lastWrite.sent,
		"write 2, answered":    s.leases.lastWrite.answered,
	} {
		require.Contains(t, at.String(), " m=", "%s: the monotonic reading, as Go prints it", what)
	}
}
