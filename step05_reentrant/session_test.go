package reentrant

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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

// A's line goes down as its turn comes, and the server is so slow with the next
// handshake that the lease which it renews is over by then. Of what is asked now
// the leader's answers are proof only a tenth of the time-out later. A must not
// spend that time with asking.
func TestAfterALateHandshakeAWaiterWaitsForItsLease(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinOver(t, z, "A", zktest.SessionTimeout, func(c net.Conn) net.Conn {
		return patient{&handshake{Conn: c, ask: zktest.SessionTimeout, tell: time.Second}} // each time
	})
	b := join(t, z, "B")
	held := b.acquire()
	waiting := a.start()
	a.waits(waiting, "B holds the lock")
	hello := a.Tap.HoldReply(wiretap.Connect, 1)
	lost := a.Tap.LoseRequest(wiretap.GetChildren, 1)
	b.release(held)
	zktest.AwaitChan(z, "A to ask for the list", lost.Sprung())
	zktest.AwaitChan(z, "A's handshake to be answered", hello.Sprung())
	begin, mark := time.Now(), a.Tap.Mark()
	z.Await("the handshake's lease to be over", func() bool { return time.Since(begin) > time.Second })
	hello.Let()
	held = waiting.in()
	require.NoError(t, held.Value(holdOf{a.lock}).(*hold).life.ctx.Err(), "a new hold")
	asked := a.requests(mark)
	t.Log("asked after the handshake:", asked)
	require.Less(t, asked[wiretap.GetChildren]+asked[wiretap.Sync], 10, "lists and syncs, until it had a lease: %v", asked)
	a.release(held)
}

// patient is a line on which nothing comes too late.
type patient struct{ net.Conn }

func (patient) SetReadDeadline(time.Time) error { return nil }

func (p *party) life() *life {
	l, _ := p.s.now()
	return l
}

// A server that is slow takes longer over a handshake than the first try waits
// for. Each try keeps the session alive: with no more patience for the next one,
// nobody would ever get in, and the znode would stay.
func TestASlowServerIsHeardInTheEnd(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var late atomic.Int64 // how much longer an answer takes, in nanoseconds
	a := joinOver(t, z, "A", zktest.MortalTimeout, func(c net.Conn) net.Conn {
		near, far := net.Pipe()
		go func() {
			_, _ = io.Copy(c, far)
			c.Close()
		}()
		go func() {
			defer far.Close()
			for b := make([]byte, 4096); ; {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				time.Sleep(time.Duration(late.Load()))
				if _, err := far.Write(b[:n]); err != nil {
					return
				}
			}
		}()
		return near
	})
	held := a.acquire()
	late.Store(int64(zktest.MortalTimeout / 2)) // a first try waits for a third
	a.Tap.Cut()
	z.Await("A to see that it is cut off", func() bool { return a.State() != zk.StateHasSession })
	a.Tap.Restore()
	z.Await("A to be heard", func() bool { return a.State() == zk.StateHasSession })
	late.Store(0)
	if err := a.lock.Unlock(held); err != nil { // the lease may be over by now
		require.ErrorIs(t, err, ErrLost)
	}
	z.Await("A's znode to go", func() bool { return len(a.queue()) == 0 })
}

// Two session time-outs pass. A waiter is silent, and the leader is asked when
// its turn has come. (For the holder's sake it is asked all the while: see
// TestALongHoldAsksTheLeader.)
func TestALongWaitEndsWithAGoodLease(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), joinMortal(t, z, "B")
	held := a.acquire()
	waiting := b.start()
	b.waits(waiting, "A holds the lock")
	begin, mark := time.Now(), b.Tap.Mark()
	z.Await("two session time-outs to pass", func() bool { return time.Since(begin) > 2*zktest.MortalTimeout })
	require.Empty(t, b.requests(mark), "sent while it waited")
	a.release(held)
	second := waiting.in()
	require.NoError(t, context.Cause(second))
	// A handshake does as well as a sync, should the machine have stopped for so
	// long that the line was given up.
	asked := slices.ContainsFunc(b.Tap.Since(mark), func(f wiretap.Frame) bool {
		return f.Kind == wiretap.Request && (f.Op == wiretap.Sync || f.Op == wiretap.Connect)
	})
	require.True(t, asked, "the leader was not asked when the turn had come")
	b.release(second)
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

