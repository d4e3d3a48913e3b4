package docs

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// What the pages say about several servers, tested on three real ones. The parts run one after the
// other. Each begins with three servers that serve.
func TestEnsemble(t *testing.T) {
	e, _, _ := zktest.ThreeServers(t)
	for _, part := range []struct {
		name string
		tell func(*trio)
	}{
		{"one order", oneOrder},
		{"a follower lags", followerLags},
		{"a watch moves with its session", watchMoves},
		{"what a session asked for before it moved is refused", sessionMoved},
		{"a new leader begins a new epoch", newEpoch},
		{"a leader that was replaced answers a sync", replacedLeader},
		{"no majority", noMajority},
	} {
		t.Run(part.name, func(t *testing.T) {
			z := zktest.NewOn(t, e.Server)
			leader, followers := zktest.Roles(t, e)
			part.tell(&trio{t, z, e, leader, followers})
		})
	}
}

// A trio is the three servers at the start of a part.
type trio struct {
	*testing.T
	*zktest.Zoo
	ensemble  *zkserver.Ensemble
	leader    *zkserver.Peer
	followers []*zkserver.Peer
}

// hold holds back what one server sends to another until release is called.
func (s *trio) hold(from, to *zkserver.Peer) (release func()) {
	release = s.ensemble.Hold(from, to)
	s.Cleanup(release)
	return release
}

// mover is a client that is connected to a server, and after its next reconnection to the one that is stored.
func (s *trio) mover(first *zkserver.Peer) (*zktest.Client, *atomic.Pointer[zkserver.Peer]) {
	var server atomic.Pointer[zkserver.Peer]
	server.Store(first)
	c := s.ConnectWith("a client that goes from one to the other", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		toServer := func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, server.Load().Addr, limit)
		}
		conn, err := zktest.Dial(s.Servers(), zktest.SessionTimeout, toServer)
		return conn, conn.Close, err
	})
	return c, &server
}

// moves leads a client to another server, and waits until it has its session there.
func (s *trio) moves(c *zktest.Client, server *atomic.Pointer[zkserver.Peer], to *zkserver.Peer) {
	mark := c.Tap.Mark()
	server.Store(to)
	c.Tap.HangUp()
	s.Await("the client to be accepted by the other server", func() bool {
		return frames(c, mark, wiretap.Reply, wiretap.Connect) == 1 && c.State() == zk.StateHasSession
	})
	require.Equal(s, c.ID, c.SessionID(), "the session")
}

// aWrite makes a write, and returns the two halves of its zxid.
func (s *trio) aWrite(c *zktest.Client) (epoch, count int64) {
	mark := c.Tap.Mark()
	var err error
	s.Await("a write to be answered", func() bool { // after an election the connection may break once more
		_, err = c.Create(s.Root+"/a-write-", nil, zk.FlagSequence, anyone)
		return !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer)
	})
	require.NoError(s, err)
	for _, f := range c.Tap.Since(mark) {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Create {
			return f.Zxid >> 32, f.Zxid & (1<<32 - 1)
		}
	}
	require.Fail(s, "a write has no answer")
	return 0, 0
}

// frames counts what has passed on a client's connection since the mark.
func frames(c *zktest.Client, mark int, kind wiretap.Kind, op wiretap.Op) (n int) {
	for _, f := range c.Tap.Since(mark) {
		if f.Kind == kind && f.Op == op {
			n++
		}
	}
	return n
}

// zxidRead is the zxid in the last answer to a client's reads.
func zxidRead(c *zktest.Client) (zxid int64) {
	for _, f := range c.Tap.Frames() {
		if f.Kind == wiretap.Reply && f.Op == wiretap.GetData {
			zxid = f.Zxid
		}
	}
	return zxid
}

