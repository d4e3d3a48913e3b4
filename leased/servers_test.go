package leased

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// start starts a server of the test's own.
func start(t *testing.T, lines ...string) *zkserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	s, err := zkserver.StartEnsemble(ctx, 1, lines...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	t.Parallel() // not before: starting a JVM disturbs tests that measure
	return s.Server
}

var Start = start // for the tests outside of the package

// The servers serve only clients that have logged in. Another client gets an error that says what to do.
func TestServersThatWantALogin(t *testing.T) {
	s := start(t, "enforce.auth.enabled=true", "enforce.auth.schemes=digest")
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	another, err := Open(ctx, s.Servers(), 4*time.Second)
	require.NoError(t, err)
	defer another.Close()
	lock := NewMutex(another, "/locks/orders")
	for _, take := range []func(context.Context) (*Hold, error){lock.Lock, lock.TryLock} {
		_, err = take(ctx)
		require.ErrorContains(t, err, "-124 (the servers want a login: pass the option WithAuth to Open)")
		require.NotErrorIs(t, err, ErrLocked)
	}

	// A client that has logged in holds the lock, and waits for it, over broken connections. It also acquires
	// the lock in the next session.
	loggedIn := func(timeout time.Duration) (*Mutex, *wiretap.Tap) {
		tap := wiretap.New()
		session, err := Open(ctx, s.Servers(), timeout, WithAuth("digest", []byte("orders:secret")), WithDialer(tap.Dial))
		require.NoError(t, err)
		t.Cleanup(session.Close)
		return NewMutex(session, "/locks/orders"), tap
	}
	one, tap := loggedIn(zktest.SessionTimeout)
	other, otherTap := loggedIn(zktest.SessionTimeout)
	hold := mustLock(t, one, ctx)
	letIn := make(chan *Hold)
	go func() {
		next, err := other.Lock(ctx)
		assert.NoError(t, err)
		letIn <- next
	}()
	awaits(t, "the other to wait", func() bool { return len(otherTap.Watched()) == 1 })
	for range 3 {
		for lock, tap := range map[*Mutex]*wiretap.Tap{one: tap, other: otherTap} {
			tap.HangUp()
			_, _, err := lock.q.s.Conn().Exists("/")
			for errors.Is(err, zk.ErrConnectionClosed) && ctx.Err() == nil {
				_, _, err = lock.q.s.Conn().Exists("/")
			}
			require.NoError(t, err)
		}
	}
	require.NoError(t, context.Cause(hold.Context(ctx)), "a hold over three broken lines")
	require.NoError(t, hold.Unlock())
	next := <-letIn
	require.NoError(t, next.Unlock())

	mortal, mortalTap := loggedIn(4 * time.Second)
	hold = mustLock(t, mortal, ctx)
	id := mortal.q.s.Conn().SessionID()
	mortalTap.Silence()
	awaits(t, "the session to expire", func() bool {
		sessions, err := s.Sessions()
		_, lives := sessions[id]
		return err == nil && !lives
	})
	mortalTap.Restore()
	require.ErrorIs(t, hold.Unlock(), ErrLost)
	hold = mustLock(t, mortal, ctx)
	require.NotEqual(t, id, mortal.q.s.Conn().SessionID())
	require.NoError(t, hold.Unlock())
}

// awaits returns when cond is true.
func awaits(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, zktest.Patience, 5*time.Millisecond, "timed out waiting for %s", what)
}

