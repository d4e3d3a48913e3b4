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

// wrong is this step's lock, open in the places where the mistakes are made.
type wrong struct {
	*right
	wait  func(l *right, ctx context.Context, node string) error // until it is our turn
	leave func(l *right, node string) error                      // when the wait has failed
}

func (l wrong) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := l.wait(l.right, ctx, node); err != nil {
		return errors.Join(err, l.leave(l.right, node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// before is the path of the znode before ours, "" when ours is the first.
func before(l *right, node string) (path string, err error) {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return "", err
	}
	name, err := predecessor(names, pathpkg.Base(node))
	if name == "" || err != nil {
		return "", err
	}
	return l.dir + "/" + name, nil
}

// told returns when the watch has fired.
func told(ctx context.Context, gone <-chan zk.Event) error {
	select {
	case event := <-gone:
		return event.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// W8, published in 基于zookeeper实现分布式锁(下) and in 51CTO, "ZooKeeper locks
// and Curator's source". The idea: I wait for the znode before mine to go; it
// has gone; it is my turn. But it may have been a waiter that died, and the
// holder is still inside.
func trustsTheWakeUp(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.GetW(path)
		if err == nil {
			return told(ctx, gone) // the mistake: it does not look again
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}

func TestW8TrustsTheWakeUp(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W8", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), trustsTheWakeUp, (*right).leave}
	}), lockcheck.WaiterCrash)
}

// W9, published in the same two and in nileader's article on the herd effect.
// The idea: exists() tells whether the znode is there and sets the watch. It
// sets one as well when the znode is not there, to tell when it is made, which
// never happens: the watch stays.
func asksIfItExists(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		there, _, gone, err := l.conn.ExistsW(path) // the mistake
		if there {
			err = told(ctx, gone)
		}
		if err != nil {
			return err
		}
	}
}

func TestW9AsksIfItExists(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W9", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), asksIfItExists, (*right).leave}
	}), lockcheck.NoWatchLeft)
}

// W12, published in 51CTO, "ZooKeeper locks and Curator's source". The idea:
// the time is up, so tell the caller. The znode is forgotten; it comes to the
// front of the queue, and everyone behind it waits for a client that has given
// up.
func forgetsItsZnode(*right, string) error { return nil } // the mistake: it does not delete it

func TestW12ForgetsItsZnode(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W12", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), (*right).wait, forgetsItsZnode}
	}), lockcheck.GivingUp)
}
