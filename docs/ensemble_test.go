package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// What the pages say of an ensemble, seen on three real servers. The parts are
// told one after the other; each begins with three servers that serve. Tests that
// measure time are to run without them, so this one runs alone.
func TestEnsemble(t *testing.T) {
	e, leader, _ := zktest.Ensemble(t, "syncLimit=300") // so that no server gives up a silent one
	t.Run("the leader's keys", func(t *testing.T) { hasTheKeys(t, leader.Server, true) })
	for _, part := range []struct {
		name string
		tell func(*trio)
	}{
		{"one order", oneOrder},
		{"a follower lags", followerLags},
		{"the leader falls", leaderFalls},
		{"no majority", noMajority},
	} {
		t.Run(part.name, func(t *testing.T) {
			z := zktest.NewOn(t, e.Server)
			require.NoError(t, e.Serving(z.Ctx))
			leader, followers, err := e.Roles(z.Ctx)
			require.NoError(t, err)
			part.tell(&trio{t, z, e, leader, followers})
		})
	}
}

// A trio is the three servers as a part finds them.
type trio struct {
	*testing.T
	*zktest.Zoo
	ensemble  *zkserver.Ensemble
	leader    *zkserver.Peer
	followers []*zkserver.Peer
}

// hold stops what one server sends to another, until release.
func (s *trio) hold(from, to *zkserver.Peer) (release func()) {
	release = s.ensemble.Hold(from, to)
	s.Cleanup(release)
	return release
}

// A user is a client of one step's lock, and its turn.
type user struct {
	*zktest.Turn
	step int
}

// joins brings a client to a step's lock, at whichever server.
func (s *trio) joins(who string, step int, timeout time.Duration) *zktest.Member {
	seat := lockcheck.Seat{Timeout: timeout, Path: fmt.Sprintf("%s/lock%d", s.Root, step)}
	return steps.All[step-1].JoinAs(s.Zoo, fmt.Sprintf("%s of step %d", who, step), seat)
}

// sleeper brings one that waits silently.
func (s *trio) sleeper(step int) user {
	turn := s.joins("the sleeper", step, zktest.SessionTimeout).Start()
	turn.MustWait("somebody holds the lock")
	return user{turn, step}
}

// goesTo returns when the client is connected to the server.
func (s *trio) goesTo(m *zktest.Member, to *zkserver.Peer) {
	s.Await(m.Name+" to be at the server", func() bool {
		if m.State() == zk.StateHasSession && m.Server() != to.Addr {
			m.Tap.HangUp() // it tries the next
		}
		return m.State() == zk.StateHasSession && m.Server() == to.Addr
	})
}

// frames counts what has passed on a client's line since the mark.
func frames(c *zktest.Client, mark int, kind wiretap.Kind, op wiretap.Op) (n int) {
	for _, f := range c.Tap.Since(mark) {
		if f.Kind == kind && f.Op == op {
			n++
		}
	}
	return n
}

