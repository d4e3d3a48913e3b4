package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// right is this step's lock, as a part of a wrong one.
type right = Lock

// W13, published in 51CTO, "ZooKeeper locks and Curator's source". The idea:
// set the watch first, then make the latch that its callback will open, and
// wait there. When the event arrives between the two, the callback finds no
// latch to open, the latch is made after it, and nobody ever opens it.
type lateLatch struct {
	*right
	latch   chan struct{}
	between func(called, givenUp <-chan struct{}) // the watch and the latch: here the test looks on
}

func (l *lateLatch) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	for {
		names, _, changed, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
			return err
		}
		called := make(chan struct{})
		go func() { // the watch's callback
			defer close(called)
			<-changed
			if l.latch != nil {
				close(l.latch)
			}
		}()
		l.between(called, ctx.Done())
		l.latch = make(chan struct{})
		select {
		case <-l.latch:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), l.leave(node))
		}
	}
}

func newLateLatch(conn *zk.Conn, path string) *lateLatch {
	return &lateLatch{right: New(conn, path), between: func(called, givenUp <-chan struct{}) {
		select {
		case <-called:
		case <-givenUp:
		}
	}}
}

// The property it breaks is "first come, first served": it is first in the
// queue, and is never served. No check from outside can be sure to hit the gap,
// so this test stands inside it. The evidence is on the wire: the waiter has
// been told, asks nothing, and sleeps.
func TestW13MakesItsLatchTooLate(t *testing.T) {
	lockcheck.Over("W13", newLateLatch).Acts()
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := lock.Join(z, "the holder").Acquire(), z.Client("the waiter")
	watching, told := make(chan struct{}), make(chan struct{})
	late := newLateLatch(waiter.Conn, holder.Path)
	stays := late.between
	late.between = func(called, givenUp <-chan struct{}) {
		close(watching)
		stays(called, givenUp)
		close(told)
	}
	waiting := z.Go(waiter, late.Lock)
	zktest.AwaitChan(z, "the waiter to set its watch", watching)
	holder.Release()
	zktest.AwaitChan(z, "the waiter's callback to be done", told)

	queue := holder.Queue()
	assert.ErrorIs(t, waiting.Cancel(), context.Canceled, "only its context can end the wait")
	seen := wiretap.Count(waiter.Tap.Frames())
	t.Logf("✗ notifications received: %d, lists asked for: %d, queue: %v; and the waiter sleeps",
		seen.Notifications, seen.Requests[wiretap.GetChildren], queue)
	assert.Equal(t, 1, seen.Notifications, "notifications received")
	assert.Equal(t, 1, seen.Requests[wiretap.GetChildren], "lists asked for")
	assert.Equal(t, []string{"lock-0000000001"}, queue, "the waiter is the first in the queue")
}
