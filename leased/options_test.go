package leased

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// with returns a way to take a lock in a session with these options.
func (w *way) with(options ...Option) *way {
	other := *w
	other.locks.Open = func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
		return Open(context.Background(), servers, timeout, append(options, WithDialer(dial))...)
	}
	return &other
}

// The data of a znode says which client holds the lock, and which ones wait.
func TestAZnodeSaysWhoMadeIt(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.with(WithLabel("billing, pod 7")).join(z, "B")
		host, err := os.Hostname()
		require.NoError(t, err)
		says := func(m *zktest.Member) string {
			data, _, err := z.Observer().Get(m.Znode())
			require.NoError(t, err)
			return string(data)
		}
		held := a.Acquire()
		require.Equal(t, fmt.Sprintf("%s %d", host, os.Getpid()), says(a))
		waiting := b.Start()
		waiting.Queued()
		require.Equal(t, "billing, pod 7", says(b))
		held.Release()
		waiting.Release()
	})
}

// The numbers that a service can show.
func TestStats(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const timeout = steadyTimeout
		a, b := w.joinAs(z, "A", property.Seat{Timeout: timeout}), w.other(z, "B")
		s := session(a)
		require.Greater(t, s.Stats().LeaseLeft, timeout/2)
		held := b.Acquire()
		waiting := a.Start()
		waiting.MustWait("B holds the lock")
		require.True(t, s.Stats().Connected)
		require.Equal(t, 1, s.Stats().Waiting)
		longest := s.Stats().Longest
		require.Positive(t, longest)
		require.Greater(t, s.Stats().Longest, longest, "the longest wait, a moment later")
		held.Release()
		waiting.Acquired()
		stats := s.Stats()
		require.Equal(t, []any{0, 1, uint64(1)}, []any{stats.Waiting, stats.Holds, stats.Taken})
		require.Zero(t, stats.Longest)
		require.Positive(t, stats.LongestHold)
		require.Greater(t, s.Stats().LongestHold, stats.LongestHold, "the longest hold, a moment later")
		waiting.Release()
		require.Zero(t, s.Stats().LongestHold)
		require.Zero(t, s.Stats().Holds)

		turn := a.Acquire()
		a.Tap.Silence()
		zktest.AwaitChan(z, "A to be notified", turn.Context().Done())
		stats = s.Stats()
		require.Equal(t, map[Reason]uint64{ReasonLeaseOver: 1}, stats.Lost)
		require.Equal(t, []any{0, uint64(2), time.Duration(0)}, []any{stats.Holds, stats.Taken, stats.LeaseLeft})
		a.Tap.Restore()
	})
}

// heard keeps what was logged.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, string(line))
	return len(line), nil
}

// logger is a session's logger that h keeps, at Info and above.
func (h *heard) logger() Option { return WithLogger(slog.New(slog.NewTextHandler(h, nil))) }

// has reports whether a line has all these words.
func (h *heard) has(words ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.lines, func(line string) bool {
		for _, word := range words {
			if !strings.Contains(line, word) {
				return false
			}
		}
		return true
	})
}

// all returns the lines so far.
func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// A logger gets losses and refusals, and the client library's own lines.
func TestALoggerIsTold(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		h := &heard{}
		log := slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))
		a := w.with(WithLogger(log)).join(z, "A")
		z.Await("a line of the library", func() bool { return h.has("level=DEBUG", "zk: authenticated") })
		turn := a.Acquire()
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		require.ErrorIs(t, turn.Unlock(), zk.ErrNoAuth)
		z.Await("an error in the log", func() bool {
			return h.has("level=ERROR", "has refused to release a lock", a.Znode())
		})
		permit(t, z, a.Path, zk.PermAll)
		turn.Release()
		a.Acquire()
		znode := a.Znode()
		a.Session.Close()
		z.Await("a warning of the loss", func() bool {
			return h.has("level=WARN", "locks were lost", "locks=1", "one="+znode, "Close was called")
		})
		require.Equal(t, map[Reason]uint64{ReasonClosed: 1}, a.Session.(*Session).Stats().Lost)
	})
}