// Clients of two followers write in turn. Each write is
// sent after the other client's last one was answered.
func oneOrder(s *trio) {
	clients := []*zktest.Client{
		zktest.NewOn(s, s.followers[0].Server).Client("a client of one follower"),
		zktest.NewOn(s, s.followers[1].Server).Client("a client of the other follower"),
	}
	const writes = 20
	last, grew := int64(0), 0
	for i := range writes {
		epoch, count := s.aWrite(clients[i%2])
		if zxid := epoch<<32 | count; zxid > last {
			last, grew = zxid, grew+1
		}
	}
	assert.Equal(s, writes, grew, "writes whose zxid is greater than that of the write before")
	chapter.SaysIn(s.T, consensusPage,
		"clients of two followers write in turn, each after the other was answered: %d writes, the zxid grew %d times",
		writes, grew)
}

// What the leader sends to one follower is held back. Meanwhile the other two servers decide a write.
func followerLags(s *trio) {
	late := s.followers[0]
	atLate := zktest.NewOn(s, late.Server)
	far, another := atLate.Client("a client of the follower"), atLate.Observer()
	near, server := s.mover(s.leader)
	path := create(s.T, near, s.Root+"/a", 0)
	read := func(c *zktest.Client) string {
		data, _, err := c.Get(path)
		require.NoError(s, err)
		return string(data)
	}
	set := func(data string) {
		_, err := near.Set(path, []byte(data), -1)
		require.NoError(s, err)
	}
	set("old")
	_, err := far.Sync(path) // the follower now has these writes, and the one that began near's session
	require.NoError(s, err)

	tell := s.hold(s.leader, late)
	set("new")
	atLeader, atFollower := read(near), read(far)
	assert.Equal(s, []string{"new", "old"}, []string{atLeader, atFollower}, "at the leader, and at the follower")
	assert.Greater(s, zxidRead(near), zxidRead(far), "the last write that each of the two servers has applied")
	chapter.SaysIn(s.T, serversPage,
		"a znode is set, and one follower has not heard of it: read at the leader %q, at that follower %q",
		atLeader, atFollower)

	mark := far.Tap.Mark()
	answers := func() int { return frames(far, mark, wiretap.Reply, wiretap.Sync) }
	synced := make(chan string, 1)
	go func() {
		_, err1 := far.Sync(path)
		data, _, err2 := far.Get(path)
		assert.NoError(s, errors.Join(err1, err2))
		synced <- string(data)
	}()
	s.Await("a sync to be under way", func() bool { return frames(far, mark, wiretap.Request, wiretap.Sync) == 1 })
	chapter.SaysIn(s.T, serversPage, "a sync there waits: %d answers; another client, without a sync, reads %q",
		answers(), read(another))
	tell()
	found := zktest.AwaitChan(s.Zoo, "the read behind the sync", synced)
	assert.Equal(s, "new", found, "the read behind the sync")
	chapter.SaysIn(s.T, serversPage, "the follower hears of it: %d answer to the sync, and the read behind it finds %q",
		answers(), found)

	// near has seen the newest state, and connects to the follower that has not.
	tell = s.hold(s.leader, late)
	set("newer")
	server.Store(late)
	near.Tap.Cut()
	mark = near.Tap.Mark()
	near.Tap.Restore()
	s.Await("a second handshake, after the first was refused", func() bool {
		return frames(near, mark, wiretap.Request, wiretap.Connect) >= 2
	})
	accepted := frames(near, mark, wiretap.Reply, wiretap.Connect)
	assert.Zero(s, accepted, "handshakes that a server answers which is behind the client")
	chapter.SaysIn(s.T, serversPage,
		"a client that has seen a newer state connects to that follower: %d answers to its handshakes", accepted)

	// To begin a session is a write. So the follower cannot answer
	// before it has received this write and all earlier ones.
	tap := wiretap.New()
	newcomer, err := zktest.Dial([]string{late.Addr}, zktest.SessionTimeout, tap.Dial)
	require.NoError(s, err)
	s.Cleanup(newcomer.Close)
	handshakes := func(kind wiretap.Kind) (n int) {
		for _, f := range tap.Frames() {
			if f.Kind == kind && f.Op == wiretap.Connect {
				n++
			}
		}
		return n
	}
	s.Await("a new client's handshake", func() bool { return handshakes(wiretap.Request) == 1 })
	assert.Equal(s, "new", read(far), "the follower answers, and lags")
	begun := handshakes(wiretap.Reply)
	assert.Zero(s, begun, "answers to the handshake of a new session")
	chapter.SaysIn(s.T, serversPage, "a new client connects to that follower: %d answers to its handshake", begun)
	tell()
	s.Await("the new session", func() bool { return newcomer.State() == zk.StateHasSession })
	data, _, err := newcomer.Get(path)
	require.NoError(s, err)
	assert.Equal(s, "newer", string(data), "the first read of a new session")
	chapter.SaysIn(s.T, serversPage,
		"the follower catches up with the leader: the new client gets its session, and reads %q", data)
	s.Await("the client to be accepted", func() bool { return near.State() == zk.StateHasSession })
	assert.Equal(s, near.ID, near.SessionID(), "the session")
	chapter.SaysIn(s.T, serversPage, "and the other client is accepted, with the same session, and reads %q", read(near))
}

