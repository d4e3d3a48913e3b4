package leased

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
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

// Each of these attacks has broken the lock once.

// answers returns the server's answers to the client's deletes, since the mark.
func answers(m *zktest.Member, mark int) (deletes []wiretap.Frame) {
	for _, f := range m.Tap.Since(mark) {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Delete {
			deletes = append(deletes, f)
		}
	}
	return deletes
}

// outlasts returns when the server has answered the holder's writes that change nothing for that long. If the
// hold is lost before that, the test fails.
func outlasts(z *zktest.Zoo, t *testing.T, turn *zktest.Turn, long time.Duration, why string) {
	t.Helper()
	held, mark, begun := turn.Context(), turn.Tap.Mark(), time.Now()
	var had []wiretap.Frame
	z.Await("the holder to be answered, or to lose its hold", func() bool {
		had = answers(turn.Member, mark)
		long := len(had) > 0 && had[len(had)-1].At.Sub(begun) > long
		return long || held.Err() != nil
	})
	require.NoError(t, context.Cause(held),
		"%s: %s's hold is lost, in a session that lives, after %d answered writes that change nothing",
		why, turn.Name, len(had))
}

// Another client may do nothing in a lock's directory, but it may create znodes at the root. So it creates
// the very znode that the sessions' writes delete. First it creates a child below that znode, then it forbids
// the delete. The server answers each delete as before, but with another error. Even so, the holder must keep
// the lock. The next client must acquire it without polling the server. And a client whose create lost its
// answer must still find its znode.
func TestAnotherClientAtTheRootStopsNobody(t *testing.T) {
	const timeout = steadyTimeout
	ctx, cancel := context.WithTimeout(context.Background(), zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 1) // its own: the sessions of other tests could meet this znode
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	t.Parallel() // not before: starting a JVM disturbs tests that measure
	z := zktest.NewOn(t, e.Members[0].Server)
	const nobody = "/zklock-nobody" // this was once the path for all sessions
	everybody := zk.WorldACL(zk.PermAll)
	holder := mutexes.JoinAs(z, "A", property.Seat{Timeout: timeout}).Acquire()
	next := mutexes.JoinAs(z, "B", property.Seat{Timeout: timeout}).Start()
	lost := mutexes.Join(z, "C")
	lost = mutexes.At(z, lost, z.Root+"/other")
	lost.Acquire().Release()
	for _, another := range []struct {
		does string
		act  func()
	}{
		{"another client has put a znode below the one that is deleted for nothing", func() {
			_, err := z.Observer().Multi( // in one transaction: A may delete the znode between two requests
				&zk.CreateRequest{Path: nobody, Acl: everybody},
				&zk.CreateRequest{Path: nobody + "/nothing", Acl: everybody},
				&zk.CreateRequest{Path: nobody + "/nothing/child", Acl: everybody})
			require.NoError(t, err)
		}},
		{"another client has forbidden the delete for nothing", func() {
			require.NoError(t, z.Observer().Delete(nobody+"/nothing/child", -1))
			_, err := z.Observer().SetACL(nobody, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
			require.NoError(t, err)
		}},
	} {
		next.MustWait("the other one holds the lock")
		another.act()
		outlasts(z, t, holder, timeout, another.does)

		mark := next.Tap.Mark()
		holder.Release()
		const many = 50
		asked := func() int { return wiretap.Count(next.Tap.Since(mark)).All() }
		z.Await("the next one to be let in, or to ask again and again", func() bool {
			return next.Returned() || asked() > many
		})
		require.True(t, next.Returned(),
			"%s: %s is the first in the queue, and is not let in; since the release it has made %v",
			another.does, next.Name, next.Requests(mark))
		next.Acquired()

		lost.Tap.LoseReply(wiretap.Create, 1)
		call := lost.Start()
		require.NoError(
			t,
			call.Err(),
			"%s, and C's create was not answered; the queue: %v",
			another.does,
			lost.Queue(),
		)
		call.Release()
		holder, next = next, holder.Start()
	}
	require.NotEqual(t, deletedForNothing(holder), deletedForNothing(next), "what two sessions delete that is not there")
	holder.Release()
	next.Release()
}

// deletedForNothing returns the path that a client's writes delete although no such znode exists.
func deletedForNothing(turn *zktest.Turn) (path string) {
	for _, f := range turn.Tap.Frames() {
		if f.Class() == wiretap.OfProof {
			path = f.Path
		}
	}
	return path
}

// A's connection breaks while forty of its goroutines make requests, and the server answers the next
// handshake late. The client library's channel is full, so Close cannot tell the server that the session
// ends. If the connection stayed open, the client library would send pings on it forever, and A's znode would
// block every other client. The test also covers a user who closes the connection instead: then the session
// must learn of it.
func TestCloseClosesTheLineThatIsJustComingUp(t *testing.T) {
	t.Parallel()
	for what, closes := range map[string]func(s *Session){
		"the session":    func(s *Session) { s.Close() },
		"its connection": func(s *Session) { s.Conn().Close() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a := mutexes.JoinAs(z, "A", property.Seat{Timeout: 6 * time.Second}) // a handshake may take two thirds of it
			s := session(a)
			turn := a.Acquire()
			hello := a.Tap.HoldReply(wiretap.Connect, 1)
			a.Tap.HangUp()
			zktest.AwaitChan(z, "A's handshake to be under way", hello.Sprung())
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() { _, _, _ = a.Exists("/") })
			}
			channel := reflect.ValueOf(a.Conn).Elem().FieldByName("sendChan")
			z.Await("the client's channel to be full", func() bool { return channel.Len() == channel.Cap() })
			closes(s)
			zktest.AwaitChan(z, "A's session to be closed", s.Done())
			all.Wait()
			require.ErrorIs(t, context.Cause(turn.Context()), ErrLost)

			closed := a.Tap.Mark()
			hello.Let()
			spoken := 0 // frames that A's client has sent since it was closed
			z.Await("the server to see the line closed, or the client to speak on it", func() bool {
				spoken = len(a.Tap.Since(closed))
				lines, err := z.Word("cons") // each connection with its session
				return spoken > 0 || err == nil && !strings.Contains(lines, fmt.Sprintf("sid=%#x,", a.ID))
			})
			require.Zero(t, spoken, "A's session was closed, and its client goes on: %v", a.Tap.Since(closed))
		})
	}
}

