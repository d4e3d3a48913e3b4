// Package exercise is step 6, for you to write: step 5's lock, shared by readers.
// Any number of readers hold it together; a writer holds it alone. All stand in
// one queue, and nobody is overtaken.
//
// What stands here, and in hold.go, is part 0: step 5, where readers lock as writers
// do. The lock is right, but nobody shares it. The TODOs are numbered as the parts of
// the chapter are.
//
//	make exercise STEP=06    which part you are in, and what your lock can do
//	make hint STEP=06        the next hint
//
// errors.go is given, and so is the Session, which is the step's own.
package exercise

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

const read, write = "__READ__", "__WRIT__" // the kinds of znodes, as their names are to say

// RWLock is one lock, seen by one process. It is safe for use by many goroutines.
type RWLock struct {
	s   *Session
	dir string
}

// place is a znode in the queue.
type place struct {
	node  string
	owner int64           // the session with which the znode goes
	lease context.Context // once it has no predecessor
	token int64           // likewise
}

// New returns the lock whose directory is path. Its children named …__READ__<number>
// or …__WRIT__<number> are the queue, as for Curator's InterProcessReadWriteLock;
// others are ignored. It sends nothing: Lock reports a bad argument.
func New(s *Session, path string) *RWLock {
	return &RWLock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context
// that is the hold: see step 5. Lock or RLock with it is re-entry: what was exclusive
// stays so until all is released.
func (l *RWLock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, ctx, false)
}

// RLock is Lock for a reader, who is to hold the lock together with other readers.
//
// TODO 1: a reader has to say that it reads, all the way to its znode's name. One way:
// an RWLock makes znodes of one kind, and has another one for the other kind.
// 待办 1：读者必须一路说明自己是读，直到 znode 的名字。一种做法：一个 RWLock 只创建
// 一种类型的 znode，另有一个管另一种类型。
func (l *RWLock) RLock(ctx context.Context) (context.Context, error) { return l.Lock(ctx) }

// TryLock is Lock that returns ErrLocked when it does not get the lock within
// wait. With 0 it asks once, and does not wait behind anybody.
func (l *RWLock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if ctx == nil || wait <= 0 {
		return l.acquire(ctx, ctx, true)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
	defer stop()
	return l.acquire(ctx, waiting, false)
}

// TryRLock is TryLock for a reader.
func (l *RWLock) TryRLock(ctx context.Context, wait time.Duration) (context.Context, error) {
	return l.TryLock(ctx, wait)
}

// queueUp is stand that returns as soon as ctx ends. What is under way then goes
// on in the background.
func (l *RWLock) queueUp(ctx context.Context, once bool) (place, error) {
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

// stand creates our znode and waits until it has no predecessor.
func (l *RWLock) stand(ctx context.Context, once bool) (place, error) {
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
func (l *RWLock) enqueue(ctx context.Context) (p place, err error) {
	conn, path := l.s.Conn(), fmt.Sprintf("%s/_c_%016x-%s", l.dir, rand.Uint64(), write)
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
func (l *RWLock) find(path string, owner int64) (node string, err error) {
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

// wait returns when our znode has no predecessor. After a wake-up it looks again:
// a waiter may have died. If our own znode has gone, it makes another one.
func (l *RWLock) wait(ctx context.Context, p *place, once bool) error {
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
func (l *RWLock) leave(p place) error {
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

// Unlock ends an entry by Lock, as in step 5. What the server refuses can be tried again.
func (l *RWLock) Unlock(held context.Context) error {
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

// RUnlock is Unlock for an entry by RLock.
//
// TODO 2: it ends an entry by Lock just as well, and Unlock one by RLock.
// 待办 2：它照样会结束经 Lock 的进入，Unlock 也会结束经 RLock 的。
func (l *RWLock) RUnlock(held context.Context) error { return l.Unlock(held) }

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

// predecessor names the znode that mine waits for, "" when there is none. It is an
// error when mine is not there at all: then nothing holds our place.
//
// TODO 1: now everybody waits for the last znode before its own. Whom has a reader
// to wait for? And a writer?
// 待办 1：现在每个都等自己前面最后一个 znode。读者必须等谁？写者呢？
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

// number reads a queue znode's number out of its name's end. Numbers are
// compared, never names; ok is false for a child that is not of the queue.
//
// TODO 1: readers are of the queue, too, and predecessor needs to know the kind.
// 待办 1：读者也属于队列，predecessor 要知道类型。
func number(name string) (n int, ok bool) {
	at := strings.LastIndex(name, write)
	if at < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(name[at+len(write):])
	return n, err == nil
}
