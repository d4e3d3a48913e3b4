package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	starter "zklock/step03_children_watch/exercise"
)

// waiting is this step's lock, which waits in another way.
type waiting struct {
	*right
	wait func(l *right, ctx context.Context, node string) error
}

func (l waiting) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := l.wait(l.right, ctx, node); err != nil {
		return errors.Join(err, l.leave(node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// The check of the exercise accepts this step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	waits := func(name string, wait func(l *right, ctx context.Context, node string) error) property.Subject {
		s := property.Over(name, func(conn *zk.Conn, path string) waiting { return waiting{New(conn, path), wait} })
		s.NotHeld = ErrNotHeld
		return s
	}
	exercise.Accepts(t, exercise.Step3, lock)
	exercise.Accepts(t, exercise.Step3, waits("waits by recursion", waitsByRecursion))

	exercise.Refuses(t, exercise.Step3, property.SilentWait, property.Over("the starter", starter.New))
	exercise.RefusesAtOnce(t, exercise.Step3, property.Over("W13", newLateLatch))
	exercise.Refuses(t, exercise.Step3, property.OneHolder, waits("trusts the wake-up", trustsTheWakeUp))
	exercise.RefusesSomewhere(t, exercise.Step3, waits("lists, and then watches", listsAndThenWatches))
	exercise.Refuses(t, exercise.Step3, property.SilentWait, waits("looks now and then, too", looksNowAndThen))
}

// turn tells whether it is the turn of a znode, and gives the watch that was set with the list.
func turn(l *right, node string) (first bool, changed <-chan zk.Event, err error) {
	names, _, changed, err := l.conn.ChildrenW(l.dir)
	if err != nil {
		return false, nil, err
	}
	first, err = isFirst(names, pathpkg.Base(node))
	return first, changed, err
}

// Each wake-up is one call more, and it looks again.
func waitsByRecursion(l *right, ctx context.Context, node string) error {
	first, changed, err := turn(l, node)
	if first || err != nil {
		return err
	}
	select {
	case event := <-changed:
		if event.Err != nil {
			return event.Err
		}
		return waitsByRecursion(l, ctx, node)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// "I was woken, so the lock is free."
func trustsTheWakeUp(l *right, ctx context.Context, node string) error {
	first, changed, err := turn(l, node)
	if first || err != nil {
		return err
	}
	select {
	case event := <-changed:
		return event.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// "First I look whether it is my turn, and if not, I set a watch."
func listsAndThenWatches(l *right, ctx context.Context, node string) error {
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
			return err
		}
		_, changed, err := turn(l, node)
		if err != nil {
			return err
		}
		select {
		case event := <-changed:
			if event.Err != nil {
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// "A watch can get lost, so I look now and then to be sure."
func looksNowAndThen(l *right, ctx context.Context, node string) error {
	for {
		first, changed, err := turn(l, node)
		if first || err != nil {
			return err
		}
		select {
		case event := <-changed:
			if event.Err != nil {
				return event.Err
			}
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
