// Package reentrant is step 5, for you to write: the queue of step 4, with an answer to what
// fails around it: a reply is lost, the holder's own code locks again, or the connection breaks.
//
// This starter is the lock of step 4 in a new form: New takes a Session in place of a
// connection, and Lock returns a Hold, which deletes only its own znode. TryLock is new, and does
// not wait. The TODOs have the numbers of the chapter's stairs. Begin with TODO 1, in join.
//
//	go test ./yours/step5    what your lock can do, and what it cannot do yet
//	make hint STEP=5         the next hint
//
// The other files:
//
//	hold.go      what Lock returns; TODO 4, 6 and 7 are also there
//	session.go   the connection; TODO 3 and 6 are also there
//	errors.go    the errors; it is given
package reentrant

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one process. It is safe for use by many goroutines: each of
// them queues up with a znode of its own.
type Lock struct {
	s   *Session
	dir string
}

// place is our znode in the queue.
type place struct {
	node string
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named lock-<number> are the queue; others are
// ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until this call's znode is the first in the queue, and returns the hold. It
// creates the directory and its parents where they are missing.
//
// ctx bounds the wait, and nothing else. When it ends, Lock deletes its znode and returns
// why. If a request is on its way, Lock first waits for its reply. Any other error of
// ZooKeeper also ends the wait.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) { return l.lock(ctx, true) }

// TryLock does not wait for others: it returns ErrLocked when somebody is before us in the queue.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, false) }

// TODO 4: does ctx carry a hold of this lock? Then its holder is calling.
// 待办 4：ctx 带着这把锁的 hold 吗？如果带着，调用者就是持有者。
// TODO 5: wait may find that our znode was deleted. That is no reason to give up.
// 待办 5：wait 可能发现自己的 znode 没了。这不是放弃的理由。
func (l *Lock) lock(ctx context.Context, mayWait bool) (*Hold, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	mine, err := l.join()
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	h, err := l.wait(ctx, mine, mayWait)
	if err != nil {
		return nil, failed("lock", l.dir, errors.Join(err, l.leave(mine)))
	}
	return h, nil
}

// join creates our znode.
//
// TODO 1: without an answer (mustRetry) nobody knows whether the znode exists. Give it a name that
// you recognize, _c_<random number>-lock-<number>, let number read such names, and look for yours in the list.
// 待办 1：没有响应（mustRetry），就没人知道 znode 有没有建成。给它一个认得出的名字
// _c_<随机数>-lock-<序号>，让 number 认得这种名字，再到列表里找自己的。
// TODO 2: does the server that lists know of the create (Sync)? Which session created the znode?
// 待办 2：列目录的这台服务器知道那次 create 吗（Sync）？znode 是哪个会话建的？
func (l *Lock) join() (place, error) {
	node, err := create(l.s.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	return place{node: node}, err
}

// wait returns the hold when our znode is the first in the queue. After a wake-up it lists
// again: the predecessor may have been a waiter that crashed.
//
// TODO 5: a request without an answer, or the end of the session, is no reason to give up.
// 待办 5：请求没有响应，或者会话结束，都不是放弃的理由。
// TODO 6: no connection, no hold. Which connection, and when do you take it?
// 待办 6：连接断了，锁就算丢了。是哪一条连接？什么时候取？
// TODO 7: the list that shows our turn also returns a number that only ever grows.
// 待办 7：显示轮到自己的那份列表，还带来一个只增不减的数。
func (l *Lock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	for ctx.Err() == nil {
		names, _, err := l.s.conn.Children(l.dir)
		if err != nil {
			return nil, err
		}
		before, err := predecessor(names, pathpkg.Base(mine.node))
		if err != nil {
			return nil, err
		}
		if before == "" {
			return newHold(l, mine), nil
		}
		if !mayWait {
			return nil, ErrLocked
		}
		// GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case event := <-gone:
			if event.Err != nil { // the session has ended, and the watch with it
				return nil, event.Err
			}
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// leave deletes the znode of a waiter that has given up.
//
// TODO 3: without an answer nobody knows whether the znode still exists. Retry until you know that
// it is deleted, also in Unlock. Must the caller of Unlock wait for all retries? And that of a Lock that gives up?
// 待办 3：没有响应，就没人知道 znode 还在不在。要一直重试，直到确定它已删除，Unlock 也一样。Unlock 的调用者要等到那时吗？放弃等待的 Lock 呢？
func (l *Lock) leave(mine place) error {
	err := l.s.conn.Delete(mine.node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) { // or gone with its session
		return nil
	}
	return fmt.Errorf("leave the queue: delete %s: %w", mine.node, err)
}

// Unlock deletes the znode that holds the lock. It returns ErrNotHeld when it is called too
// often, and zk.ErrNoNode when the znode is gone: with its session, or deleted by somebody
// else, or by an earlier Unlock whose reply was lost. After any other error Unlock can be
// called again.
func (h *Hold) Unlock() error {
	if h == nil {
		return fmt.Errorf("zklock: unlock: %w", ErrNotHeld)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return failed("unlock", h.mine.node, ErrNotHeld)
	}
	err := h.lock.s.conn.Delete(h.mine.node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		h.count--
	}
	return failed("unlock", h.mine.node, err)
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