// The leader's word to one follower is held up, and meanwhile a write is decided
// by the others.
func followerLags(s *trio) {
	late := s.followers[0]
	atLate := zktest.NewOn(s, late.Server)
	far, another := atLate.Client("a client of the follower"), atLate.Observer()
	var server atomic.Pointer[zkserver.Peer]
	server.Store(s.leader)
	near := s.ConnectWith("a client that goes from one to the other", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, err := zktest.Dial(
			s.Servers(),
			zktest.SessionTimeout,
			func(network, _ string, limit time.Duration) (net.Conn, error) {
				return dial(network, server.Load().Addr, limit)
			},
		)
		return conn, conn.Close, err
	})
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
	_, err := far.Sync(path) // the follower knows all this, and near's session
	require.NoError(s, err)
	tell := s.hold(s.leader, late)
	set("new")
	chapter.SaysIn(
		s.T,
		"zookeeper.md",
		"a znode is set, and one follower has not heard of it: read at the leader %q, at that follower %q",
		read(near),
		read(far),
	)

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
	chapter.SaysIn(
		s.T,
		"zookeeper.md",
		"a sync there waits: %d answers; another client, without a sync, reads %q",
		answers(),
		read(another),
	)
	tell()
	found := zktest.AwaitChan(s.Zoo, "the read behind the sync", synced)
	chapter.SaysIn(
		s.T,
		"zookeeper.md",
		"the follower hears of it: %d answer to the sync, and the read behind it finds %q",
		answers(),
		found,
	)

	// near has seen the newest state, and goes to the follower that has not.
	tell = s.hold(s.leader, late)
	set("newer")
	server.Store(late)
	near.Tap.Cut()
	mark = near.Tap.Mark()
	near.Tap.Restore()
	s.Await("a second handshake, after the first was refused", func() bool {
		return frames(near, mark, wiretap.Request, wiretap.Connect) >= 2
	})
	chapter.SaysIn(
		s.T,
		"zookeeper.md",
		"a client that has seen a newer state comes to that follower: %d answers to its handshakes",
		frames(near, mark, wiretap.Reply, wiretap.Connect),
	)
	tell()
	s.Await("the client to be taken", func() bool { return near.State() == zk.StateHasSession })
	chapter.SaysIn(
		s.T,
		"zookeeper.md",
		"the follower hears of that: the client is taken, with %s, and reads %q",
		sameSession(near),
		read(near),
	)
}

// waitsOn tells whether the user waits, with the one znode that it has made.
func (u user) waitsOn() bool {
	return u.StillWaits() == zktest.Silently && u.Requests(0)[wiretap.Create] == 1
}

// stepsOf lists the steps of those users for whom something is so.
func stepsOf(users []user, so func(user) bool) string {
	var list []string
	for _, u := range users {
		if so(u) {
			list = append(list, fmt.Sprint(u.step))
		}
	}
	return fmt.Sprintf("steps %v", strings.Join(list, ", "))
}

// In each step one holds the lock, one sleeps if the step lets it, and one has
// just asked the leader something when that is killed. The election is held up
// until the clients have tried all servers in vain.
func leaderFalls(s *trio) {
	var holders, sleepers, askers []user
	for step := 1; step <= 6; step++ {
		holders = append(holders, user{s.joins("the holder", step, zktest.SessionTimeout).Acquire(), step})
		if step >= 3 {
			sleepers = append(sleepers, s.sleeper(step))
		}
		asker := s.joins("the asker", step, zktest.SessionTimeout)
		s.goesTo(asker, s.leader)
		answer := asker.Tap.HoldReply(wiretap.Create, 1)
		askers = append(askers, user{asker.Start(), step})
		zktest.AwaitChan(s.Zoo, asker.Name+"'s create to be answered", answer.Sprung())
	}
	epoch, count := s.aWrite(s.Observer())
	require.NoError(s, s.leader.Pause())
	marks := map[user]int{}
	all := slices.Concat(holders, sleepers, askers)
	for _, u := range all {
		marks[u] = u.Tap.Mark()
		u.Tap.Restore() // an asker gets its answer
	}
	for _, u := range askers {
		s.Await(u.Name+" to ask the leader, which is paused", func() bool {
			return wiretap.Count(u.Tap.Since(marks[u])).All() > 0
		})
	}
	elect := s.hold(s.followers[0], s.followers[1])
	require.NoError(s, s.leader.Kill())
	failed := stepsOf(askers[:4], func(u user) bool { return errors.Is(u.Err(), zk.ErrConnectionClosed) })
	elect()
	same := stepsOf(all, func(u user) bool {
		s.Await(u.Name+" to be back", func() bool {
			return u.State() == zk.StateHasSession && frames(u.Client, marks[u], wiretap.Reply, wiretap.Connect) > 0
		})
		return u.SessionID() == u.ID
	})
	s.Await("the observer to be back", func() bool { return s.Observer().State() == zk.StateHasSession })
	newEpoch, newCount := s.aWrite(s.Observer())
	chapter.SaysIn(s.T, "theory.md", "the leader is killed, and there is a new one: the epoch has grown: %v; the counter has begun anew: %v", newEpoch > epoch, newCount < count)
	chapter.SaysIn(s.T, "operations.md", "the leader is killed: %d clients lose their connection; back with the same session: %d", len(all), 1+strings.Count(same, ","))
	hasZnode := func(u user) bool {
		owner, there := s.Owner(cmp.Or(u.Znode(), u.Path)) // step 1's path is the znode
		return there && (owner == u.ID || u.step == 1)
	}
	kept, left, waited := stepsOf(holders, hasZnode), stepsOf(askers[1:4], hasZnode), stepsOf(askers[4:], user.waitsOn)
	slept := stepsOf(sleepers, func(u user) bool {
		return u.waitsOn() && frames(u.Client, marks[u], wiretap.Request, wiretap.SetWatches) > 0
	})
	for _, u := range slices.Concat(holders, sleepers, askers[4:]) {
		u.Release()
	}
	chapter.SaysIn(s.T, "operations.md", "a holder has its znode, and its Unlock works: %s", kept)
	chapter.SaysIn(
		s.T,
		"operations.md",
		"a waiter that slept sends its watch again, sleeps on, and gets the lock in its turn: %s",
		slept,
	)
	chapter.SaysIn(
		s.T,
		"operations.md",
		"a waiter that had just asked gets the error %q: %s",
		zk.ErrConnectionClosed,
		failed,
	)
	chapter.SaysIn(s.T, "operations.md", "and it leaves a znode behind, since its session lives: %s", left)
	chapter.SaysIn(
		s.T,
		"operations.md",
		"a waiter that had just asked goes on with the znode that it had, and gets the lock in its turn: %s",
		waited,
	)
	require.NoError(s, s.leader.Restart(s.Ctx))
}

