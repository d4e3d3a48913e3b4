// Package childrenwatch is step 3, for you to write: the queue of step 2, waited for
// with a watch. Whoever is not the lowest watches the directory's children and
// sleeps until they change.
//
// What stands here is step 2. It is right, but every waiter keeps asking.
//
//	go test ./yours/step3    what your lock can do, and what not yet
//	make hint STEP=3         the next hint
//
// errors.go is given.
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
	"time"

	"github.com/go-zookeeper/zk"
)

// pollInterval is how long a waiter rests between two looks.
const pollInterval = 20 * time.Millisecond

// ErrNotHeld is what Unlock answers when this client does not hold the lock.
var ErrNotHeld = errors.New("the lock is not held by this client: each Unlock needs a Lock before it")

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
type Lock struct {
	conn *zk.Conn
	dir  string
	poll time.Duration

	mu   sync.Mutex
	node string // the znode that holds the lock; "" while this client does not
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named lock-<number> are the queue; others are
// ignored.
func New(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, dir: path, poll: pollInterval}
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

// wait returns when node is the first in the queue, asking again and again.
//
// TODO 1: let the server tell: ChildrenW lists, and sets a watch by the same
// request.
// 待办 1：让服务器通知：ChildrenW 列出目录，并用同一个请求设置监听器。
// TODO 2: sleep until the watch fires, in place of the rest. A watch fires once.
// 待办 2：不再等 20 ms，而是睡眠，直到监听器触发。一个监听器只触发一次。
// TODO 3: an event can carry an error, too. What has happened then? (The next list
// would fail as well: this only gives the caller a better error.)
// 待办 3：事件也可能带着错误。那时发生了什么？（下一次列目录也会失败：这一步只是让调用者得到更好的错误。）
func (l *Lock) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return err
		}
		if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
			return err
		}
		select {
		case <-time.After(l.poll):
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

// isFirst tells whether mine has the lowest number in the queue. It is an
// error when mine is not there at all: then nothing holds our place.
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

// number reads a queue znode's number out of its name. Numbers are compared,
// never names; ok is false for a child that is not of the queue.
func number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "lock-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}