// FuzzPulse reads what a server sends, cut into pieces of any size. What is let
// through is what was sent. Each answer, and nothing else, takes one question,
// and if that was one to the leader, the lease counts from the newest question
// that was sent a tenth of the time-out earlier.
func FuzzPulse(f *testing.F) {
	frame := func(size uint32, rest ...uint32) (b []byte) {
		b = binary.BigEndian.AppendUint32(b, size)
		for _, n := range rest {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	hello := frame(36, 0, 10_000, 0, 7, 16, 0, 0, 0, 0)
	answer, event := frame(16, 1, 0, 9, 0), frame(24, math.MaxUint32, 0, 0, 0, 3, 0)
	f.Add(bytes.Join([][]byte{hello, event, answer, event, answer, frame(20, 2, 0, 10, 0, 5)}, nil), []byte{4, 36, 1}, []byte{4, opDelete, 11, opCreate, opSync, opDelete})
	f.Add(append(hello, bytes.Repeat(answer, 8)...), []byte{}, bytes.Repeat([]byte{11}, 8)) // pings
	f.Add(append(hello, bytes.Repeat(answer, 8)...), []byte{}, bytes.Repeat([]byte{opSync}, 8))
	f.Add(append(hello, frame(math.MaxInt32, 1, 2)...), []byte{3}, []byte{opCreate})
	f.Add(append(hello, frame(math.MaxUint32)...), []byte{100}, []byte{opCreate})
	f.Add(append(hello, frame(4, math.MaxUint32)...), []byte{43}, []byte{})
	f.Add(frame(36, 0, 0, 0, 7), []byte{7, 5}, []byte{})
	f.Add(frame(36, 0, math.MaxUint32, 0, 7), []byte{7, 5}, []byte{})
	f.Add(append(frame(36, 0, 0, 0, 0, 0, 0, 0, 0, 0), answer...), []byte{}, []byte{opCreate})
	f.Add([]byte("HTTP/1.1 400 Bad Request"), []byte{}, []byte{})

	f.Fuzz(func(t *testing.T, stream, cuts, kinds []byte) {
		s := &Session{timeout: time.Second, timer: time.AfterFunc(time.Hour, func() {})}
		defer s.timer.Stop()
		s.ctx, s.end = context.WithCancel(context.Background())
		defer s.end()
		p := newPulse(&feed{left: stream, cuts: cuts}, s)
		var toLeader []bool
		ask := func(question []byte, leader bool) {
			_, err := p.Write(question)
			require.NoError(t, err)
			toLeader = append(toLeader, leader)
		}
		ask(frame(44), true) // the handshake
		for _, kind := range kinds {
			ask(frame(8, 1, uint32(kind)), slices.Contains([]byte{opCreate, opDelete, opSync}, kind))
		}
		var asked []time.Time
		for i := range p.sent {
			p.sent[i].at = p.sent[i].at.Add(time.Duration(i) * 400 * time.Millisecond)
			asked = append(asked, p.sent[i].at)
		}

		// What there is in the stream, up to the first that is no ZooKeeper's.
		ok, timeout, answers, renewed := len(stream), time.Second, 0, -1
		for at := 0; at+4 <= len(stream); {
			left := stream[at:]
			size := int(binary.BigEndian.Uint32(left))
			if size < minFrame || size > maxFrame {
				ok = at + 3 // its length is not all let through
				break
			}
			at += 4 + size
			if answers == 0 && len(left) >= 20 {
				if binary.BigEndian.Uint64(left[12:]) != 0 { // a session
					timeout, renewed = time.Duration(int32(binary.BigEndian.Uint32(left[8:])))*time.Millisecond, 0
				}
				if timeout <= 0 {
					ok, renewed = at-size+15, -1
					break
				}
				answers = 1
			} else if answers > 0 && len(left) >= 8 && binary.BigEndian.Uint32(left[4:]) != math.MaxUint32 {
				if answers < len(toLeader) && toLeader[answers] {
					for older := answers; older >= 0; older-- {
						if asked[answers].Sub(asked[older]) >= timeout/10 {
							renewed = older
							break
						}
					}
				}
				answers++
			}
		}

		var through []byte
		var err error
		for size := 1; err == nil; size = size*7%97 + 1 {
			b := make([]byte, size)
			var n int
			n, err = p.Read(b)
			through = append(through, b[:n]...)
			require.LessOrEqual(t, cap(p.head), 32)
		}
		require.True(t, bytes.HasPrefix(stream, through), "let through: %q", through)
		require.Equal(t, ok < len(stream), err != io.EOF, "the end: %v", err)
		require.LessOrEqual(t, len(through), ok)
		if err == io.EOF {
			require.Len(t, through, len(stream))
		}
		require.Len(t, p.sent, max(0, len(toLeader)-answers))
		if renewed < 0 {
			require.Zero(t, s.until)
			return
		}
		require.True(t, s.until.Equal(asked[renewed].Add(timeout*9/10)), "the lease is not that of question %d", renewed)
	})
}

// feed is a connection on which a server sends something in pieces.
type feed struct {
	net.Conn
	left, cuts []byte
}

func (c *feed) Write(b []byte) (int, error) { return len(b), nil }
func (c *feed) RemoteAddr() net.Addr        { return &net.TCPAddr{} }

func (c *feed) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := min(len(b), len(c.left))
	if len(c.cuts) > 0 {
		n = min(n, 1+int(c.cuts[0]))
		c.cuts = c.cuts[1:]
	}
	n = copy(b, c.left[:n])
	c.left = c.left[n:]
	return n, nil
}
