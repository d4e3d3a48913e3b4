// Package exercise is step 5, for you to write: the queue of step 4, made into a
// lock to rely on. A lost reply does no harm, the holder may lock again, a
// holder that has lost the lock is told, and each tenure has a fencing token.
//
// What stands here is step 4 over a Session. Lock returns a context, and Unlock
// takes it: the caller's own, for now.
//
//	make exercise STEP=05    what your lock can do, and what not yet
//	make hint STEP=05        the next hint
//
// errors.go is given, and so is the Session, which is the step's own. Your lock
// needs these of it:
//
//	Conn()        the connection: create, list, watch and delete over it
//	Retry(err)    tells whether a request was not answered, and is to be made again
//	Ask()         makes a write in vain: a read after it sees what was decided before
//	Closed()      tells whether the session has been closed
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
	"sync"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one process. It is safe for use by many goroutines.
type Lock struct {
	s   *Session
	dir string

	// TODO 3: the count of a hold, and its znode, belong to the context that Lock
	// returns. Then any number of holds can wait and go on.
	mu   sync.Mutex
	node string // the znode that holds the lock; "" while this process does not
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named lock-<number> are the queue; others are
// ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context
// that is the hold. The directory and its parents are created where they are
// missing.
//
// When ctx ends first, Lock deletes its znode and returns ctx's error.
//
// TODO 1: when the create was not answered (Retry), nobody knows whether there
// is a znode. Give it a name by which you know it again, _c_<guid>-lock-<number>,
// and look for it, after an Ask. number has to read such names, too.
// TODO 3: does ctx carry a hold of this lock already? Then count one more. So
// the context that Lock returns has to carry one: context.WithValue.
// TODO 4: held must end when the lease does, with the cause ErrLost. While the
// lock is held, Keep makes the lease go on.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failed("lock", l.dir, err)
	}
	node, err := create(l.s.Conn(), l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	if err := l.wait(ctx, node); err != nil {
		return nil, failed("lock", l.dir, errors.Join(err, l.leave(node)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return ctx, nil
}

// wait returns when node is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died.
//
// TODO 1: a list without an answer (Retry) is no reason to give up the place.
// TODO 4: which lease does the hold hang on? Take it (Lease) before the list that
// says that you are the first.
// TODO 5: that list brings a number with it that only ever grows.
func (l *Lock) wait(ctx context.Context, node string) error {
	for {
		names, _, err := l.s.Conn().Children(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(node))
		if before == "" || err != nil {
			return err
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := l.s.Conn().GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case event := <-gone:
			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave deletes the znode of a waiter that has given up.
func (l *Lock) leave(node string) error {
	err := l.s.Conn().Delete(node, -1)
	if errors.Is(err, zk.ErrNoNode) { // gone with its session
		return nil
	}
	return failed("leave the queue: delete", node, err)
}

// Unlock deletes the znode that holds the lock. It returns ErrNotHeld when this
// process does not hold the lock. After any other error Unlock can be called
// again.
//
// TODO 2: when the delete was not answered (Retry), nobody knows whether the
// znode is still there. Go on until you know that it is gone. If it was gone
// before, the lock was lost: ErrLost.
// TODO 3: only the last of several Unlocks deletes the znode.
// TODO 4: held has to end here. Then it needs no Keep any more: rest.
func (l *Lock) Unlock(held context.Context) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.node == "" {
		return failed("unlock", l.dir, ErrNotHeld)
	}
	node := l.node
	err := l.s.Conn().Delete(node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.node = ""
	}
	return failed("unlock", node, err)
}

// Token returns the fencing token of the lock whose Lock returned held, and whether
// there is one. It is greater than those of all tenures before on the same path.
//
// TODO 5: the context can carry it, under a key of its own.
func Token(held context.Context) (int64, bool) {
	return 0, false
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

// number reads a queue znode's number out of its name. Numbers are compared,
// never names; ok is false for a child that is not of the queue.
func number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "lock-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}