// A holder locks again with a context made by context.WithoutCancel, as for work that continues after the
// caller has returned. When the lock is lost or released, that context must end as well.
func TestReentryWithoutCancelIsToldOfTheEnd(t *testing.T) {
	for _, end := range []string{"lost", "released"} {
		t.Run(end, func(t *testing.T) {
			each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
				a := w.joinAs(z, "A", property.Seat{Timeout: steadyTimeout})
				b := w.other(z, "B")
				outer := a.Acquire()
				inner := a.StartIn(context.WithoutCancel(outer.Context()))
				inner.Acquired()
				next := b.Start()
				next.MustWait("A holds the lock")
				cause := ErrLost
				if end == "lost" {
					a.Tap.Silence()
				} else {
					cause = ErrNotHeld
					require.NoError(t, outer.Unlock(), "the first of two")
					require.NoError(t, inner.Context().Err(), "one Unlock is still due")
					require.NoError(t, outer.Unlock(), "the second of two")
				}
				next.Acquired()
				require.ErrorIs(t, context.Cause(outer.Context()), cause, "B has the lock, and A's first context")
				require.ErrorIs(t, context.Cause(inner.Context()), cause, "B has the lock, and A's second context")
			})
		})
	}
}

// cutShort returns a connection on which only that many bytes arrive, and then nothing: not even the end of
// the connection.
func cutShort(c net.Conn, bytes int64) net.Conn {
	near, far := net.Pipe() // supports deadlines, as a network connection does
	go func() {
		_, _ = io.Copy(c, far)
		c.Close()
	}()
	go func() { _, _ = io.CopyN(far, c, bytes) }()
	return near
}

