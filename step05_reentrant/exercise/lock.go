// Package reentrant is step 5, for you to write. The starter is step 4's lock with one change: New
// takes a Session in place of a connection. With FROM=5.5, this is our lock of that stair instead.
//
//	go test ./yours/step5    what your lock can do, and what it cannot do yet
//	make hint STEP=5         the next hint
//
//	lock.go      the lock: yours to change, one stair after the other
//	session.go   given, and yours to change from 5.7 on: a connection that knows whether it was closed
//	errors.go    given: the errors, and the checks of the arguments
package reentrant

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

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
type Lock struct {
	s   *Session
	dir string

	mu   sync.Mutex
	node string // the znode that holds the lock; "" while this client does not
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named lock-<number> are the queue; others are
// ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
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
	if err := check(ctx, l.s, l.dir); err != nil {
		return err
	}
	node, err := create(l.s.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
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

// wait returns when node is the first in the queue. After a wake-up it lists
// again: the predecessor may have been a waiter that crashed.
func (l *Lock) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.s.conn.Children(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(node))
		if before == "" || err != nil {
			return err
		}
		// GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case event := <-gone:
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
	err := l.s.conn.Delete(node, -1)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.node == "" {
		return failed("unlock", l.dir, ErrNotHeld)
	}
	node := l.node
	err := l.s.conn.Delete(node, -1)
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

// predecessor names the znode directly before mine in the queue, "" when mine
// is the first. It returns an error when mine is not in the list: then we have
// no place in the queue.
func predecessor(names []string, mine string) (string, error) {
	if !slices.Contains(names, mine) {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	own, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		n, ok := number(name)
		isBefore := ok && n < own
		isNearest := before == "" || n > highest
		if isBefore && isNearest {
			before, highest = name, n
		}
	}
	return before, nil
}

// number returns the number in a znode's name. The queue compares numbers, never
// names. For a child that is not part of the queue, ok is false.
func number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "lock-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}
