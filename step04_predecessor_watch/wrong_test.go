package predecessorwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
)

// right is this step's lock, as a part of the wrong ones.
type right = Lock

// queueUp is Lock with another way to wait, or another thing to do when the
// wait has failed.
func queueUp(ctx context.Context, l *right, wait func(context.Context, string) error, giveUp func(string) error) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := wait(ctx, node); err != nil {
		return errors.Join(err, giveUp(node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// W8, published in 基于zookeeper实现分布式锁(下) and in 51CTO, "ZooKeeper locks
// and Curator's source". The idea: I wait for the znode before mine to go; it
// has gone; it is my turn. But it may have been a waiter that died, and the
// holder is still inside.
type trustsTheWakeUp struct{ *right }

func (l trustsTheWakeUp) Lock(ctx context.Context) error {
	return queueUp(ctx, l.right, l.wait, l.leave)
}

func (l trustsTheWakeUp) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(node))
		if before == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case event := <-gone:
			return event.Err // the mistake: it does not look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestW8TrustsTheWakeUp(t *testing.T) {
	t.Parallel()
	lock := lockcheck.Over("W8", func(conn *zk.Conn, path string) trustsTheWakeUp { return trustsTheWakeUp{New(conn, path)} })
	lockcheck.Fails(t, lock, lockcheck.WaiterCrash)
}

// W9, published in the same two and in nileader's article on the herd effect.
// The idea: exists() tells whether the znode is there and sets the watch. It
// sets one as well when the znode is not there, to tell when it is made, which
// never happens: the watch stays.
type asksIfItExists struct{ *right }

func (l asksIfItExists) Lock(ctx context.Context) error {
	return queueUp(ctx, l.right, l.wait, l.leave)
}

func (l asksIfItExists) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(node))
		if before == "" || err != nil {
			return err
		}
		there, _, gone, err := l.conn.ExistsW(l.dir + "/" + before) // the mistake
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		select {
		case event := <-gone:
			if event.Err != nil {
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestW9AsksIfItExists(t *testing.T) {
	t.Parallel()
	lock := lockcheck.Over("W9", func(conn *zk.Conn, path string) asksIfItExists { return asksIfItExists{New(conn, path)} })
	lockcheck.Fails(t, lock, lockcheck.NoWatchLeft)
}

// W12, published in 51CTO, "ZooKeeper locks and Curator's source". The idea:
// the time is up, so tell the caller. The znode is forgotten; it comes to the
// front of the queue, and everyone behind it waits for a client that has given
// up.
type forgetsItsZnode struct{ *right }

func (l forgetsItsZnode) Lock(ctx context.Context) error {
	forget := func(string) error { return nil } // the mistake: not l.leave
	return queueUp(ctx, l.right, l.wait, forget)
}

func TestW12ForgetsItsZnode(t *testing.T) {
	t.Parallel()
	lock := lockcheck.Over("W12", func(conn *zk.Conn, path string) forgetsItsZnode { return forgetsItsZnode{New(conn, path)} })
	lockcheck.Fails(t, lock, lockcheck.GivingUp)
}
