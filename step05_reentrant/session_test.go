package reentrant

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestTheSessionGoesByTheTimeoutThatTheServerGranted(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	conf, err := z.Word("conf")
	require.NoError(t, err)
	longest, err := strconv.Atoi(regexp.MustCompile(`maxSessionTimeout=(\d+)`).FindStringSubmatch(conf)[1])
	require.NoError(t, err)
	a := joinOver(t, z, "A", time.Duration(longest)*time.Millisecond*5, nil)
	_, granted := a.s.now()
	require.Equal(t, time.Duration(longest)*time.Millisecond, granted)
}

// A asks for five minutes and is granted a second and a half. Cut off, it must
// know of the loss before B is let in.
func TestTheHolderIsToldInTimeWhenTheServerGrantedLessThanAskedFor(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinOver(t, z, "A", 5*time.Minute, asking(zktest.MortalTimeout))
	b := join(t, z, "B")
	held := a.acquire()
	waiting := b.start()
	b.waits(waiting, "A holds the lock")
	a.Crash()
	waiting.Acquired()
	require.ErrorIs(t, context.Cause(held), ErrLost, "what A knows when B is let in")
}

func TestABriefDisconnectDoesNotEndTheHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	for range 3 {
		a.Tap.LoseReply(wiretap.Exists, 1)
		_, _, err := a.Exists("/")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
	}
	z.Barrier(a.Client)
	require.NoError(t, held.Err())
	require.Equal(t, a.ID, a.SessionID())
	a.holds(held)
	a.release(held)
}

// The lease runs out while A is cut off, and the server still has the session
// when the line is back: the hold is lost, the lock is not.
func TestALostLeaseEndsTheHoldAndNotTheSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinOver(t, z, "A", zktest.SessionTimeout, told(time.Second))
	held := a.acquire()
	a.Tap.Cut()
	zktest.AwaitChan(z, "the hold to be told of its loss", held.Done())
	require.ErrorIs(t, context.Cause(held), ErrLost)
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	waiting := a.start() // while it is cut off

	a.Tap.Restore()
	held = waiting.in()
	require.NoError(t, held.Err(), "a new hold, on a session that lives")
	require.Equal(t, a.ID, a.SessionID())
	a.holds(held)
	a.release(held)
}

// A's turn comes, and its line goes down for longer than its lease just as it
// asks for the list. The list that it gets in the end must not make it a holder
// whose hold is lost already.
func TestAWaiterWhoseLeaseRanOutGetsAGoodHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	gate := make(chan struct{})
	back := sync.OnceFunc(func() { close(gate) })
	defer back()
	first := true
	a := joinOver(t, z, "A", zktest.SessionTimeout, func(c net.Conn) net.Conn {
		if !first {
			<-gate
		}
		first = false
		return told(time.Second)(c)
	})
	b := join(t, z, "B")
	held := b.acquire()
	waiting := a.start()
	a.waits(waiting, "B holds the lock")
	node, life := a.made(), a.life()
	lost := a.Tap.LoseRequest(wiretap.GetChildren, 1)
	b.release(held)
	zktest.AwaitChan(z, "A to ask for the list", lost.Sprung())
	zktest.AwaitChan(z, "A's lease to run out", life.ctx.Done())
	back()
	held = waiting.in()
	require.NoError(t, held.Value(holdOf{a.lock}).(*hold).life.ctx.Err(), "a new hold")
	require.Equal(t, node, a.made(), "A's place in the queue")
	a.release(held)
}

func (p *party) life() *life {
	l, _ := p.s.now()
	return l
}