// A's connection breaks. Only 24 bytes of the answer to the next handshake arrive, as when a proxy is paused
// in the middle of it. A must give that connection up and acquire the lock on another one. Close must not
// wait for such a connection either.
func TestAHandshakeThatIsCutShortIsGivenUp(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var lines, short atomic.Int32
	over := zktest.Over(func(c net.Conn) net.Conn {
		lines.Add(1)
		if short.Add(-1) >= 0 {
			return cutShort(c, 24)
		}
		return c
	})
	const timeout = steadyTimeout
	a := mutexes.JoinAs(z, "A", property.Seat{Timeout: timeout, Through: over})
	held := mutexes.Join(z, "B").Acquire()
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	short.Store(1)
	a.Tap.HangUp()
	z.Await("A to connect again", func() bool { return lines.Load() == 2 })
	held.Release()
	begun := time.Now()
	z.Await("A to be let in, or two timeouts to pass", func() bool {
		return waiting.Returned() || time.Since(begun) > 2*timeout
	})
	require.True(t, waiting.Returned(),
		"A hangs on a handshake that was cut short: it had %d lines, and tries no other", lines.Load())
	waiting.Release()

	short.Store(1 << 20) // all connections that follow
	a.Tap.HangUp()
	z.Await("A to connect again", func() bool { return lines.Load() >= 4 })
	closed := make(chan struct{})
	go func() {
		a.Session.Close()
		close(closed)
	}()
	zktest.AwaitChan(z, "Close to return, on a line whose handshake was cut short", closed)
}

// A's user closes the connection instead of the session. The server ends the session at once, and B acquires
// the lock, but the server's answer to A is late. A must have been notified before B acquires the lock.
func TestAHoldIsLostBeforeItsConnectionIsClosed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := mutexes.Join(z, "A"), mutexes.Join(z, "B")
	held, waiting := a.Acquire(), b.Start()
	waiting.MustWait("A holds the lock")
	late := a.Tap.HoldReply(wiretap.Close, 1)
	closed := make(chan struct{})
	go func() {
		a.Session.Conn().Close()
		close(closed)
	}()
	waiting.Acquired()
	cause := context.Cause(held.Context())
	late.Let()
	zktest.AwaitChan(z, "the connection to be closed", closed)
	require.ErrorIs(t, cause, ErrLost, "A's user has closed the connection, and B has the lock. Of A's hold")
}

// No server can be reached, and a hundred calls to TryLock wait for a moment each. No create was sent, so
// there is no znode to look for. When all calls have returned, and the client library has failed each request
// because it reached no server, nothing may be left of the calls: no goroutine, and no request that is sent
// later.
func TestNothingIsLeftOfTryLocksInAnOutage(t *testing.T) {
	t.Parallel()
	const calls = 100
	z := zktest.New(t)
	mutexes.Join(z, "B").Acquire().Release() // makes the directory
	a := mutexes.Join(z, "A")                // and holds nothing, now or before
	s := session(a)
	lock := NewMutex(s, a.Path) // Join would open a second session
	a.Tap.Cut()
	z.Await("A to see that it is cut off", func() bool { return a.State() != zk.StateHasSession })
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(z.Ctx, 5*time.Millisecond)
			defer cancel()
			_, err := lock.TryLock(ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	all.Wait()
	for range 3 { // with each of these the client library fails all requests that it has queued
		_, _, err := a.Exists("/")
		require.ErrorIs(t, err, zk.ErrNoServer)
	}
	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		close(ended)
	}()
	_, _, err := a.Exists("/")
	require.ErrorIs(t, err, zk.ErrNoServer)
	left := false
	select {
	case <-ended:
	default:
		left = true
	}
	mark := a.Tap.Mark()
	a.Tap.Restore()
	turn := a.Acquire()
	asked := wiretap.Count(a.Tap.Since(mark))
	turn.Release()
	const many = 10 // the create and the list of that Lock, and its writes that change nothing
	assert.LessOrEqual(
		t,
		asked.All(),
		many,
		"requests, as soon as the line is back, of one Lock and of %d calls that had returned: %v",
		calls,
		asked.Requests,
	)
	require.False(t, left, "goroutines are left of %d calls that have returned in the outage", calls)
}