// A client watches a znode at the leader, and moves to a follower. There it is notified.
func watchMoves(s *trio) {
	c, server := s.mover(s.leader)
	path := create(s.T, c, s.Root+"/watched", 0)
	_, _, changed, err := c.GetW(path)
	require.NoError(s, err)
	mark := c.Tap.Mark()
	s.moves(c, server, s.followers[0])
	s.Await("the watch to be set at the other server", func() bool {
		return frames(c, mark, wiretap.Reply, wiretap.SetWatches) == 1
	})
	require.NoError(s, sets(s.Observer(), path))
	event := zktest.AwaitChan(s.Zoo, "the watch to fire", changed)
	require.NoError(s, event.Err, "the watch's event")
	assert.Equal(s, zk.EventNodeDataChanged, event.Type, "what the other server tells")
}

// A create is on its way from a follower to the leader when the client's connection breaks. If the client has moved to
// another server when the create arrives, the leader refuses it. If it has not, the create is carried out.
func sessionMoved(s *trio) {
	follower := s.followers[0]
	another := zktest.NewOn(s, follower.Server).Client("another client of the follower")
	arrives := func(name string, meanwhile func(*zktest.Client, *atomic.Pointer[zkserver.Peer])) bool {
		c, server := s.mover(follower)
		path := s.Root + "/" + name
		mark := c.Tap.Mark()
		release := s.hold(follower, s.leader)
		answer := make(chan error, 1)
		go func() { answer <- makes(c, path) }()
		s.Await("the create to be sent", func() bool { return frames(c, mark, wiretap.Request, wiretap.Create) == 1 })
		meanwhile(c, server)
		err := zktest.AwaitChan(s.Zoo, "the create's error", answer)
		require.ErrorIs(s, err, zk.ErrConnectionClosed)
		require.False(s, isThere(s.Zoo, path), "the create has not arrived")
		release()
		_, err = another.Sync(s.Root) // goes to the leader by the same way, behind the create
		require.NoError(s, err)
		isCreated, _, err := another.Exists(path) // asks the server that the sync has brought up to date
		require.NoError(s, err)
		return isCreated
	}
	stayed := arrives("stayed", func(c *zktest.Client, _ *atomic.Pointer[zkserver.Peer]) { c.Tap.Cut() })
	assert.True(s, stayed, "the create of a client that did not move")
	moved := arrives("moved", func(c *zktest.Client, server *atomic.Pointer[zkserver.Peer]) {
		s.moves(c, server, s.followers[1])
	})
	assert.False(s, moved, "the create of a client that has moved")
}

