package reentrant

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A's create is lost while it is being decided: the leader has proposed it, and
// nobody has agreed. A comes back to a follower that hears of it late. Whoever
// looks there without a sync finds nothing, and makes a second znode.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ensemble, err := zktest.StartEnsemble(ctx, "initLimit=300", "syncLimit=300") // longer than this test
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ensemble.Stop()) })
	leader, err := ensemble.Leader(ctx)
	require.NoError(t, err)
	followers, err := ensemble.Followers(ctx)
	require.NoError(t, err)
	late, paused := followers[0], followers[1]

	z := zktest.NewOn(t, late.Server) // so the queue is what this server knows of it
	hold := func(from, to *zktest.Peer) (release func()) {
		release, err := ensemble.Hold(from, to)
		require.NoError(t, err)
		t.Cleanup(release)
		return release
	}
	leaderCounts := func(key string) int64 {
		counters, err := leader.Mntr()
		require.NoError(t, err)
		return counters[key]
	}
	var server atomic.Pointer[zktest.Peer]
	server.Store(leader)
	a := joinVia(t, z, "A", zktest.SessionTimeout, &server)
	a.release(a.acquire()) // makes the directory
	_, err = z.Observer().Sync(a.lock.dir)
	require.NoError(t, err)

	require.NoError(t, paused.Pause())
	toLate := hold(leader, late)
	proposals, mark := leaderCounts("zk_proposal_count"), a.Tap.Mark()
	call := a.start()
	z.Await("the leader to propose A's create", func() bool { return leaderCounts("zk_proposal_count") > proposals })

	asked := leaderCounts("zk_revalidate_count")
	server.Store(late)
	a.Tap.Cut()
	back := a.Tap.Mark()
	a.Tap.Restore()
	z.Await("the follower to ask the leader for A's session", func() bool { return leaderCounts("zk_revalidate_count") > asked })
	fromLate := hold(late, leader) // so it cannot agree
	toLate()
	z.Await("A to be back, and to ask what only the leader can answer", func() bool {
		return a.requests(back)[wiretap.Sync]+a.requests(back)[wiretap.Create] > 0
	})
	before := len(a.queue())

	fromLate()
	require.Equal(t, zktest.Returned, call.Waits(), "A's Lock: it waits for itself; the queue: %v", a.queue())
	creates := a.requests(mark)[wiretap.Create]
	chapter.Says(t, "back at a server that lags: %d names there while the sync is under way, %d name when it is answered; creates: %d",
		before, len(a.queue()), creates)
	require.Equal(t, []int{0, 1}, []int{before, creates})
	a.holds(call.in())
}

// The network parts a holder and its server, a follower, from the rest. The
// follower answers pings by itself and does not yet know that it is alone. The
// others end the session, and let the next one in. By then the holder has been
// told.
func TestAHolderOnTheWrongSideOfAPartitionIsToldInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ensemble, err := zktest.StartEnsemble(ctx, "syncLimit=100") // it finds out after 10 s
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ensemble.Stop()) })
	leader, err := ensemble.Leader(ctx)
	require.NoError(t, err)
	followers, err := ensemble.Followers(ctx)
	require.NoError(t, err)

	z := zktest.NewOn(t, leader.Server)
	var server atomic.Pointer[zktest.Peer]
	server.Store(followers[0])
	a, b := joinVia(t, z, "A", zktest.MortalTimeout, &server), join(t, z, "B")
	held := a.acquire()
	next := b.start()
	b.waits(next, "A holds the lock")
	require.NoError(t, held.Err())
	require.NoError(t, followers[0].CutOff())
	second := next.in()
	require.ErrorIs(t, context.Cause(held), ErrLost, "B has the lock, and A has not been told")
	b.release(second)
	chapter.Says(t, "cut off together with its server, the holder is told before the next one is let in")
	require.NoError(t, followers[0].Rejoin())
}

// joinVia brings a party that connects to the server that is in place.
func joinVia(t *testing.T, z *zktest.Zoo, name string, timeout time.Duration, server *atomic.Pointer[zktest.Peer]) *party {
	t.Helper()
	return joinThrough(t, z, name, timeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, server.Load().Addr, limit)
		}
	})
}
