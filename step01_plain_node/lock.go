// Package plainnode is step 1: one znode is the lock. The client that creates it
// holds the lock, and deletes it to release the lock. A client that finds the znode
// tries again a little later.
//
// It is an exclusive lock and nothing more. With New a crash leaves it locked
// forever. With both New and NewEphemeral every waiter polls, there is no queue,
// and anyone can release the lock.
package plainnode

import (
	"context"
	"errors"
	pathpkg "path"
	"time"

	"github.com/go-zookeeper/zk"
)

// pollInterval is how long a waiter pauses between two tries.
const pollInterval = 20 * time.Millisecond

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
type Lock struct {
	conn *zk.Conn
	path string
	mode int32         // of the znode that is the lock
	poll time.Duration // the pause between two tries
}

// New returns the lock whose znode is path, an absolute path below the root
// such as /locks/orders. It sends nothing: Lock reports a bad argument.
func New(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, path: path, mode: zk.FlagPersistent, poll: pollInterval}
}

// NewEphemeral returns the same lock on a znode that the server deletes when
// its creator's session ends, as it does after a crash.
func NewEphemeral(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, path: path, mode: zk.FlagEphemeral, poll: pollInterval}
}

// Lock blocks until this client has created the znode. It creates missing
// parents.
//
// When ctx ends first, Lock returns ctx's error and leaves nothing behind. If a
// request is on its way, Lock first waits for its reply. Any other error of
// ZooKeeper also ends the wait, and Lock returns it. After
// zk.ErrConnectionClosed it is unknown whether the znode was created.
func (l *Lock) Lock(ctx context.Context) error {
	if err := check(ctx, l.conn, l.path); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return failed("lock", l.path, err)
		}
		err := create(l.conn, l.path, l.mode)
		if err == nil {
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			return failed("lock", l.path, err)
		}
		select {
		case <-time.After(l.poll):
		case <-ctx.Done(): // the loop's first statement returns the reason
		}
	}
}

// Unlock deletes the znode, no matter who created it. It returns zk.ErrNoNode
// when the lock is free.
func (l *Lock) Unlock() error {
	if err := check(context.Background(), l.conn, l.path); err != nil {
		return err
	}
	return failed("unlock", l.path, l.conn.Delete(l.path, -1))
}

// create creates the znode at path, and its missing parents.
func create(conn *zk.Conn, path string, mode int32) error {
	_, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return create(conn, path, mode)
}
