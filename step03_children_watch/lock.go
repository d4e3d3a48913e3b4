// Package childrenwatch is step 3: the queue of step 2, with a watch in place of
// the polling. A client that is not the first watches the directory's children,
// and sleeps until they change.
//
// A waiter that sleeps sends no request. But a release or an arrival wakes every
// waiter, and each of them lists the whole directory to learn that it is not its
// turn: the herd effect.
package childrenwatch

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// ErrNotHeld is what Unlock returns when this client does not hold the lock.
var ErrNotHeld = errors.New("the lock is not held by this client: each Unlock needs a Lock before it")

// Lock is one lock, seen by one client. It is safe for use by many goroutines, except
// in one case: see Unlock.
type Lock struct {
	conn *zk.Conn
	dir  string

	mu   sync.Mutex
	node string // the znode that holds the lock; "" while this client does not
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named lock-<number> are the queue; others are
// ignored.
func New(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, dir: path}
}

// Lock blocks until this client's znode is the first in the queue. It creates
// the directory and its parents where they are missing.
//
// When ctx ends first, Lock tries once to delete its znode, and returns ctx's
// error. If a request is on its way, Lock first waits for its reply. Any other
// error of ZooKeeper also ends the wait. If the delete fails, Lock's error says
// so, and the znode may stay until the session ends. When the create returns
// zk.ErrConnectionClosed, it is unknown whether there is a znode to delete.
func (l *Lock) Lock(ctx context.Context) error {
	if err := check(ctx, l.conn, l.dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return failed("lock", l.dir, err)
	}
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return failed("lock", l.dir, err)
	}
	if err := l.wait(ctx, node); err != nil {
		return failed("lock", l.dir, errors.Join(err, l.leave(node)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// wait returns when node is the first in the queue. The server makes the list and
// sets the watch in one step, so no change is missed.
func (l *Lock) wait(ctx context.Context, node string) error {
	for {
		names, _, changed, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
			return err
		}
		select {
		case event := <-changed:
			if event.Err != nil { // the session has ended, or the client is closed
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave deletes the znode of a waiter that has given up.
func (l *Lock) leave(node string) error {
	err := l.conn.Delete(node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) { // or deleted with its session
		return nil
	}
	return fmt.Errorf("leave the queue: delete %s: %w", node, err)
}

// Unlock deletes the znode that holds the lock. It returns ErrNotHeld when
// this client does not hold the lock, and zk.ErrNoNode when the znode no longer
// exists: it was deleted with its session, by another client, or by an earlier
// Unlock whose reply was lost. After any other error Unlock can be called again,
// unless other goroutines use this Lock: if only the reply was lost, one of them may
// have the lock by now, and the second Unlock would release it.
func (l *Lock) Unlock() error {
	// mu is held during the delete: as soon as the znode is deleted, another goroutine may get
	// its turn, and the znode that it puts into l.node must not be overwritten with "".
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.node == "" {
		return failed("unlock", l.dir, ErrNotHeld)
	}
	node := l.node
	err := l.conn.Delete(node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.node = ""
	}
	return failed("unlock", node, err)
}

// create creates a znode and returns its path, with the number that the server
// added. It creates parents only when the server replies that they are missing:
// creating them each time would cost one more write each time.
func create(conn *zk.Conn, path string, mode int32) (string, error) {
	made, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return made, err
	}
	_, err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return create(conn, path, mode)
}

// isFirst reports whether mine has the lowest number in the queue. It returns
// an error when mine is not in the list: then we have no place in the queue.
func isFirst(names []string, mine string) (bool, error) {
	if !slices.Contains(names, mine) {
		return false, fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	own, _ := number(mine)
	for _, name := range names {
		if n, ok := number(name); ok && n < own {
			return false, nil
		}
	}
	return true, nil
}

// number returns the number in a znode's name. The queue compares numbers, never
// names. For a child that is not part of the queue, ok is false.
func number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "lock-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}