// sluggish plays a server with one session. Each answer is late by that many nanoseconds, and by no more: on
// a busy machine a real server would add delays of its own. A list in any directory shows the znode that was
// created last. sluggish refuses all deletes, and counts them.
func sluggish(c net.Conn, timeout time.Duration, late, deletes *atomic.Int64) {
	type answer struct {
		due time.Time
		b   []byte
	}
	answers := make(chan answer, 100)
	defer close(answers)
	go func() {
		defer c.Close()
		for a := range answers {
			time.Sleep(time.Until(a.due))
			if _, err := c.Write(a.b); err != nil {
				return
			}
		}
	}()
	says := func(fields ...any) {
		var b []byte
		for _, field := range fields {
			b, _ = binary.Append(b, binary.BigEndian, field)
		}
		length := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		answers <- answer{time.Now().Add(time.Duration(late.Load())), append(length, b...)}
	}
	path := ""
	for greeted := false; ; {
		frame, err := wiretap.ReadFrame(c)
		if err != nil {
			return
		}
		request := frame[4:]
		if !greeted {
			password := make([]byte, 16)
			says(int32(0), int32(timeout.Milliseconds()), int64(7), int32(len(password)), password) // 0: the version
			greeted = true
			continue
		}
		xid, op, zxid := request[:4], wiretap.Op(binary.BigEndian.Uint32(request[4:])), int64(1)
		switch op {
		case wiretap.Create:
			path = string(request[12:][:binary.BigEndian.Uint32(request[8:])]) + "0000000000"
			says(xid, zxid, wiretap.OK, int32(len(path)), []byte(path))
		case wiretap.GetChildren:
			name := path[strings.LastIndex(path, "/")+1:]
			stat := make([]byte, 68)
			says(xid, zxid, wiretap.OK, int32(1), int32(len(name)), []byte(name), stat)
		case wiretap.Delete:
			deletes.Add(1)
			says(xid, zxid, wiretap.NoNode)
		default: // a ping, or the end of the session
			says(xid, zxid, wiretap.OK)
		}
	}
}

// The servers are slow, and nothing else is wrong. Each answer is late, from the beginning or only during the
// hold, and the session lives. A long hold must survive.
func TestSlowAnswersDoNotEndALongHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, meanwhile float64 }{ // the delay of the answers, as a part of the timeout
		{0, 0.1}, {0.05, 0.05}, {0.1, 0.1},
	} {
		t.Run(fmt.Sprint("late by ", c.before, ", then ", c.meanwhile), func(t *testing.T) {
			t.Parallel()
			for timeout := 4 * time.Second; ; timeout *= 2 {
				lost, writes, late := holdsWhileLate(t, timeout, c.before, c.meanwhile)
				if lost == 0 {
					return
				}
				busy := late > timeout/80 // then the machine was slow, so the next round has more time
				if !busy || timeout > 10*time.Second {
					t.Fatalf("a lock was lost after %v, with %d answered writes that change nothing and nothing but slow answers: "+
						"late by %v of the timeout, %v, as it began, and then by %v (the machine by %v)",
						lost, writes, c.before, timeout, c.meanwhile, late)
				}
			}
		})
	}
}

