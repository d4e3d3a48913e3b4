// Package predecessorwatch is step 4: the queue of step 3, where each waiter
// watches only the znode right before its own. A release wakes one client, an
// arrival nobody. It is the recipe of ZooKeeper's own documentation, but for two
// things. The recipe watches with exists, and this lock with getData. And the
// recipe protects itself against a lost reply to create, as step 5 does.
//
// We know of no mistake in the queue itself. What is left fails around it: a
// reply is lost, a client gives up while it is cut off, the holder locks again,
// or its session ends while it works and nobody tells it.
package predecessorwatch

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

// ErrNotHeld is what Unlock answers when this client does not hold the lock.
var ErrNotHeld = errors.New("the lock is not held by this client: each Unlock needs a Lock before it")

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
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

// Lock blocks until this client's znode is the first in the queue. The
// directory and its parents are created where they are missing.
//
// When ctx ends first, Lock tries once to delete its znode, and returns ctx's
// error. It does so between two requests: one that is on its way is waited for.
// Any other error of ZooKeeper also ends the wait. If the delete fails, Lock
// says so, and the znode stays until the session ends. When the create itself
// answers zk.ErrConnectionClosed, nobody knows whether there is a znode to delete.
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

// wait returns when node is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died.
func (l *Lock) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(node))
		if before == "" || err != nil {
			return err
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case event := <-gone:
			if event.Err != nil { // the session has ended, and the watch with it
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
	if err == nil || errors.Is(err, zk.ErrNoNode) { // or gone with its session
		return nil
	}
	return fmt.Errorf("leave the queue: delete %s: %w", node, err)
}

// Unlock deletes the znode that holds the lock. It returns ErrNotHeld when
// this client does not hold the lock, and zk.ErrNoNode when the znode is gone:
// with its session, or deleted by somebody else, or by an earlier Unlock whose
// reply was lost. After any other error Unlock can be called again.
func (l *Lock) Unlock() error {
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

// create makes a znode and returns its path, with the number that the server
// gave it. Parents are made only when the server says that they are missing:
// asking for them each time would be a write each time.
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

// predecessor names the znode right before mine in the queue, "" when mine is
// the first. It is an error when mine is not there at all: then nothing holds
// our place.
func predecessor(names []string, mine string) (string, error) {
	if !slices.Contains(names, mine) {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	own, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		if n, ok := number(name); ok && n < own && (before == "" || n > highest) {
			before, highest = name, n
		}
	}
	return before, nil
}

// number reads a queue znode's number out of its name. Numbers are compared,
// never names; ok is false for a child that is not of the queue.
func number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "lock-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}