// The directory has a hard quota, which a holder and a waiter use up. A call that would create a znode is
// refused, and the error says what to check. The two other clients are not disturbed. When they are done, the
// quota suffices again.
func TestAQuotaOnTheDirectory(t *testing.T) {
	s := start(t, "enforceQuota=true")
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	session, err := Open(ctx, s.Servers(), 20*time.Second)
	require.NoError(t, err)
	defer session.Close()
	const path = "/locks/orders"
	require.NoError(t, mustLock(t, NewMutex(session, path), ctx).Unlock()) // makes the directory
	for _, made := range []struct{ path, data string }{
		{"/zookeeper/quota/locks", ""},
		{"/zookeeper/quota/locks/orders", ""},
		{"/zookeeper/quota/locks/orders/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3"},
		{"/zookeeper/quota/locks/orders/zookeeper_stats", "count=1,bytes=0"},
	} {
		_, err := session.Conn().Create(made.path, []byte(made.data), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	queued := func() int {
		names, _, err := session.Conn().Children(path)
		require.NoError(t, err)
		return len(names)
	}
	hold := mustLock(t, NewMutex(session, path), ctx)
	next := make(chan *Hold, 1)
	go func() {
		hold, err := NewMutex(session, path).Lock(ctx)
		assert.NoError(t, err)
		next <- hold
	}()
	awaits(t, "a client to wait", func() bool { return queued() == 2 })

	for _, lock := range []locker{
		NewMutex(session, path), NewCohort(session, path),
		NewRWMutex(session, path), reading{NewRWMutex(session, path)},
	} {
		_, err := lock.Lock(ctx)
		require.ErrorContains(t, err, "-125 (a quota of the servers is used up: look at setquota on this path)")
		require.NotErrorIs(t, err, ErrLocked)
	}
	_, err = NewMutex(session, path).TryLock(ctx)
	require.ErrorIs(t, err, ErrLocked, "it looks first, and creates nothing")
	require.Equal(t, 2, queued())
	require.NoError(t, hold.Unlock())
	require.NoError(t, (<-next).Unlock())
	require.NoError(t, mustLock(t, NewMutex(session, path), ctx).Unlock())
}

// A local session cannot create an ephemeral znode, unless the servers upgrade it to a global one.
func TestServersWithLocalSessions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 3, "localSessionsEnabled=true", "localSessionsUpgradingEnabled=false")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	s, err := Open(ctx, e.Servers(), 4*time.Second)
	require.NoError(t, err)
	defer s.Close()
	_, err = NewMutex(s, "/locks/orders").Lock(ctx)
	require.ErrorContains(t, err, "-120 (the servers gave a local session, which can make no ephemeral znode")
	require.ErrorContains(t, err, "localSessionsUpgradingEnabled=true")
}

// One server has a znode that the others do not have. If forceSnapshotSync is set on that server alone, the znode
// survives the server's restart, because the leader decides what a server that rejoins gets. If it is set on the
// others alone, and the server is restarted after them, the znode is gone.
func TestForceSnapshotSyncIsTheLeaders(t *testing.T) {
	e := withGhost(t)
	for _, m := range []*zkserver.Peer{e.other, e.leader, e.odd} {
		zooCfg := m.ZooCfg
		if m != e.odd {
			zooCfg += setForceSnapshotSync
		}
		e.restart(m, zooCfg)
		zktest.Roles(t, e.Ensemble)
	}
	all := []string{"all"}
	require.Equal(t, map[int][]string{e.odd.ID: all, e.other.ID: all, e.leader.ID: all}, e.lists(),
		"set on the others alone")
}

// The server with the znode has forceSnapshotSync, and is elected. It gives its tree to the others.
func TestForceSnapshotSyncSpreadsTheLeadersZnodes(t *testing.T) {
	e := withGhost(t)
	require.NoError(t, e.other.Kill())
	conn := e.connect(e.leader)
	_, err := conn.Set("/all", nil, -1) // which other does not have, so odd is elected
	require.NoError(t, err)
	conn.Close()
	require.NoError(t, e.leader.Kill())
	require.NoError(t, e.other.Restart(e.ctx))
	require.NoError(t, e.leader.Restart(e.ctx))
	elected, _ := zktest.Roles(t, e.Ensemble)
	require.Equal(t, e.odd.ID, elected.ID, "the server that is elected")
	both := []string{"all", "ghost"}
	require.Equal(t, map[int][]string{e.odd.ID: both, e.other.ID: both, e.leader.ID: both}, e.lists())
}

const setForceSnapshotSync = "forceSnapshotSync=true\n"

// disagreeing are three servers, one of which has a znode that the others do not have.
type disagreeing struct {
	*zkserver.Ensemble
	odd, other, leader *zkserver.Peer
	t                  *testing.T
	ctx                context.Context
}

func (e disagreeing) restart(m *zkserver.Peer, zooCfg string) {
	e.t.Helper()
	require.NoError(e.t, m.Kill())
	require.NoError(e.t, m.Configure(zooCfg))
	require.NoError(e.t, m.Restart(e.ctx))
}