// holdsWhileLate holds a lock for more than two timeouts while answers are late. The delays are parts of the
// timeout. It returns when the lock was lost, after how many writes that change nothing, and how late the
// machine itself was meanwhile.
func holdsWhileLate(t *testing.T, timeout time.Duration, before, meanwhile float64) (
	lost time.Duration, writes int64, machine time.Duration) {
	var late, deletes atomic.Int64
	late.Store(int64(before * float64(timeout)))
	s, err := Open(t.Context(),
		[]string{"sluggish:2181"},
		timeout,
		WithDialer(func(string, string, time.Duration) (net.Conn, error) {
			near, far := net.Pipe()
			go sluggish(far, timeout, &late, &deletes)
			return near, nil
		}),
	)
	require.NoError(t, err)
	defer s.Close()
	hold, err := NewMutex(s, "/lock").Lock(t.Context())
	require.NoError(t, err)
	begun := time.Now()
	late.Store(int64(meanwhile * float64(timeout)))
	const every = 5 * time.Millisecond
	for last := begun; last.Sub(begun) < timeout*9/4; last = time.Now() {
		select {
		case <-hold.Context(t.Context()).Done():
			return time.Since(begun), deletes.Load(), machine
		case <-time.After(every):
		}
		machine = max(machine, time.Since(last)-every)
	}
	return 0, deletes.Load(), machine
}

// One session holds one lock, another one a hundred, which it has acquired at the same time. A write that
// changes nothing counts for the whole session, so a hundred holds need no more of these writes than one hold
// does.
func TestAHundredHoldsAskNoMoreThanOne(t *testing.T) {
	t.Parallel()
	const some = 4
	writes := 0
	require.NoError(t, inThreeTries(3*zktest.MortalTimeout, func(timeout time.Duration) (lost error) {
		writes, lost = writesForAHundredHolds(t, timeout, some)
		return lost
	}))
	require.LessOrEqual(t, writes, 2*some,
		"writes that change nothing of a session that holds 100 locks, while one that holds 1 has made %d", some)
}

// writesForAHundredHolds counts the writes of a session that holds a hundred locks. It stops when a session
// that holds one lock has made that many writes, or when one of the two sessions has lost a hold.
func writesForAHundredHolds(t *testing.T, timeout time.Duration, some int) (writes int, lost error) {
	t.Helper()
	z := zktest.New(t)
	type holder struct {
		*zktest.Member
		turns []*zktest.Turn
		mark  int
	}
	var holders []*holder
	for _, n := range []int{1, 100} {
		seat := property.Seat{Timeout: timeout}
		h := &holder{Member: mutexes.JoinAs(z, fmt.Sprint("the holder of ", n), seat)}
		holders = append(holders, h)
		for i := range n {
			lock := mutexes.At(z, h.Member, fmt.Sprintf("%s/%d-%d", z.Root, n, i))
			h.turns = append(h.turns, lock.Start())
		}
	}
	for _, h := range holders {
		for _, turn := range h.turns {
			turn.Acquired()
		}
	}
	for _, h := range holders {
		h.mark = h.Tap.Mark()
	}
	one, hundred := holders[0], holders[1]
	lastOf := func(h *holder) context.Context { return h.turns[len(h.turns)-1].Context() }
	made := func(h *holder) int { return h.Requests(h.mark)[wiretap.Delete] }
	z.Await("the holder of one lock to make some writes", func() bool {
		lost = cmp.Or(context.Cause(lastOf(one)), context.Cause(lastOf(hundred)))
		return lost != nil || made(one) >= some
	})
	return made(hundred), lost
}

// One session holds a hundred locks, and another one waits for them. When the first session ends, all locks
// change hands at the same time. One write is enough to prove a lease for all of them.
func TestAHundredLocksChangeOverWithOneWrite(t *testing.T) {
	t.Parallel()
	const locks = 100
	z := zktest.New(t)
	seat := property.Seat{Timeout: 6 * time.Second}
	a, b := mutexes.JoinAs(z, "A", seat), mutexes.JoinAs(z, "B", seat)
	var waiting []*zktest.Turn
	for i := range locks {
		path := fmt.Sprint(z.Root, "/", i)
		mutexes.At(z, a, path).Acquire()
		waiting = append(waiting, mutexes.At(z, b, path).Start())
	}
	z.Await("all to wait", func() bool { return len(b.Tap.Watched()) == locks })
	s, tick := session(b), longestTick(6*time.Second)
	z.Await("B's last write to be a tick ago", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Since(s.leases.lastWrite.answered) > tick
	})
	mark := b.Tap.Mark()
	a.Session.Close()
	for _, turn := range waiting {
		turn.Acquired()
	}
	writes := b.Requests(mark)[wiretap.Delete]
	t.Logf("» %d locks change over with %d writes of the session that gets them", locks, writes)
	const most = 3 // one for all locks, and then one in each fifth of the timeout while the holds last
	require.LessOrEqual(t, writes, most+int(time.Since(waiting[0].Came())/tick), "writes that change nothing")
}

