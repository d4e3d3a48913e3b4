package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// right is this step's lock, as a part of a wrong one.
type right = Lock

// W13, published in the course's article on 51CTO. The idea:
// set the watch first, then make the latch that its callback will open, and
// wait there. When the event arrives between the two, the callback finds no
// latch to open. The latch is made after it, and nothing ever opens it.
type lateLatch struct{ *right }

func newLateLatch(conn *zk.Conn, path string) lateLatch { return lateLatch{New(conn, path)} }

func (l lateLatch) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := l.wait(ctx, node); err != nil {
		return errors.Join(err, l.leave(node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

func (l lateLatch) wait(ctx context.Context, node string) error {
	for {
		names, _, changed, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
			return err
		}
		var latch chan struct{}
		called := make(chan struct{})
		go func() { // the watch's callback
			<-changed
			if latch != nil {
				close(latch)
			}
			close(called)
		}()
		select {
		case <-called: // the callback runs before the next line: in practice sometimes, in this lock always
			latch = make(chan struct{})
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-latch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// The property it breaks is "first come, first served": it is first in the
// queue, and is never served. The evidence is on the wire: the waiter was
// notified, sends no request, and sleeps.
func TestW13MakesItsLatchTooLate(t *testing.T) {
	late := property.Over("W13", newLateLatch)
	explore.Acts(late)
	t.Parallel()
	line := late.Line(zktest.New(t), 1)
	holder, waiter := line[0], line[1]
	holder.Release()
	assert.Never(
		t,
		waiter.Returned,
		100*time.Millisecond,
		10*time.Millisecond,
		"the lock is free, and the waiter's Lock has returned",
	)
	seen := wiretap.Count(waiter.Tap.Frames())
	t.Logf("W13: notifications received: %d, lists asked for: %d, queue: %v; and the waiter sleeps",
		seen.Notifications, seen.Requests[wiretap.GetChildren], waiter.Queue())
	assert.Equal(t, 1, seen.Notifications, "notifications received")
	assert.Equal(t, 1, seen.Requests[wiretap.GetChildren], "lists asked for")
	assert.Equal(t, []string{"lock-0000000001"}, waiter.Queue(), "the waiter is the first in the queue")
	assert.ErrorIs(t, waiter.Cancel(), context.Canceled, "only its context can end the wait")
}
