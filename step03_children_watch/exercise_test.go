package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	starter "zklock/step03_children_watch/exercise"
)

// waiting is this step's lock, but it waits in another way.
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

	exercise.Accepts(t, exercise.Step3, waits("sorts the queue", sortsTheQueue))
	exercise.Accepts(t, exercise.Step3, waits("a goroutine tells it by a channel", isToldByAGoroutine))
	exercise.Accepts(t, exercise.Step3, waits("looks again after any event", looksAgainAfterAnyEvent))
	watchesFirst := property.Over("sets a watch before the create, too", newWatchesFirst)
	watchesFirst.NotHeld = ErrNotHeld
	exercise.Accepts(t, exercise.Step3, watchesFirst)

	exercise.Refuses(t, exercise.Step3, property.SilentWait, property.Over("the starter", starter.New))
	makesEachTime := property.Over("makes the directory each time", newMakesEachTime)
	makesEachTime.NotHeld = ErrNotHeld
	exercise.Refuses(t, exercise.Step3, property.MadeOnce, makesEachTime)
	exercise.RefusesAtOnce(t, exercise.Step3, property.Over("W13", newLateLatch))
	exercise.Refuses(t, exercise.Step3, property.OneHolder, waits("trusts the wake-up", trustsTheWakeUp))
	exercise.RefusesSomewhere(t, exercise.Step3, waits("lists, and then watches", listsAndThenWatches))

	leavesAWatch := property.Over("the holder watches for a sign to stop", newWatchesForASign)
	leavesAWatch.NotHeld = ErrNotHeld
	exercise.RefusesByOne(t, exercise.Step3, []exercise.Wrong{
		{By: property.SilentWait, Lock: waits("looks now and then, too", looksNowAndThen)},
		{By: property.NoWatchLeft, Lock: leavesAWatch},
		{By: property.ReleasedWhileCutOff, Lock: givesUpWithItsLine()},
	}...)
}

// turn reports whether it is the turn of a znode, and returns the watch that was set with the list.
func turn(l *right, node string) (first bool, changed <-chan zk.Event, err error) {
	names, _, changed, err := l.conn.ChildrenW(l.dir)
	if err != nil {
		return false, nil, err
	}
	first, err = isFirst(names, pathpkg.Base(node))
	return first, changed, err
}

// Each wake-up calls the function once more, and it lists again.
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

// Right: in a queue that is sorted, the first is the holder.
func sortsTheQueue(l *right, ctx context.Context, node string) error {
	for {
		names, _, changed, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		queue := slices.DeleteFunc(names, func(name string) bool {
			_, isPlace := number(name)
			return !isPlace
		})
		slices.SortFunc(queue, zktest.BySequence)
		at := slices.Index(queue, pathpkg.Base(node))
		if at < 0 {
			return zk.ErrNoNode
		}
		if at == 0 {
			return nil
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

// Right: the waiter sleeps on a channel, and a goroutine lists.
func isToldByAGoroutine(l *right, ctx context.Context, node string) error {
	done := make(chan error, 1)
	go func() { done <- waitsByRecursion(l, ctx, node) }()
	return <-done
}

// Right: when the session has ended, the list returns an error.
func looksAgainAfterAnyEvent(l *right, ctx context.Context, node string) error {
	for {
		first, changed, err := turn(l, node)
		if first || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchesFirst is right: it sets a watch before it creates a znode, and one more list costs little.
type watchesFirst struct{ *right }

func newWatchesFirst(conn *zk.Conn, path string) watchesFirst { return watchesFirst{New(conn, path)} }

func (l watchesFirst) Lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, _, _, err := l.conn.ChildrenW(l.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return l.right.Lock(ctx)
}

// "First of all, the directory must exist."
type makesEachTime struct{ *right }

func newMakesEachTime(conn *zk.Conn, path string) makesEachTime {
	return makesEachTime{New(conn, path)}
}

func (l makesEachTime) Lock(ctx context.Context) error {
	if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return l.right.Lock(ctx)
}

// "A client that creates the znode stop asks the holder to stop." No client does, and the watch stays.
type watchesForASign struct{ *right }

func newWatchesForASign(conn *zk.Conn, path string) watchesForASign {
	return watchesForASign{New(conn, path)}
}

func (l watchesForASign) Lock(ctx context.Context) error {
	if err := l.right.Lock(ctx); err != nil {
		return err
	}
	_, _, _, err := l.conn.ExistsW(l.dir + "/stop")
	if err != nil {
		return errors.Join(err, l.right.Unlock())
	}
	return nil
}

// givesUpWithItsLine makes a lock whose waiters give up when the
// connection breaks: "A broken connection brings no notification."
func givesUpWithItsLine() property.Subject {
	s := property.Subject{Name: "gives up when its connection breaks", NotHeld: ErrNotHeld}
	s.Open = func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
		line := &line{}
		counts := zk.WithEventCallback(func(event zk.Event) {
			if event.State == zk.StateDisconnected {
				line.broken.Add(1)
			}
		})
		conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog), counts)
		line.conn = conn
		return line, err
	}
	s.Ways = func(session zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
		line := session.(*line)
		return property.Over(s.Name, func(conn *zk.Conn, path string) waiting {
			return waiting{New(conn, path), line.waits}
		}).Ways(session, path)
	}
	return s
}

// line is a connection that counts how often it has broken.
type line struct {
	conn   *zk.Conn
	broken atomic.Int64
}

func (s *line) Conn() *zk.Conn { return s.conn }
func (s *line) Close()         { s.conn.Close() }

func (s *line) waits(l *right, ctx context.Context, node string) error {
	begin := s.broken.Load()
	for {
		first, changed, err := turn(l, node)
		if first || err != nil {
			return err
		}
		for isWoken := false; !isWoken; {
			select {
			case event := <-changed:
				if event.Err != nil {
					return event.Err
				}
				isWoken = true
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			if s.broken.Load() > begin {
				return zk.ErrConnectionClosed
			}
		}
	}
}
