// Package reentrant is step 5: the queue of step 4, made into a lock to rely on.
// This file is the queue. The hold, its count and its token are in hold.go, what
// Prove, Ask, Lease and Keep do is in lease.go, and Retry is in errors.go.
package reentrant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	node  string
	owner int64           // the session with which the znode goes
	lease context.Context // once it is the first
	token int64           // likewise
}

// New returns the lock whose directory is path, absolute and below the root, such
// as /locks/orders. It sends nothing: Lock reports a bad argument. The children named
// …lock-<number> are the queue, also zk.Lock's and Curator's; others are ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context
// that is the hold. Unlock needs it, so a stranger cannot unlock. Lock, called with
// it or with a context made from it, is re-entry: it returns at once, and one more
// Unlock is due. A goroutine that is given the context shares the hold.
//
// The context ends with cause ErrLost when the lock can no longer be relied on.
// Work under the lock should stop then, and call Unlock: while the session lives,
// nobody comes in before that. If somebody deletes the znode, only Unlock notices.
// The context ends with ctx, too: a deadline for the waiting belongs in TryLock.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later.
// A connection that fails, or a session that expires, does not end the wait. What
// the server refuses, such as zk.ErrNoAuth, does.
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

// queueUp is stand that returns as soon as ctx ends. What is under way then goes
// on in the background.
func (l *Lock) queueUp(ctx context.Context, once bool) (place, error) {
	if ctx.Done() == nil { // nobody can give up, and no goroutine is needed
		return l.stand(ctx, once)
	}
	taken, p, err := make(chan struct{}), place{}, error(nil) // not the results: a return sets those
	if !l.s.Go(func() {
		p, err = l.stand(ctx, once)
		select {
		case taken <- struct{}{}:
		case <-ctx.Done():
			if err == nil {
				_ = l.leave(p)
			}
		}
	}) {
		return place{}, zk.ErrClosing
	}
	select {
	case <-taken:
		return p, err
	case <-ctx.Done():
		return place{}, ended(ctx)
	}
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

// enqueue creates our znode. If the reply is lost, it looks for the guid. It goes
// on until it knows whether there is a znode. That is no spin: without a connection
// a request waits for the next one, or until all servers have been tried.
func (l *Lock) enqueue(ctx context.Context) (p place, err error) {
	conn, path := l.s.Conn(), fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
	for unsure := false; ; unsure = true {
		p = place{owner: conn.SessionID()}
		if unsure {
			p.node, err = l.find(path, p.owner)
		}
		if err == nil && p.node == "" {
			if unsure && ctx.Err() != nil { // there is no znode, and none is wanted
				return place{}, ended(ctx)
			}
			err = l.s.Prove(func() (err error) {
				p.node, err = create(conn, path, zk.FlagEphemeralSequential)
				return err
			})
		}
		if err == nil && conn.SessionID() == p.owner { // else another session may have made it
			return p, nil
		}
		if err != nil && !l.s.Retry(err) {
			return place{}, err
		}
	}
}

// find looks for a znode whose path begins so. It asks first, for the server that
// we are connected to now may lag behind the one that carried out the create. A
// znode of another session is not ours: it goes with that session.
func (l *Lock) find(path string, owner int64) (node string, err error) {
	if err := l.s.Ask(); err != nil {
		return "", err
	}
	names, _, err := l.s.Conn().Children(l.dir)
	for _, name := range names {
		if node := l.dir + "/" + name; err == nil && strings.HasPrefix(node, path) {
			_, stat, unread := l.s.Conn().Get(node)
			if unread == nil && stat.EphemeralOwner == owner {
				return node, nil
			}
			if !errors.Is(unread, zk.ErrNoNode) { // else it has gone meanwhile
				err = unread
			}
		}
	}
	if errors.Is(err, zk.ErrNoNode) { // not even the directory is there
		err = nil
	}
	return "", err
}

// wait returns when our znode is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died. If our own znode has
// gone, by hand or with its session, wait makes another one.
func (l *Lock) wait(ctx context.Context, p *place, once bool) error {
	conn := l.s.Conn()
	for ctx.Err() == nil {
		lease := l.s.Lease() // it may ask; taken before the list, so that a later loss is the hold's
		names, stat, err := conn.Children(l.dir)
		before := ""
		if err == nil {
			before, err = predecessor(names, pathpkg.Base(p.node))
		}
		if l.s.Retry(err) || err == nil && before == "" && lease.Err() != nil { // the line was down for too long
			continue
		}
		if errors.Is(err, zk.ErrNoNode) || conn.SessionID() != p.owner {
			if *p, err = l.enqueue(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if before == "" {
			// Pzxid is the transaction that last changed the children: at least the
			// delete of the holder before us, which came after the list that let it in.
			p.lease, p.token = lease, stat.Pzxid
			return nil
		}
		if once {
			return ErrLocked
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := conn.GetW(l.dir + "/" + before)
		if l.s.Retry(err) || errors.Is(err, zk.ErrNoNode) || conn.SessionID() != p.owner {
			continue // look again: the watch may be a new session's, which has no znode
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

// leave deletes our znode, and goes on until it knows that it is gone: ErrLost
// means that it was gone before, or went with its session.
func (l *Lock) leave(p place) error {
	for lost := false; ; lost = true {
		err := l.s.Prove(func() error { return l.s.Conn().Delete(p.node, -1) })
		switch {
		case err == nil:
			return nil
		case l.s.Closed(), l.s.Conn().SessionID() != p.owner, errors.Is(err, zk.ErrNoNode) && !lost:
			return ErrLost
		case errors.Is(err, zk.ErrNoNode): // the delete whose reply was lost has done it
			return nil
		case !l.s.Retry(err):
			return err
		}
	}
}

// Unlock ends a hold, also one whose context has ended: the last one deletes the
// znode. It returns ErrNotHeld when held does not hold this lock (any more), and
// ErrLost when the hold was lost or the znode gone. With no answer for one session
// time-out it returns ErrLost, too, and the delete goes on. After any other error,
// such as zk.ErrNoAuth, Unlock can be called again.
func (l *Lock) Unlock(held context.Context) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	h, err := exit(held, l)
	if h == nil {
		return failed("unlock", l.dir, err)
	}
	h.end() // before anybody else can get in
	deleted := make(chan error, 1)
	if !l.s.Go(func() { deleted <- h.released(l.leave(h.place)) }) {
		deleted <- ErrLost
	}
	select {
	case gone := <-deleted:
		err = cmp.Or(gone, err)
	case <-time.After(l.s.Timeout()):
		err = fmt.Errorf("no answer for %v, and the delete goes on: %w", l.s.Timeout(), ErrLost)
	}
	return failed("unlock", h.node, err)
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
