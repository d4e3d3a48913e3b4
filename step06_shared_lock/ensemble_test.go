package sharedlock

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// Step 5's story for a reader's znode: the leader has proposed A's create,
// nobody has agreed, and A comes back to a follower that hears of it late.
func TestALostReplyAtAServerThatLags(t *testing.T) {
	lag := zktest.NewLag(t)
	s := newSceneOn(t, lag.Zoo)
	s.makeDir()
	a := s.joinThrough("A", zktest.SessionTimeout, lag.Through)

	var turn *turn
	catchUp := lag.LoseCreate(a.Client, func() { turn = a.asks(read) })
	if queue := s.queue(); len(queue) != 0 {
		t.Fatalf("the follower does not lag: its list is %v", queue)
	}
	catchUp()
	turn.Acquired()
	creates := wiretap.Count(a.Tap.Since(turn.mark)).Requests[wiretap.Create]
	if queue := s.queue(); len(queue) != 1 || creates != 1 {
		t.Errorf("%d creates; the queue: %v", creates, queue)
	}
	turn.releases()
}

// The writer's server is the leader, and is cut off from the others. They are
// started again, elect, end the session and let a reader in. The deposed leader
// goes on answering pings and reads by itself, for it does not know; but it gets
// no write through. By the time the reader is in, the writer has been told.
func TestAWriterBehindADeposedLeaderIsToldBeforeAReaderIsIn(t *testing.T) {
	_, leader, followers := zktest.Ensemble(t, "syncLimit=100") // it finds out after 10 s
	s := newSceneOn(t, zktest.NewOn(t, followers[0].Server))
	writer := s.joinThrough("the writer", zktest.MortalTimeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) {
			return dial(network, leader.Addr, limit)
		}
	}).holds(write)
	next := s.join("the next").waits(read)
	leader.CutOff()
	require.NoError(t, zkserver.StartAgain(s.Ctx, followers))
	next.Acquired()
	require.ErrorIs(t, context.Cause(writer.held), ErrLost, "the reader is in, and the writer has not been told")
	next.releases()
	leader.Rejoin()
	require.ErrorIs(t, release(writer.held, writer.lock, write), ErrLost)
}