// No server answers, until A's lock is lost, and a call waits. The log says so once, with the reason, and
// says when the outage is over. The error of the call also says so, and Stats shows it.
func TestAnOutageIsSaid(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		h := &heard{}
		a := w.with(h.logger()).joinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout})
		require.True(t, session(a).Stats().Connected)
		a.Tap.Silence()
		z.Await("A to see it", func() bool { return !session(a).Stats().Connected })
		ctx, cancel := context.WithCancel(z.Ctx)
		defer cancel()
		waiting := a.StartIn(ctx)
		says := func() bool {
			return h.has("level=WARN", "there is no connection, and calls to Lock wait", "calls=1", "the line is down")
		}
		z.Await("a warning", says)
		begun := time.Now()
		z.Await("the time of another warning to pass", func() bool { return time.Since(begun) > zktest.MortalTimeout })
		require.Len(t, h.all(), 1, "%q", h.all())
		cancel()
		err := waiting.Err()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, ErrNoAnswer)
		require.ErrorContains(t, err, "there is no connection: ")
		require.ErrorContains(t, err, "the line is down", "the client library's last words")
		a.Tap.Restore()
		z.Await("A to be back", func() bool { return session(a).Stats().Connected })
		z.Await("the end of the outage in the log", func() bool { return h.has("level=INFO", "there is a connection again") })
	})
}

// When the deadline of Lock passes, the error names the client before it. So does the error of TryLock.
func TestADeadlineSaysWhoStandsBeforeUs(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b, c := w.with(WithLabel("billing, pod 7")).other(z, "A"), w.join(z, "B"), w.join(z, "C")
		a.Acquire()
		ctx, cancel := context.WithCancel(z.Ctx)
		waiting := b.StartIn(ctx)
		waiting.MustWait("A holds the lock")
		cancel()
		err := waiting.Err()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, ErrLocked)
		require.NotErrorIs(t, err, ErrNoAnswer)
		require.ErrorContains(t, err, `whose label is "billing, pod 7"`)
		z.Await("the znode of B, which has given up, to be deleted", func() bool { return len(a.Queue()) == 1 })
		_, err = c.TryLock(z.Ctx)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, `whose label is "billing, pod 7"`)
	})
}

// The servers grant a timeout other than the one asked for. The log says so, once for each session.
func TestATimeOutThatIsNotTheOneAskedFor(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for asked, isOther := range map[time.Duration]bool{time.Millisecond: true, zktest.SessionTimeout: false} {
		h := &heard{}
		s, err := Open(z.Ctx, z.Servers(), asked, h.logger())
		require.NoError(t, err)
		defer s.Close()
		if isOther {
			z.Await("a warning", func() bool {
				return h.has("level=WARN", "other than the requested one",
					fmt.Sprint("asked=", asked), fmt.Sprint("granted=", s.Timeout()))
			})
			continue
		}
		s.log.say(slog.LevelWarn, "the end")
		z.Await("the log's end", func() bool { return h.has("the end") })
		require.Len(t, h.all(), 1, "%q", h.all())
	}
}

// stuck is a handler of a logger that blocks until the test releases it.
type stuck struct {
	slog.Handler
	let <-chan struct{}
}

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	<-s.let
	return s.Handler.Handle(ctx, r)
}

