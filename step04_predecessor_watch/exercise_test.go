package predecessorwatch

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	starter "zklock/step04_predecessor_watch/exercise"
)

// The check of the exercise accepts this step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	over := func(name string, newLock func(*zk.Conn, string) wrong) property.Subject {
		s := property.Over(name, newLock)
		s.NotHeld = ErrNotHeld
		return s
	}
	exercise.Accepts(t, exercise.Step4, lock)
	exercise.Accepts(t, exercise.Step4, over("sorts the queue", waits(leaving(sortsTheQueue))))
	exercise.Accepts(t, exercise.Step4, over("asks first", waits(leaving(asksFirst))))
	exercise.Accepts(t, exercise.Step4, over("watches the children of the one before", waits(leaving(watchesItsChildren))))
	exercise.Accepts(t, exercise.Step4, over("looks again after any event", waits(leaving(looksAgainAfterAnyEvent))))

	exercise.Refuses(t, exercise.Step4, property.WakesOne, property.Over("the starter", starter.New))
	exercise.Refuses(t, exercise.Step4, property.WaiterCrash, over("W8", w8))
	exercise.Refuses(t, exercise.Step4, property.NoWatchLeft, over("W9", w9))
	exercise.Refuses(t, exercise.Step4, property.GivingUp, over("W12", w12))
	exercise.RefusesAtOnce(t, exercise.Step4, over("W15", w15))
	exercise.RefusesAtOnce(t, exercise.Step4, property.Over("W18", newTries))
	exercise.Refuses(t, exercise.Step4, property.OneHolder, over("W19", w19))
	exercise.RefusesAtOnce(t, exercise.Step4, over("W20", w20))
	exercise.RefusesSomewhere(t, exercise.Step4, over("W21", w21)) // mostly at the property of the missed release
	exercise.Refuses(t, exercise.Step4, property.FailsClean, over("W22", w22))
	exercise.Refuses(t, exercise.Step4, property.ReleaseSeen, over("W24", w24))
	exercise.Refuses(t, exercise.Step4, property.WakesOne, over("watches the holder", waits(leaving(watchesTheHolder))))
	exercise.RefusesAtOnce(t, exercise.Step4, over("watches its own znode", waits(leaving(watchesItself))))

	exercise.RefusesByOne(t, exercise.Step4, []exercise.Wrong{
		{By: property.WakesOne, Lock: over("the second waiter watches the holder", waits(leaving(watchesTheHolderToo)))},
		{By: property.ArrivalWakesNobody, Lock: over("tells the holder that it waits", waits(leaving(tellsTheHolder)))},
		{By: property.WakesOneLater, Lock: over("then watches the first", waits(leaving(thenWatchesTheFirst)))},
	}...)
}

// In a queue that is sorted by the numbers, the znode before mine is the one to watch.
func sortsTheQueue(l *right, ctx context.Context, node string) error {
	for {
		queue, err := sorted(l)
		if err != nil {
			return err
		}
		at := slices.Index(queue, pathpkg.Base(node))
		if at < 0 {
			return fmt.Errorf("own znode %s: %w", node, zk.ErrNoNode)
		}
		if at == 0 {
			return nil
		}
		if err := watch(l, ctx, l.dir+"/"+queue[at-1]); err != nil {
			return err
		}
	}
}

// exists sets no watch when it is asked without one. The read after it does.
func asksFirst(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		there, _, err := l.conn.Exists(path)
		if there && err == nil {
			err = watch(l, ctx, path)
		}
		if err != nil {
			return err
		}
	}
}

// "I wait for the lock, and the first in the queue has it."
func watchesTheHolder(l *right, ctx context.Context, node string) error {
	for {
		queue, err := sorted(l)
		if err != nil {
			return err
		}
		own := pathpkg.Base(node)
		if !slices.Contains(queue, own) {
			return fmt.Errorf("own znode %s: %w", own, zk.ErrNoNode)
		}
		if queue[0] == own {
			return nil
		}
		if err := watch(l, ctx, l.dir+"/"+queue[0]); err != nil {
			return err
		}
	}
}

// "The server notifies me when something happens to my znode."
func watchesItself(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		if err := watch(l, ctx, node); err != nil {
			return err
		}
	}
}

// Our predecessor has no children, and its deletion also fires a watch on its children.
func watchesItsChildren(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.ChildrenW(path)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if err := told(ctx, gone); err != nil {
			return err
		}
	}
}

// When the session has ended, the list returns an error.
func looksAgainAfterAnyEvent(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.GetW(path)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// "The znode before mine is deleted, and it was not the holder's. Now I wait for the holder."
func thenWatchesTheFirst(l *right, ctx context.Context, node string) error {
	path, err := before(l, node)
	if path == "" || err != nil {
		return err
	}
	if err := watch(l, ctx, path); err != nil {
		return err
	}
	return watchesTheHolder(l, ctx, node)
}

// "I am the next but one, so I also watch the holder." A client that becomes the next but one later does not.
func watchesTheHolderToo(l *right, ctx context.Context, node string) error {
	var holderGone <-chan zk.Event // nil never fires
	for isNew := true; ; isNew = false {
		queue, err := sorted(l)
		if err != nil {
			return err
		}
		at := slices.Index(queue, pathpkg.Base(node))
		switch {
		case at < 0:
			return zk.ErrNoNode
		case at == 0:
			return nil
		case at == 2 && isNew:
			_, _, holderGone, err = l.conn.GetW(l.dir + "/" + queue[0])
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + queue[at-1])
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case event := <-gone:
			if event.Err != nil {
				return event.Err
			}
		case event := <-holderGone:
			if event.Err != nil {
				return event.Err
			}
			holderGone = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sorted is the queue, in the order of its numbers.
func sorted(l *right) ([]string, error) {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, isPlace := number(name)
		return !isPlace
	})
	slices.SortFunc(names, zktest.BySequence)
	return names, nil
}

// "The holder should know how many wait." A write into the holder's znode wakes the client behind it.
func tellsTheHolder(l *right, ctx context.Context, node string) error {
	queue, err := sorted(l)
	if err != nil {
		return err
	}
	if waits := len(queue) > 0 && queue[0] != pathpkg.Base(node); waits {
		_, err = l.conn.Set(l.dir+"/"+queue[0], []byte("somebody waits"), -1)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) { // the holder's znode may be deleted
		return err
	}
	return l.wait(ctx, node)
}
