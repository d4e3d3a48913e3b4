package sharedlock

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Step 5's story for a reader's znode: the leader has proposed A's create,
// nobody has agreed, and A comes back to a follower that hears of it late.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ensemble, err := zktest.StartEnsemble(ctx, "initLimit=300", "syncLimit=300") // longer than this test
	must(err)
	t.Cleanup(func() { must(ensemble.Stop()) })
	leader, err := ensemble.Leader(ctx)
	must(err)
	followers, err := ensemble.Followers(ctx)
	must(err)
	late, paused := followers[0], followers[1]

	s := &scene{Zoo: zktest.NewOn(t, late.Server), t: t}
	s.dir = s.Root + "/lock"
	s.makeDir()
	hold := func(from, to *zktest.Peer) (release func()) {
		t.Helper()
		release, err := ensemble.Hold(from, to)
		must(err)
		t.Cleanup(release)
		return release
	}
	leaderCounts := func(key string) int64 {
		counters, err := leader.Mntr()
		must(err)
		return counters[key]
	}
	var server atomic.Pointer[zktest.Peer]
	server.Store(leader)
	var session *Session
	c := s.Adopt("A", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		session, err = Open(s.Servers(), zktest.SessionTimeout, WithDialer(func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, server.Load().Addr, limit)
		}))
		if err != nil {
			return nil, nil, err
		}
		return session.Conn(), session.Close, nil
	})
	lock := New(session, s.dir)
	a := &user{c, s, lock, lock}
	_, err = s.Observer().Sync(s.dir)
	must(err)

	must(paused.Pause())
	toLate := hold(leader, late)
	proposals := leaderCounts("zk_proposal_count")
	turn := a.asks(read)
	s.Await("the leader to propose A's create", func() bool { return leaderCounts("zk_proposal_count") > proposals })

	asked := leaderCounts("zk_revalidate_count")
	server.Store(late)
	a.Tap.Cut()
	back := a.Tap.Mark()
	a.Tap.Restore()
	s.Await("the follower to ask the leader for A's session", func() bool { return leaderCounts("zk_revalidate_count") > asked })
	fromLate := hold(late, leader) // so it cannot agree
	toLate()
	s.Await("A to be back, and to ask what only the leader can answer", func() bool {
		asks := wiretap.Count(a.Tap.Since(back)).Requests
		return asks[wiretap.Sync]+asks[wiretap.Create] > 0
	})
	if queue := s.queue(); len(queue) != 0 {
		t.Fatalf("the follower does not lag: its list is %v", queue)
	}
	fromLate()
	turn.Acquired()
	creates := wiretap.Count(a.Tap.Since(turn.mark)).Requests[wiretap.Create]
	if queue := s.queue(); len(queue) != 1 || creates != 1 {
		t.Errorf("%d creates; the queue: %v", creates, queue)
	}
	turn.releases()
}