// The logger blocks. The session continues, with pings and holds, and Close returns.
func TestNobodyWaitsForALogger(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	h, let := &heard{}, make(chan struct{})
	blocked := stuck{slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}), let}
	const timeout = steadyTimeout
	a := byMutex.with(WithLogger(slog.New(blocked))).joinAs(z, "A", property.Seat{Timeout: timeout})
	begun := time.Now()
	turn := a.Acquire()
	z.Await("two timeouts to pass", func() bool { return time.Since(begun) > 2*timeout })
	require.NoError(t, context.Cause(turn.Context()), "the hold")
	s := session(a)
	for range 2 * mostLines { // more than can wait for the logger
		s.log.say(slog.LevelInfo, "a line")
	}
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	zktest.AwaitChan(z, "Close to return, though the logger blocks", closed)
	close(let)
	z.Await("the line about lines that were left out", func() bool { return h.has("lines were left out") })
	z.Await("the logger to receive the rest", func() bool { return h.has("a line") })
}

// Lock creates the directory and the znodes with the given ACL, and the session logs in. So no other client
// can use the lock, read its znodes, or set an ACL on them. A client that the ACL allows waits, and acquires
// the lock. This stays so after a reconnection, and in the next session.
func TestAnACLAndALogin(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		acl := zk.DigestACL(zk.PermAll, "orders", "secret")
		guarded := w.with(WithACL(acl), WithAuth("digest", []byte("orders:secret")))
		a, b, other := guarded.join(z, "A"), guarded.other(z, "B"), w.join(z, "another client")
		turn := a.Acquire()
		_, err := other.Lock(z.Ctx)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, _, err = other.Get(a.Znode())
		require.ErrorIs(t, err, zk.ErrNoAuth, "another client reads A's znode")
		_, err = other.SetACL(a.Znode(), zk.WorldACL(zk.PermAll), -1)
		require.ErrorIs(t, err, zk.ErrNoAuth, "another client gives A's znode another ACL")
		for _, path := range []string{a.Path, a.Znode()} {
			made, _, err := a.GetACL(path)
			require.NoError(t, err)
			require.Equal(t, acl, made, path)
		}
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		for range 3 {
			a.Tap.HangUp()
			z.Barrier(a.Client)
		}
		turn.Release()
		waiting.Release()
		z.Expire(a.Client)
		a.Tap.Restore()
		z.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		a.Acquire().Release()
		require.NoError(t, a.Delete(a.Path, -1)) // the observer has no permission to do so
	})
}

func TestALoginThatIsRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	_, err := Open(z.Ctx, z.Servers(), time.Second, WithAuth("no-such-scheme", nil))
	require.ErrorContains(t, err, `log in with the scheme "no-such-scheme"`)
}

// The directory of a lock is a container each time it is created. The server deletes it when it is empty.
func TestADirectoryIsAContainer(t *testing.T) {
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dznode.container.checkIntervalMs=200")
	e, err := zkserver.StartEnsemble(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	z := zktest.NewOn(t, e.Server)
	for _, w := range ways {
		a := w.joinAs(z, "A", property.Seat{Path: z.Root + "/orders/" + strings.ReplaceAll(w.name, " ", "")})
		var tokens []int64
		for range 2 {
			turn := a.Acquire()
			tokens = append(tokens, token(turn))
			turn.Release()
			z.Await("the server to delete the directory", func() bool {
				exists, _, err := z.Observer().Exists(a.Path)
				return err == nil && !exists
			})
		}
		require.Greater(t, tokens[1], tokens[0], "tokens over a directory made anew")
	}
	exists, _, err := z.Observer().Exists(z.Root + "/orders")
	require.NoError(t, err)
	require.True(t, exists, "what is above the directory stays")
}

// With WithoutContainers the directory is an ordinary znode. So it is at a server that does not know containers: it
// answers the create with the error "unimplemented", and closes the session.
func TestADirectoryIsNoContainer(t *testing.T) {
	for what, w := range map[string]*way{
		"WithoutContainers":                      byMutex.with(WithoutContainers()),
		"a server that does not know containers": byMutex,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			var unknown atomic.Int32
			seat := property.Seat{Through: zktest.Over(func(c net.Conn) net.Conn { return ofAnOldServer{c, &unknown} })}
			a := w.joinAs(z, "A", seat)
			for range 2 {
				a.Acquire().Release()
				_, stat, err := z.Observer().Get(a.Path)
				require.NoError(t, err)
				require.Zero(t, stat.EphemeralOwner, "a container has an owner of its own")
				require.NoError(t, z.Observer().Delete(a.Path, -1))
			}
			require.Equal(t, w == byMutex, unknown.Load() == 1, "one try to create a container")
		})
	}
}

