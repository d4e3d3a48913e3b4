package sharedlock

import (
	"testing"

	"zklock/internal/wiretap"
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