// The leader has proposed a client's create, and no other server has agreed, when the connection breaks. The client
// gets its session at a follower that has not heard of the decision. There its list is answered before the create is
// carried out.
func TestAfterAReconnectionAReadMayComeBeforeAnEarlierWrite(t *testing.T) {
	t.Parallel()
	e, leader, followers := zktest.ThreeServers(t)
	s := &trio{t, zktest.NewOn(t, leader.Server), e, leader, followers}
	late, paused := followers[0], followers[1]
	c, server := s.mover(leader)
	names := func() []string {
		names, _, err := c.Children(s.Root)
		require.NoError(t, err)
		return names
	}
	leaderCounts := func(key string) int64 {
		counters, err := leader.Mntr()
		require.NoError(t, err)
		return counters[key]
	}
	_, err := zktest.NewOn(t, late.Server).Observer().Sync(s.Root) // it is behind c only by the create
	require.NoError(t, err)

	require.NoError(t, paused.Pause())
	t.Cleanup(func() { assert.NoError(t, paused.Resume()) })
	toLate := s.hold(leader, late)
	mark, proposals, asked := c.Tap.Mark(), leaderCounts("zk_proposal_count"), leaderCounts("zk_revalidate_count")
	answer := make(chan error, 1)
	go func() { answer <- makes(c, s.Root+"/a") }()
	s.Await("the leader to propose the create", func() bool { return leaderCounts("zk_proposal_count") > proposals })
	server.Store(late)
	c.Tap.HangUp()
	require.ErrorIs(t, zktest.AwaitChan(s.Zoo, "the create's error", answer), zk.ErrConnectionClosed)
	s.Await("the follower to ask for the session", func() bool { return leaderCounts("zk_revalidate_count") > asked })
	agrees := s.hold(late, leader)
	toLate()
	s.Await("the client to be accepted by the follower", func() bool {
		return frames(c, mark, wiretap.Reply, wiretap.Connect) == 1 && c.State() == zk.StateHasSession
	})
	assert.Empty(t, names(), "a list that is sent after the create")

	agrees()
	_, err = c.Sync(s.Root)
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names(), "the same list, after a sync")
	assert.Equal(t, c.ID, c.SessionID(), "the session of the create and of both lists")
	sent := wiretap.Count(c.Tap.Since(mark)).Requests[wiretap.Create]
	assert.Equal(t, 1, sent, "creates that were sent")
}

// The leader is killed, and the others elect another one. What one of them sends to the other is
// held back, so the election lasts until both were asked.
func newEpoch(s *trio) {
	epoch, count := s.aWrite(s.Observer())
	release := s.hold(s.followers[0], s.followers[1])
	require.NoError(s, s.leader.Kill())
	s.Await("both followers to serve nobody, while they have no leader", func() bool {
		return servesNobody(s.followers[0]) && servesNobody(s.followers[1])
	})
	release()
	s.Await("the others to have a leader, and to serve", func() bool {
		_, _, err := s.Observer().Get(s.Root)
		return err == nil && s.Observer().State() == zk.StateHasSession
	})
	newEpoch, newCount := s.aWrite(s.Observer())
	assert.Greater(s, newEpoch, epoch, "the epoch of a write after the election")
	assert.Less(s, newCount, count, "the counter begins again")
	chapter.SaysIn(s.T, consensusPage,
		"the leader is killed, and there is a new one: the epoch has grown, and the counter begins again")
	require.NoError(s, s.leader.Restart(s.Ctx))
}

// The leader is cut off, and the others, started again, elect another one. The old one does not know that.
func replacedLeader(s *trio) {
	old := s.leader
	c := zktest.NewOn(s, old.Server).Client("a client of the old leader")
	writer := zktest.NewOn(s, s.followers[0].Server).Client("a client of the others")
	path := create(s.T, writer, s.Root+"/a", 0)
	set := func(data string) error { _, err := writer.Set(path, []byte(data), -1); return err }
	require.NoError(s, set("old"))
	_, err := c.Sync(path)
	require.NoError(s, err)

	old.CutOff()
	s.Cleanup(old.Rejoin)
	require.NoError(s, zkserver.StartAgain(s.Ctx, s.followers))
	s.Await("the others to carry out a write", func() bool { return set("new") == nil })
	_, err = c.Sync(path)
	require.NoError(s, err, "the old leader's answer to the sync")
	data, _, err := c.Get(path)
	require.NoError(s, err)
	assert.Equal(s, "old", string(data), "the read behind the sync")
	chapter.SaysIn(s.T, serversPage,
		"a leader that was replaced, and does not know it, answers a sync: the read behind it finds %q", data)
	old.Rejoin()
	require.NoError(s, s.ensemble.Serving(s.Ctx))
	s.Await("the test's own client to be connected again", func() bool {
		_, err := s.Observer().Sync(path)
		return err == nil
	})
}

