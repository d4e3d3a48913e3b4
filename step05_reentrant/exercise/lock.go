// Package exercise is step 5, for you to write: the queue of step 4, made into a
// lock to rely on. A lost reply does no harm, the holder may lock again, a
// holder that has lost the lock is told, and each tenure has a fencing token.
//
// What stands here, and in hold.go, is part 0: step 4 over a Session, with a
// context as the hold. The TODOs are numbered as the parts of the chapter are.
//
//	make exercise STEP=05    which part you are in, and what your lock can do
//	make hint STEP=05        the next hint
//
// errors.go is given, and so is the Session, which is the step's own. Your lock
// needs these of it:
//
//	Conn()        the connection: create, list, watch and delete over it
//	Retry(err)    tells whether a request was not answered, and is to be made again; it rests
//	              for a millisecond
//	Ask()         makes a write in vain: a read after it sees what was decided before
//	Closed()      tells whether the session has been closed
//	Go(f)         runs f in the background: Close waits for it
//	Lease()       a context that ends when the session cannot be relied on any more
//	Keep(lease)   makes the lease go on until you call rest, which it returns
//	Prove(write)  makes one of your writes; a short hold then needs no Ask of its own
package exercise

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one process. It is safe for use by many goroutines:
// each of them stands in the queue with a znode of its own.
type Lock struct {
	s   *Session
	dir string
}

// place is a znode in the queue.
type place struct {
	node string
}

// New returns the lock whose directory is path, absolute and below the root, such
// as /locks/orders. It sends nothing: Lock reports a bad argument. The children named
// …lock-<number> are the queue, also zk.Lock's and Curator's; others are ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context
// that is the hold. Unlock needs it, so a stranger cannot unlock.
//
// The context ends with ctx: a deadline for the waiting belongs in TryLock.
//
// When ctx ends first, Lock deletes its znode and returns ctx's error.
// Any other error ends the wait likewise.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, ctx, false)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within
// wait. With 0 it asks once, and does not wait behind anybody.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if ctx == nil || wait <= 0 {
		return l.acquire(ctx, ctx, true)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
	defer stop()
	return l.acquire(ctx, waiting, false)
}

// stand creates our znode and waits until it is the first.
func (l *Lock) stand(ctx context.Context, once bool) (place, error) {
	p, err := l.enqueue(ctx)
	if err == nil {
		err = l.wait(ctx, &p, once)
	}
	if err != nil && p.node != "" {
		if left := l.leave(p); !errors.Is(left, ErrLost) {
			err = errors.Join(err, left)
		}
	}
	return p, err
}

// enqueue creates our znode.
//
// TODO 1: when the create was not answered (Retry), nobody knows whether there
// is a znode. Give it a name by which you know it again, _c_<guid>-lock-<number>,
// and look for it, after an Ask.
// 待办 1：create 没有应答时（Retry），没有人知道有没有 znode。给它一个认得出的名字
// _c_<guid>-lock-<number>，先 Ask，再去找它。
func (l *Lock) enqueue(context.Context) (p place, err error) {
	p.node, err = create(l.s.Conn(), l.dir+"/lock-", zk.FlagEphemeralSequential)
	return p, err
}

// wait returns when our znode is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died.
//
// TODO 1: a list without an answer (Retry) is no reason to give up the place.
// 待办 1：列目录没有应答（Retry），不是放弃位置的理由。
// TODO 4: which lease does the hold hang on? Take it (Lease) before the list that
// says that you are the first. And if the session has ended, and our znode with it,
// take a new place. Let Prove make your create and your delete.
// 待办 4：持锁靠的是哪一份租约？在得知自己是第一个的那次列出之前取（Lease）。
// 如果会话已结束，znode 随之没了，就重新排队。create 和 delete 都经 Prove 去做。
// TODO 5: that list brings a number with it that only ever grows.
// 待办 5：那次列出带来一个只增不减的数字。
func (l *Lock) wait(ctx context.Context, p *place, once bool) error {
	conn := l.s.Conn()
	for ctx.Err() == nil {
		names, _, err := conn.Children(l.dir)
		before := ""
		if err == nil {
			before, err = predecessor(names, pathpkg.Base(p.node))
		}
		if err != nil {
			return err
		}
		if before == "" {
			return nil
		}
		if once {
			return ErrLocked
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-gone: // or the session has ended: the next look tells
		case <-ctx.Done():
		}
	}
	return ended(ctx)
}

// leave deletes our znode: ErrLost means that it was gone before.
//
// TODO 2: when the delete was not answered (Retry), nobody knows whether the znode
// is still there. Go on until you know that it is gone.
// 待办 2：delete 没有应答时（Retry），没有人知道 znode 还在不在。一直做到确定它没了。
func (l *Lock) leave(p place) error {
	err := l.s.Conn().Delete(p.node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return ErrLost
	}
	return err
}

// Unlock ends a hold, also one whose context has ended: it deletes the
// znode. It returns ErrNotHeld when held does not hold this lock (any more), and
// ErrLost when the znode was gone. After any other error,
// such as zk.ErrNoAuth, Unlock can be called again.
//
// TODO 2: wait for leave no longer than one time-out of the session.
// 待办 2：等 leave 不超过一个会话超时。
// TODO 4: the context has to end here, before leave, and needs no Keep any more.
// 待办 4：context 必须在这里结束，早于 leave；此后也不再需要 Keep。
func (l *Lock) Unlock(held context.Context) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	h, err := exit(held, l)
	if h == nil {
		return failed("unlock", l.dir, err)
	}
	return failed("unlock", h.node, h.released(l.leave(h.place)))
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
	own, _ := number(mine)
	before, highest, present := "", 0, false
	for _, name := range names {
		if n, ok := number(name); ok && n < own && (before == "" || n > highest) {
			before, highest = name, n
		}
		present = present || name == mine
	}
	if !present {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	return before, nil
}

// number reads a queue znode's number, behind the last "lock-" of its name. Numbers
// are compared, never names; ok is false for a child that is not of the queue.
func number(name string) (n int, ok bool) {
	at := strings.LastIndex(name, "lock-")
	if at < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(name[at+len("lock-"):])
	return n, err == nil
}