func TestCloseWhileWaitingAndWhileHolding(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := a.acquire()
	behind := a.queueUp(1)
	waiting := b.start()
	b.waits(waiting, "A holds the lock")
	elsewhere := b.queueUp(2)

	b.Close()
	require.ErrorIs(t, waiting.Err(), errClosed)
	require.ErrorIs(t, elsewhere.Err(), errClosed)
	require.Len(t, a.queue(), 1, "A's znode alone")

	a.Close()
	zktest.AwaitChan(z, "the hold to be told of its loss", held.Done())
	require.ErrorIs(t, context.Cause(held), ErrLost)
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	require.ErrorIs(t, behind.Err(), errClosed)
	require.Empty(t, a.queue())

	a.Close() // a second time
	_, err := a.lock.Lock(z.Ctx)
	require.ErrorIs(t, err, errClosed)
	_, err = a.lock.TryLock(z.Ctx, 0)
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, a.lock.Unlock(context.Background()), ErrNotHeld)
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		servers []string
		timeout time.Duration
		says    []string
	}{
		"no servers":         {nil, time.Second, []string{"servers []", "want host:port"}},
		"no time-out":        {[]string{"127.0.0.1:2181"}, 0, []string{"time-out 0s", "want host:port and 1ms to"}},
		"a negative one":     {[]string{"127.0.0.1:2181"}, -time.Second, []string{"time-out -1s"}},
		"less than the wire": {[]string{"127.0.0.1:2181"}, time.Microsecond, []string{"time-out 1µs"}},
		"more than the wire": {[]string{"127.0.0.1:2181"}, math.MaxInt64, []string{"time-out 2562047h47m16.854775807s"}},
		"no such host":       {[]string{"no-such-host.invalid:2181"}, time.Second, []string{"connect to", "no-such-host.invalid"}},
		"not an address":     {[]string{"::1::"}, time.Second, []string{"connect to", "::1::"}},
	} {
		s, err := Open(c.servers, c.timeout)
		require.Nil(t, s, what)
		for _, words := range c.says {
			require.ErrorContains(t, err, words, what)
		}
	}
}

// Each of these is something else than a ZooKeeper. Open says what it met.
func TestOpenSaysWhatKeptItFromASession(t *testing.T) {
	t.Parallel()
	// granted is an answer to the handshake: a session, with a time-out of t ms.
	granted := func(ms int) []byte {
		b := binary.BigEndian.AppendUint32(nil, 36)
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(ms))
		b = binary.BigEndian.AppendUint64(b, 7)
		return append(binary.BigEndian.AppendUint32(b, 16), make([]byte, 16)...)
	}
	for what, c := range map[string]struct {
		answer func(net.Conn)
		says   string
	}{
		"nobody listens":      {nil, "connection refused"},
		"it says nothing":     {func(net.Conn) {}, "did not answer the handshake"},
		"it hangs up":         {func(c net.Conn) { c.Close() }, "did not answer the handshake"},
		"it speaks HTTP":      {says("HTTP/1.1 400 Bad Request\r\n\r\n"), "sent a frame of 1213486160 bytes: this is not ZooKeeper"},
		"a frame of 2 GB":     {says("\x7f\xff\xff\xff"), "sent a frame of 2147483647 bytes: this is not ZooKeeper"},
		"a frame of -1 bytes": {says("\xff\xff\xff\xff"), "sent a frame of 4294967295 bytes: this is not ZooKeeper"},
		"a frame too short":   {says("\x00\x00\x00\x04abcd"), "sent a frame of 4 bytes: this is not ZooKeeper"},
		"a time-out of 0":     {says(string(granted(0))), "granted a session time-out of 0s: this is not ZooKeeper"},
		"a negative time-out": {says(string(granted(-1000))), "granted a session time-out of -1s: this is not ZooKeeper"},
		"only half an answer": {says(string(granted(1000)[:10])), "did not answer the handshake"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			address := serve(t, c.answer)
			impatient := func(o *options) { o.patience = 300 * time.Millisecond }
			s, err := Open([]string{address}, 300*time.Millisecond, impatient)
			require.Nil(t, s)
			require.ErrorContains(t, err, "no session after 300ms")
			require.ErrorContains(t, err, address)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// A frame without a head would make the client panic.
func TestAFrameWithoutAHeadEndsTheConnection(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		_, _ = server.Write([]byte{0, 0, 0, 4, 255, 255, 255, 255})
	}()
	p := newPulse(client, &Session{})
	p.greeted = true
	_, err := p.Read(make([]byte, 4))
	require.ErrorContains(t, err, "sent a frame of 4 bytes: this is not ZooKeeper")
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// serve listens on a free port until the test ends, and answers each connection
// once it has asked something. With a nil answer it gives the port back.
func serve(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if answer == nil {
		l.Close()
		return l.Addr().String()
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 100)); err != nil {
					return
				}
				answer(c)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}