// Two of three servers are killed.
func noMajority(s *trio) {
	var holders, waiters []user
	for step := 5; step <= 6; step++ {
		holder := s.joins("the holder", step, 4*time.Second).Acquire()
		waiters = append(waiters, s.sleeper(step))
		require.NoError(s, holder.Held().Err())
		holders = append(holders, user{holder, step})
	}
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
	chapter.SaysIn(s.T, "operations.md", "two of three servers are killed: the third says %q", word)
	lost := func(err error) bool { return errors.Is(err, reentrant.ErrLost) || errors.Is(err, sharedlock.ErrLost) }
	told := stepsOf(holders, func(u user) bool {
		held := u.Held()
		zktest.AwaitChan(s.Zoo, u.Name+" to be told", held.Done())
		return lost(context.Cause(held))
	})
	chapter.SaysIn(s.T, "operations.md", "no server answers any more: a holder is told ErrLost: %s", told)
	chapter.SaysIn(
		s.T,
		"operations.md",
		"and a waiter is not let in, nor told anything: %s",
		stepsOf(waiters, func(u user) bool { return !u.Returned() }),
	)
	require.NoError(s, zkserver.StartAgain(s.Ctx, killed))
	for i, u := range holders {
		s.Await(u.Name+" to be back", func() bool { return u.State() == zk.StateHasSession })
		require.Equal(s, u.ID, u.SessionID(), "the session of %s", u.Name)
		require.Equal(s, zktest.Silently, waiters[i].StillWaits(), waiters[i].Name)
		require.True(s, lost(u.Unlock(u.Held())), "%s was told of the loss, and its Unlock says it again", u.Name)
	}
	served := stepsOf(waiters, func(u user) bool {
		u.Acquired()
		queue := u.Queue()
		u.Release()
		return len(queue) == 1 && u.Requests(0)[wiretap.Create] == 1
	})
	chapter.SaysIn(
		s.T,
		"operations.md",
		"they are back, and the holder has called Unlock: a waiter has the lock with the znode that it had: %s",
		served,
	)
}
