package childrenwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"

	"github.com/go-zookeeper/zk"
)

// Watched is step 1's lock with a watch in place of the polling: one ephemeral znode
// is the lock, and there is no queue. It is here for comparison. Its waiters watch the
// children of the znode's parent, such as /locks for /locks/orders. A release wakes all
// of them, as in this step's lock, and then each of them writes.
type Watched struct {
	conn *zk.Conn
	path string
}

// NewWatched returns the lock whose znode is path, an absolute path below the root
// such as /locks/orders.
func NewWatched(conn *zk.Conn, path string) *Watched {
	return &Watched{conn: conn, path: path}
}

// Lock blocks until this client has created the znode. When ctx ends first, Lock
// returns ctx's error and leaves nothing behind.
func (w *Watched) Lock(ctx context.Context) error {
	if err := check(ctx, w.conn, w.path); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return failed("lock", w.path, err)
		}
		_, err := create(w.conn, w.path, zk.FlagEphemeral)
		if err == nil {
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			return failed("lock", w.path, err)
		}
		if err := w.sleep(ctx); err != nil {
			return failed("lock", w.path, err)
		}
	}
}

// sleep returns when a child of the parent was created or deleted, or when ctx has ended.
func (w *Watched) sleep(ctx context.Context) error {
	names, _, changed, err := w.conn.ChildrenW(pathpkg.Dir(w.path))
	if err != nil && !errors.Is(err, zk.ErrNoNode) { // without a directory the list is empty
		return err
	}
	if !slices.Contains(names, pathpkg.Base(w.path)) { // deleted meanwhile: try at once
		return nil
	}
	select {
	case <-changed: // or our session has ended: Lock tries again in both cases
	case <-ctx.Done():
	}
	return nil
}

// Unlock deletes the znode, no matter who created it. It returns zk.ErrNoNode when
// the lock is free.
func (w *Watched) Unlock() error {
	if err := check(context.Background(), w.conn, w.path); err != nil {
		return err
	}
	return failed("unlock", w.path, w.conn.Delete(w.path, -1))
}
