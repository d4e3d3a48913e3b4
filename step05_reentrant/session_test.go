package reentrant

import (
	"context"
	"io"
	"net"
	"reflect"
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
	granted := a.s.Timeout()
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
	node, lease := a.made(), a.s.Lease()
	lost := a.Tap.LoseRequest(wiretap.GetChildren, 1)
	b.release(held)
	zktest.AwaitChan(z, "A to ask for the list", lost.Sprung())
	zktest.AwaitChan(z, "A's lease to run out", lease.Done())
	back()
	held = waiting.in()
	require.NoError(t, held.Err(), "a new hold")
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
		return patient{&altered{Conn: c, ask: zktest.SessionTimeout, tell: time.Second}} // each time
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
	require.NoError(t, held.Err(), "a new hold")
	asked := a.requests(mark)
	t.Log("asked after the handshake:", asked)
	require.Less(t, asked[wiretap.GetChildren]+asked[wiretap.Delete], 10, "lists and writes in vain, until it had a lease: %v", asked)
	a.release(held)
}

// patient is a line on which nothing comes too late.
type patient struct{ net.Conn }

func (patient) SetReadDeadline(time.Time) error { return nil }

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
		return f.Kind == wiretap.Request && (f.Op == wiretap.Delete || f.Op == wiretap.Connect)
	})
	require.True(t, asked, "the leader was not asked when the turn had come")
	b.release(second)
}

func TestCloseWhileWaitingAndWhileHolding(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := cohort(join(t, z, "A")), join(t, z, "B")
	held := a.acquire()
	behind := a.lineUp(1)
	waiting := b.start()
	b.waits(waiting, "A holds the lock")
	elsewhere := b.start()

	b.Close()
	require.ErrorContains(t, waiting.Err(), "the session is closed")
	require.ErrorContains(t, elsewhere.Err(), "the session is closed")
	require.Len(t, a.queue(), 1, "A's znode alone")

	a.Close()
	zktest.AwaitChan(z, "the hold to be told of its loss", held.Done())
	require.ErrorIs(t, context.Cause(held), ErrLost)
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	require.ErrorContains(t, behind.Err(), "the session is closed")
	require.Empty(t, a.queue())

	a.Close() // a second time
	_, err := a.lock.Lock(z.Ctx)
	require.ErrorContains(t, err, "the session is closed")
	_, err = a.lock.TryLock(z.Ctx, 0)
	require.ErrorContains(t, err, "the session is closed")
	require.ErrorIs(t, a.lock.Unlock(context.Background()), ErrNotHeld)
}

// The user closes the connection, of which the session knows nothing. A loop that
// repeats what was not answered would spin.
func TestAConnectionClosedByItsUserClosesTheSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := b.acquire()
	waiting := a.start()
	a.waits(waiting, "B holds the lock")
	a.s.Conn().Close()
	require.ErrorContains(t, waiting.Err(), "the session is closed")
	_, err := a.lock.Lock(z.Ctx)
	require.ErrorContains(t, err, "the session is closed")
	z.Await("A's znode to go with its session", func() bool { return len(a.queue()) == 1 })
	b.release(held)
}

// B holds the lock, and A's line goes down right behind the list that tells A so.
// The getData that A's client had not sent yet goes out on A's next session, which
// has no znode: a watch set so would wait without a place in the queue. Whether
// the client still sends it is up to chance, so there are up to six rounds.
func TestAWatchOfTheNextSessionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	b := join(t, z, "B")
	held := b.acquire()
	late := false
	for round := 0; !late && round < 6; round++ {
		a := &party{t: t, z: z}
		a.Client = z.ConnectWith("A", func(dial zk.Dialer) (*zk.Conn, func(), error) {
			// With few servers the client gives up what it has not sent.
			session, err := Open(slices.Repeat(z.Servers(), 3), zktest.MortalTimeout, WithDialer(dial))
			require.NoError(t, err)
			a.s, a.lock = session, New(session, z.Root+"/lock")
			return session.Conn(), session.Close, nil
		})
		list := a.Tap.HoldReply(wiretap.GetChildren, 1)
		busy := a.Tap.HoldRequest(wiretap.Exists, 1) // with it the client is busy sending
		waiting := a.start()
		zktest.AwaitChan(z, "the list to be answered", list.Sprung())
		go func() { _, _, _ = a.Exists("/") }()
		zktest.AwaitChan(z, "A's client to be busy", busy.Sprung())
		list.Let()
		z.Await("the getData to wait for it", func() bool { return unsent(a.Conn) == 1 })
		cut := a.outageAt(nil)
		mark := a.Tap.Mark()
		a.Tap.HangUp()
		zktest.AwaitChan(z, "A to connect again", cut.hello.Sprung())
		z.AwaitExpiry(a.Client)
		cut.end()
		z.Await("A to stand in the queue again", func() bool { return len(a.queue()) == 2 })
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
	b.release(held)
}

// unsent is how many requests the client holds in its channel.
func unsent(c *zk.Conn) int { return reflect.ValueOf(c).Elem().FieldByName("sendChan").Len() }
