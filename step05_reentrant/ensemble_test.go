package reentrant

import (
	"context"
	"net"
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
	lag := zktest.NewLag(t)
	a := joinThrough(t, lag.Zoo, "A", zktest.SessionTimeout, lag.Through)
	a.release(a.acquire()) // makes the directory

	mark := a.Tap.Mark()
	var call *call
	catchUp := lag.LoseCreate(a.Client, func() { call = a.start() })
	before := len(a.queue())
	catchUp()
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
	_, leader, followers := zktest.StartRoles(t, "syncLimit=100") // it finds out after 10 s
	z := zktest.NewOn(t, leader.Server)
	a := joinThrough(t, z, "A", zktest.MortalTimeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, followers[0].Addr, limit)
		}
	})
	b := join(t, z, "B")
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