// Half of the servers are not a majority: 半数以上 must not be read as "half, or more".
func TestHalfOfTheServersDoNotServe(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	four, err := zkserver.StartEnsemble(z.Ctx, 4)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, four.Stop()) })
	var followers []*zkserver.Peer
	z.Await("three followers", func() bool {
		_, followers, err = four.Roles(z.Ctx)
		return err == nil && len(followers) == 3
	})
	serves := func(m *zkserver.Peer) bool {
		said, err := m.Word("srvr")
		return err == nil && strings.Contains(said, "Mode: ")
	}
	require.NoError(t, followers[0].Kill())
	z.Await("three of four servers to serve", func() bool { return serves(followers[1]) && serves(followers[2]) })
	require.NoError(t, followers[1].Kill())
	z.Await("the two that are left to stop serving", func() bool { return servesNobody(followers[2]) })
}

// Three servers live, and none of them reaches another: no majority of them can agree.
func TestServersThatDoNotReachOneAnotherDoNotServe(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	three, err := zkserver.StartEnsemble(z.Ctx, 3)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, three.Stop()) })
	require.NoError(t, three.Serving(z.Ctx))
	for _, m := range three.Members {
		m.CutOff()
	}
	for _, m := range three.Members {
		z.Await("a living server to stop serving", func() bool { return servesNobody(m) })
	}
}

// servesNobody reports whether a server says so: it has no majority, or the servers elect a leader.
func servesNobody(m *zkserver.Peer) bool {
	said, err := m.Word("srvr")
	return err == nil && strings.Contains(said, "not currently serving")
}

// An observer answers reads, and has no vote. So two of four servers are a majority if one of the others is an observer.
func TestObserversDoNotVote(t *testing.T) {
	t.Parallel()
	four, err := zkserver.StartEnsembleWith(t.Context(), 4, zkserver.Config{
		Observers: 1, Lines: []string{"tickTime=300", "syncLimit=300"}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, four.Stop()) })
	leader, followers, err := four.Roles(t.Context())
	require.NoError(t, err)
	observer := four.Members[3]
	said, err := observer.Word("srvr")
	require.NoError(t, err)
	require.Contains(t, said, "Mode: observer")

	z := zktest.NewOn(t, leader.Server)
	atObserver, err := zktest.Dial([]string{observer.Addr}, zktest.SessionTimeout, net.DialTimeout)
	require.NoError(t, err)
	t.Cleanup(atObserver.Close)
	there, _, err := atObserver.Exists(z.Root)
	require.NoError(t, err)
	assert.True(t, there, "what a read at the observer finds")

	require.NoError(t, observer.Kill())
	require.NoError(t, followers[0].Kill())
	assert.NoError(t, makes(z.Observer(), z.Root+"/a"), "a write, with two of four servers")
}

// Two of three servers are killed.
func noMajority(s *trio) {
	killed := []*zkserver.Peer{s.leader, s.followers[0]}
	for _, m := range killed {
		require.NoError(s, m.Kill())
	}
	var word string
	s.Await("the third server to stop serving", func() (stopped bool) {
		said, err := s.followers[1].Word("srvr")
		word, stopped = strings.TrimSpace(said), strings.Contains(said, "not currently serving")
		return err == nil && stopped
	})
	chapter.SaysIn(s.T, consensusPage, "two of three servers are killed: the third says %q", word)
	require.NoError(s, zkserver.StartAgain(s.Ctx, killed))
}