// ofAnOldServer is a connection on which the request to create a container has a number that the server does not know.
type ofAnOldServer struct {
	net.Conn
	unknown *atomic.Int32
}

func (c ofAnOldServer) Write(frame []byte) (int, error) {
	const createContainer, unknown = 19, 4019
	if len(frame) > 12 && binary.BigEndian.Uint32(frame[8:]) == createContainer {
		c.unknown.Add(1)
		binary.BigEndian.PutUint32(frame[8:], unknown)
	}
	return c.Conn.Write(frame)
}

// Locks lists what a session holds, and its calls that wait, with what they wait for.
func TestLocksListsWhatAProcessHoldsAndWaitsFor(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.joinAs(z, "A", property.Seat{Timeout: steadyTimeout}), w.with(WithLabel("b")).other(z, "B")
		require.Empty(t, session(a).Locks())
		other := w.at(z, a, z.Root+"/other")
		first, second := b.Acquire(), other.Acquire()
		waiting := a.Start()
		waiting.MustWait("B holds the lock")
		z.Await("B's label to be known", func() bool {
			locks := session(a).Locks()
			return len(locks) == 2 && locks[1].Behind != nil
		})
		locks := session(a).Locks()
		require.Equal(t, []any{other.Path, true}, []any{locks[0].Path, locks[0].Holds})
		require.Equal(t, []any{a.Path, false, "b"}, []any{locks[1].Path, locks[1].Holds, locks[1].Behind.Label})
		require.Greater(t, locks[0].For, locks[1].For, "the longest first")
		require.Equal(t, other.Path, session(a).Stats().OldestLock)
		first.Release()
		waiting.Release()
		second.Release()
		require.Empty(t, session(a).Locks())
		require.Empty(t, session(a).Stats().OldestLock)
	})
}

// WithOnLost names each lock that was lost, and the reason. A hook that blocks stops nothing.
func TestAHookIsToldOfALoss(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		lost, done := make(chan string, 2), make(chan struct{})
		hook := WithOnLost(func(path string, why *LostError) {
			lost <- path + " " + string(why.Reason)
			<-done
		})
		defer close(done)
		a := w.with(hook).join(z, "A")
		a.Acquire()
		z.EndSession(a.Client)
		require.Equal(t, a.Path+" expired", zktest.AwaitChan(z, "the hook to be called", lost))
		a.Acquire().Release()
		require.Empty(t, lost, "one hold was lost")
	})
}

// Another kind of lock uses the same path. The log says so, once.
func TestAnotherKindOfLockOnThePath(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		h := &heard{}
		a, b := w.with(h.logger()).join(z, "A"), w.join(z, "B")
		a.Acquire().Release()
		require.NotContains(t, strings.Join(h.all(), ""), "another kind of lock")
		name := a.Path + "/_c_0e4d9f8e-7a0b-4a52-9d2f-2f1f2d3c4b5a-latch-" // as Curator's LeaderLatch makes it
		_, err := b.Create(name, []byte("a latch"), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for range 3 {
			a.Acquire().Release()
		}
		warns := func(line string) bool { return strings.Contains(line, "another kind of lock uses the same path") }
		z.Await("a warning", func() bool { return slices.ContainsFunc(h.all(), warns) })
		a.Session.Close()
		once := slices.DeleteFunc(h.all(), func(line string) bool { return !warns(line) })
		require.Len(t, once, 1)
		require.Contains(t, once[0], "a latch")
	})
}