// A new session creates a directory on four levels, and its connection is slow. Each create is a write that
// is sent when the one before it is answered. Counted as one write, the creates would prove too little, and
// too late.
func TestAFirstHoldThatMakesItsDirectoryIsKept(t *testing.T) {
	t.Parallel()
	lost := inThreeTries(3*zktest.MortalTimeout, func(timeout time.Duration) error {
		z := zktest.New(t)
		a := mutexes.JoinAs(z, "A", property.Seat{Timeout: timeout, Path: z.Root + "/of/four/levels/lock"})
		a.Tap.Delay(timeout * 75 / 1000)
		begun := time.Now()
		turn := a.Acquire()
		z.Await("two timeouts to pass", func() bool {
			return time.Since(begun) > 2*timeout || turn.Context().Err() != nil
		})
		defer a.Tap.Delay(0)
		return context.Cause(turn.Context())
	})
	require.NoError(t, lost, "nothing was wrong but that the answers were slow")
}

// A server, or a program that poses as one, sends a reply that is shorter than a reply's head. The client
// library panics at such a reply, on a goroutine of its own, so the test runs the client in another process.
// There leased must close the connection and acquire the lock on the next one.
func TestAShortReplyDoesNotEndTheProcess(t *testing.T) {
	const variable, good = "ZKLOCK_SHORT_REPLY", "the lock is held"
	if servers := os.Getenv(variable); servers != "" { // this is the other process
		first := true
		over := zktest.Over(func(c net.Conn) net.Conn {
			isFirst := first
			first = false
			return &zktest.Altered{Conn: c, Alter: func(n int, frame []byte) ([]byte, error) {
				if !isFirst || n != 1 { // the first reply after the handshake
					return frame, nil
				}
				return append(binary.BigEndian.AppendUint32(nil, 8), frame[4:12]...), nil // half a head
			}}
		})
		s, err := Open(t.Context(), strings.Split(servers, ","), zktest.SessionTimeout, WithDialer(over(wiretap.New().Dial)))
		require.NoError(t, err)
		defer s.Close()
		lock := NewMutex(s, os.Getenv(variable+"_PATH"))
		hold, err := lock.Lock(context.Background())
		require.NoError(t, err)
		fmt.Println(good)
		require.NoError(t, hold.Unlock())
		return
	}
	t.Parallel()
	z := zktest.New(t)
	other := exec.CommandContext(z.Ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), variable+"="+strings.Join(z.Servers(), ","), variable+"_PATH="+z.Root+"/lock")
	out, err := other.CombinedOutput()
	require.NoError(t, err, "a short reply has ended a process: %s", out)
	require.Contains(t, string(out), good)
	require.Empty(t, z.Names(z.Root+"/lock"))
}