func (e disagreeing) connect(m *zkserver.Peer) *zk.Conn {
	e.t.Helper()
	conn, err := zktest.Dial(m.Servers(), time.Minute, net.DialTimeout)
	require.NoError(e.t, err)
	context.AfterFunc(e.ctx, conn.Close) // ends a call that is not answered
	return conn
}

// lists returns the znodes of each server, by the server's ID.
func (e disagreeing) lists() map[int][]string {
	e.t.Helper()
	found := map[int][]string{}
	for _, m := range e.Members {
		conn := e.connect(m)
		_, err := conn.Sync("/")
		require.NoError(e.t, err)
		names, _, err := conn.Children("/")
		require.NoError(e.t, err)
		conn.Close()
		found[m.ID] = slices.DeleteFunc(names, func(name string) bool { return name == "zookeeper" })
		slices.Sort(found[m.ID])
	}
	return found
}

// withGhost starts the servers. The odd one has the znode /ghost, and alone has forceSnapshotSync.
func withGhost(t *testing.T) disagreeing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*zktest.Patience)
	t.Cleanup(cancel)
	ensemble, err := zkserver.StartEnsemble(ctx, 3, "syncLimit=1000")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ensemble.Stop()) })
	leader, followers := zktest.Roles(t, ensemble)
	odd, other := followers[0], followers[1] // of two equal servers, the one with the higher ID is elected
	e := disagreeing{ensemble, odd, other, leader, t, ctx}

	conn := e.connect(leader)
	_, err = conn.Create("/all", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	conn.Close()
	require.Equal(t, map[int][]string{odd.ID: {"all"}, other.ID: {"all"}, leader.ID: {"all"}}, e.lists())

	// For a while the server serves alone, and ends before the session does that has created the znode.
	var alone []string
	for line := range strings.Lines(odd.ZooCfg) {
		if !strings.HasPrefix(line, "server.") {
			alone = append(alone, line)
		}
	}
	e.restart(odd, strings.Join(alone, ""))
	conn = e.connect(odd)
	_, err = conn.Create("/ghost", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, ghost, err := conn.Exists("/ghost")
	require.NoError(t, err)
	require.NoError(t, odd.Kill())
	conn.Close()
	conn = e.connect(leader)
	// Until the others are ahead of all that the server wrote: else the leader makes it undo its own writes.
	const atMostAfterGhost = 10 // writes of the server alone
	for last := int64(0); last < ghost.Czxid+atMostAfterGhost; {
		stat, err := conn.Set("/all", nil, -1)
		require.NoError(t, err)
		last = stat.Mzxid
	}
	conn.Close()

	e.restart(odd, odd.ZooCfg+setForceSnapshotSync)
	require.Equal(t, map[int][]string{odd.ID: {"all", "ghost"}, other.ID: {"all"}, leader.ID: {"all"}}, e.lists(),
		"set on the server with the znode alone")
	return e
}

// A server that hangs up at once can make the dial itself fail. The error of Open then has the same advice.
func TestADialThatTheServerEnds(t *testing.T) {
	t.Parallel()
	ended := func(string, string, time.Duration) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EPIPE)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Open(ctx, []string{"127.0.0.1:2181"}, zktest.SessionTimeout, WithDialer(ended))
	for _, cause := range []string{"it has no majority or is starting", "its data are older", "see maxClientCnxns", "TLS"} {
		require.ErrorContains(t, err, cause)
	}
}

// A server that allows few connections from one address closes any further one. The error of Open names this
// possible cause.
func TestAServerWithTooManyConnections(t *testing.T) {
	s := start(t, "maxClientCnxns=1")
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	one, err := Open(ctx, s.Servers(), zktest.SessionTimeout)
	require.NoError(t, err)
	defer one.Close()
	said := ""
	for range 5 { // the server may close the connection before the handshake is sent
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = Open(short, s.Servers(), 4*time.Second)
		cancel()
		require.Error(t, err)
		said += err.Error() + "\n"
	}
	require.Contains(t, said, "too many connections from this address, see maxClientCnxns")
}
