package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"testing"

	"github.com/go-zookeeper/zk"

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
	latch chan struct{}

	// Where the test looks on: between the watch and the latch, and after.
	between func(ctx context.Context, called <-chan struct{})
	after   func()
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
		l.between(ctx, called)
		l.latch = make(chan struct{})
		l.after()
		select {
		case <-l.latch:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), l.leave(node))
		}
	}
}

// The property it breaks is "first come, first served": it is first in the
// queue, and is never served. No check from outside can be sure to hit the gap,
// so this test stands inside it. The evidence is on the wire: the waiter has
// been told, asks nothing, and sleeps.
func TestW13MakesItsLatchTooLate(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder := z.Line(0, join(z))[0]
	waiter := z.Client("the waiter")
	watching, asleep := make(chan struct{}), make(chan struct{})
	lock := &lateLatch{
		right: New(waiter.Conn, z.Root+"/lock"),
		between: func(ctx context.Context, called <-chan struct{}) {
			close(watching)
			select {
			case <-called:
			case <-ctx.Done():
			}
		},
		after: func() { close(asleep) },
	}
	attempt := z.Go(waiter, lock.Lock)
	zktest.AwaitChan(z, "the waiter to set its watch", watching)
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	zktest.AwaitChan(z, "the waiter to make its latch", asleep)

	seen := wiretap.Count(waiter.Tap.Frames())
	queue := z.Names(z.Root + "/lock")
	t.Logf("✗ notifications received: %d, lists asked for: %d, queue: %v; and the waiter sleeps",
		seen.Notifications, seen.Requests[wiretap.GetChildren], queue)
	if seen.Notifications != 1 || seen.Requests[wiretap.GetChildren] != 1 || len(queue) != 1 {
		t.Error("want 1 notification, 1 list, and the waiter alone in the queue")
	}
	select {
	case <-lock.latch:
		t.Error("the latch is open: the wake-up was not lost")
	default:
	}
	if err := attempt.Cancel(); !errors.Is(err, context.Canceled) {
		t.Errorf("only its context can end the wait, and Lock answered %v", err)
	}
}