// At some moment a server's name gets another address. So the dialer must be given the name each time, and
// not an address that was looked up once.
func TestTheDialerIsGivenNames(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	_, port, err := net.SplitHostPort(z.Servers()[0])
	require.NoError(t, err)
	name := net.JoinHostPort("localhost", port)

	var mu sync.Mutex
	address, given := z.Servers()[0], map[string]int{}
	over := func(tap zk.Dialer) zk.Dialer {
		return func(network, name string, limit time.Duration) (net.Conn, error) {
			mu.Lock()
			given[name]++
			at := address
			mu.Unlock()
			return tap(network, at, limit)
		}
	}
	moves := func(to string) (dials int) {
		mu.Lock()
		defer mu.Unlock()
		address = to
		for _, n := range given {
			dials += n
		}
		return dials
	}
	byName := mutexes
	byName.Open = func(_ []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
		return mutexes.Open([]string{name}, timeout, dial)
	}
	a := byName.JoinAs(z, "A", property.Seat{Through: over})
	held := a.Acquire()
	nowhere := zktest.Impostor(t, nil)
	before := moves(nowhere)
	a.Tap.HangUp()
	z.Await("A to look for its server", func() bool { return moves(nowhere) >= before+3 })
	moves(z.Servers()[0])
	z.Await("A to be connected again", func() bool { return a.State() == zk.StateHasSession })
	held.Release()
	require.Equal(t, a.ID, a.SessionID(), "A's session")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, given, 1, "what the dialer was given, and how often: A's server is %s", name)
	require.Contains(t, given, name)
}

// A waits, its connection breaks, and the dialer that A's user has given hangs. Close ends the wait anyway:
// it does not depend on the dialer.
func TestCloseEndsAWaitThoughTheDialerHangs(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	comesBack := make(chan struct{})
	dialing := make(chan struct{}, 100)
	dials := 0
	hangs := func(dial zk.Dialer) zk.Dialer {
		return func(network, address string, limit time.Duration) (net.Conn, error) {
			if dials++; dials > 1 {
				dialing <- struct{}{}
				<-comesBack
			}
			return dial(network, address, limit)
		}
	}
	held := mutexes.Join(z, "B").Acquire()
	a := mutexes.JoinAs(z, "A", property.Seat{Through: hangs})
	waiting := a.Start()
	waiting.MustWait("B holds the lock")
	a.Tap.HangUp()
	zktest.AwaitChan(z, "A's dialer to be called again", dialing)
	closed := make(chan struct{})
	go func() {
		a.Session.Close()
		close(closed)
	}()
	zktest.AwaitChan(z, "Close to return", closed)
	require.ErrorContains(t, waiting.Err(), "the session is closed")
	close(comesBack)
	held.Release()
}

// A waits. Its connection breaks, A reconnects, and the server, which is too busy, refuses to set A's watches
// again. The client library reports that to no caller. A must still acquire the lock.
func TestAWaiterWhoseWatchesAreLostLooksAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	busy := zktest.Over(func(c net.Conn) net.Conn {
		return throttling(c, func(op wiretap.Op, _ string) bool { return op == wiretap.SetWatches })
	})
	a, b := mutexes.JoinAs(z, "A", property.Seat{Through: busy}), mutexes.Join(z, "B")
	var held, waiting []*zktest.Turn
	for i := range 10 {
		path := fmt.Sprint(z.Root, "/", i)
		held = append(held, mutexes.At(z, b, path).Acquire())
		waiting = append(waiting, mutexes.At(z, a, path).Start())
	}
	z.Await("A to watch in each directory", func() bool { return len(a.Tap.Watched()) == len(waiting) })
	lost := session(a).watchesLost()
	a.Tap.HangUp()
	z.Await("A to be back", func() bool {
		_, _, err := a.Exists("/")
		return err == nil
	})
	zktest.AwaitChan(z, "A's client to hear that its watches are lost", lost)
	for i := range held {
		held[i].Release()
		waiting[i].Release()
	}
}

// The server is too busy. It refuses some of A's requests for now, without carrying them out. A retries them:
// its Lock returns no error, and neither a waiter that gives up nor a holder leaves its znode behind or
// considers it lost.
func TestABusyServersRefusalIsNotTheLast(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var mu sync.Mutex
	left := map[wiretap.Op]int{} // how many requests of a kind are still to be refused
	over := zktest.Over(func(c net.Conn) net.Conn {
		return throttling(c, func(op wiretap.Op, path string) bool {
			mu.Lock()
			defer mu.Unlock()
			isProof := wiretap.Frame{Op: op, Path: path}.Class() == wiretap.OfProof // sent whenever one is due
			if isProof || left[op] == 0 {
				return false
			}
			left[op]--
			return true
		})
	})
	refuse := func(ops ...wiretap.Op) {
		mu.Lock()
		defer mu.Unlock()
		for _, op := range ops {
			left[op] = 2
		}
	}
	allWereRefused := func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for op, n := range left {
			require.Zero(t, n, "%v: how many the server was to refuse, and was not asked for", op)
		}
	}
	a := mutexes.JoinAs(z, "A", property.Seat{Through: over})
	b := mutexes.Join(z, "B")

	held := b.Acquire()
	refuse(wiretap.Create, wiretap.GetChildren, wiretap.GetData)
	ctx, giveUp := context.WithCancel(z.Ctx)
	waiting := a.StartIn(ctx)
	z.Await("A to watch B's znode", func() bool { return len(a.Tap.Watched()) == 1 })
	allWereRefused()

	refuse(wiretap.Delete)
	giveUp()
	require.ErrorIs(t, waiting.Err(), context.Canceled)
	z.Await("the znode of A, which has given up, to go", func() bool { return len(a.Queue()) == 1 })
	allWereRefused()
	held.Release()

	turn := a.Acquire()
	refuse(wiretap.Delete)
	require.NoError(t, turn.Unlock(), "the server has refused A's delete for now, and carried it out later")
	allWereRefused()
	require.Empty(t, a.Queue())
}

// The server is too busy for A's delete, and meanwhile a program deletes A's znode. A's Unlock says so, since its own
// delete was not carried out.
func TestABusyServersRefusalDeletesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	program := z.Observer()
	var refused atomic.Bool
	over := zktest.Over(func(c net.Conn) net.Conn {
		return throttling(c, func(op wiretap.Op, path string) bool {
			isProof := wiretap.Frame{Op: op, Path: path}.Class() == wiretap.OfProof
			if op != wiretap.Delete || isProof || refused.Swap(true) {
				return false
			}
			assert.NoError(t, program.Delete(path, -1))
			return true
		})
	})
	a := mutexes.JoinAs(z, "A", property.Seat{Through: over})
	requireReason(t, a.Acquire().Unlock(), ReasonDeleted)
}

// A's session expires. The client library leaves the connection open on which it learned that. With a dialer
// of A's own, this may be more than a socket.
func TestEachConnectionIsClosed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var mu sync.Mutex
	var lines []*counted
	over := zktest.Over(func(c net.Conn) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, &counted{Conn: c})
		return lines[len(lines)-1]
	})
	a := mutexes.JoinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout, Through: over})
	a.Acquire().Release()
	a.Tap.Cut()
	z.AwaitExpiry(a.Client)
	a.Tap.Restore()
	z.Await("a new session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
	a.Acquire().Release()
	a.Session.Close()
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, len(lines), 3, "the first, the one that said \"expired\", and that of the new session")
	for i, line := range lines {
		require.Positive(t, line.closed.Load(), "how often line %d of %d was closed", i+1, len(lines))
	}
}

// counted is a connection that counts how often it is closed.
type counted struct {
	net.Conn
	closed atomic.Int32
}

func (c *counted) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// A context need not be one of Go's own: its error may be of a type that cannot be compared. And the cause of
// a caller's context may be ErrLocked, from another lock. Even then the error says that the caller's context
// has ended.
func TestWhyAContextHasEnded(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := mutexes.Join(z, "A")
	lock := NewMutex(session(a), a.Path)
	odd := oddContext{context.Background()}
	_, err := lock.Lock(odd)
	var many manyErrors
	require.ErrorAs(t, err, &many)

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrLocked)
	_, err = lock.Lock(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = lock.TryLock(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

type manyErrors struct{ all any } // comparing two of them panics: all is a slice

func (m manyErrors) Error() string { return fmt.Sprint(m.all) }

// oddContext has ended, with an error of such a type.
type oddContext struct{ context.Context }

func (oddContext) Err() error { return manyErrors{[]string{"one", "two"}} }

func (oddContext) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
