// Package sharedlock is step 6: step 5's lock, shared by readers. All stand in one
// queue: a reader watches the last writer before it, a writer the last znode before it,
// of either kind.
//
// This file is the queue, and hold.go makes what Lock and RLock return. Both are step 5's,
// plus the kind of a znode. The life of a hold is drawn in step 5's lock.go. The session is
// step 5's as it is.
package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	pathpkg "path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// lastNumber is the greatest that the server can give to a znode of a directory.
// The server counts no further: each later create gets it again, or a number below 0.
const lastNumber = math.MaxInt32

// kind says whether a znode is a reader's or a writer's. Its text stands in the znode's
// name, before the number.
type kind string

const (
	read  kind = "__READ__"
	write kind = "__WRIT__" // not Session.write, which makes a write at the servers
)

// RWLock is one lock, seen by one process. It is safe for use by many goroutines:
// each of them queues up with a znode of its own.
type RWLock struct {
	s   *Session
	dir string
}

// place is our znode in the queue.
type place struct {
	kind  kind // for another znode, if this one is gone, and for the hold
	node  string
	owner int64 // the session's id: when that session ends, the znode is deleted

	// These two are set when there is nobody to wait for.
	lease *lease // what the hold depends on
	token int64
}

// patience says whether a call waits behind others.
type patience int

const (
	mayWait patience = iota
	mustNotWait
)

// New returns the lock whose directory is path, absolute and below the root, such as
// /locks/orders. It sends nothing: Lock reports a bad argument.
//
// The children named …__READ__<number> or …__WRIT__<number> are the queue, as for Curator's
// InterProcessReadWriteLock; others are ignored. Do not use step 5's lock on the same path:
// neither lock sees the other. To lock again inside a hold, use the same RWLock: another
// one for the same path queues up.
func New(s *Session, path string) *RWLock {
	return &RWLock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context that
// carries the hold. How that context ends is as in step 5.
//
// A call with the context of a hold, or with one made from it, is re-entry: it returns at
// once. A hold that Lock began stays exclusive until all is released.
//
// RLock may be called inside any hold, but Lock only inside a hold that Lock began: inside
// a read hold it returns ErrUpgrade.
func (l *RWLock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.lock(ctx, write)
}

// RLock is Lock for a reader, who waits only for the writers before it: readers hold
// the lock together.
func (l *RWLock) RLock(ctx context.Context) (held context.Context, err error) {
	return l.lock(ctx, read)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within
// wait: see step 5.
func (l *RWLock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	return l.tryLock(ctx, wait, write)
}

// TryRLock is TryLock for a reader.
func (l *RWLock) TryRLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	return l.tryLock(ctx, wait, read)
}

// lock is Lock or RLock.
func (l *RWLock) lock(ctx context.Context, k kind) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	waiting := ctx
	held, err = l.acquire(ctx, waiting, k, mayWait)
	return held, failed("lock", l.dir, err)
}

// tryLock is TryLock or TryRLock.
func (l *RWLock) tryLock(ctx context.Context, wait time.Duration, k kind) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if wait <= 0 {
		waiting := ctx
		held, err = l.acquire(ctx, waiting, k, mustNotWait)
		return held, failed("lock", l.dir, err)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, errTimeIsUp)
	defer stop()
	held, err = l.acquire(ctx, waiting, k, mayWait)
	return held, failed("lock", l.dir, err)
}

// acquire gives up when waiting ends. The context that it returns ends with ctx.
func (l *RWLock) acquire(ctx, waiting context.Context, k kind, p patience) (held context.Context, err error) {
	if waiting.Err() != nil {
		return nil, whyEnded(waiting)
	}
	if h := holdIn(ctx, l); h != nil {
		held, inside, err := h.enter(ctx, k)
		if inside {
			return held, err // with an error this call does not count: whatever Unlock was due is still due
		}
	}
	mine, err := l.queueUp(waiting, k, p)
	if err != nil {
		return nil, err
	}
	return begin(ctx, l, mine), nil
}

// queueUp returns our place when there is nobody left to wait for. It returns as soon as
// waiting ends: what is under way then goes on in the background.
func (l *RWLock) queueUp(waiting context.Context, k kind, p patience) (place, error) {
	var mine place // do sets it, perhaps in the background: nobody may read it before do has returned
	do := func() (err error) {
		mine, err = l.joinAndWait(waiting, k, p)
		return err
	}
	late := func(err error) { // called with do's error, if do is done after we gave up
		if err == nil {
			_ = l.leave(mine) // queueUp has returned already, and nobody will use our place
		}
	}
	if err := l.s.giveUpAt(waiting, do, late); err != nil {
		return place{}, err
	}
	return mine, nil
}

// joinAndWait creates our znode and waits until there is nobody left to wait for. If the
// wait fails, it leaves the queue.
func (l *RWLock) joinAndWait(waiting context.Context, k kind, p patience) (place, error) {
	mine, err := l.join(waiting, k)
	if err != nil {
		return place{}, err
	}
	mine, err = l.wait(waiting, mine, p)
	if err == nil {
		return mine, nil
	}
	if mine.node == "" {
		return place{}, err // there is no znode to delete
	}
	leaveErr := l.leave(mine)
	if znodeStays(leaveErr) { // the server has refused the delete
		err = errors.Join(err, fmt.Errorf("leave the queue: delete %s: %w", mine.node, leaveErr))
	}
	return place{}, err
}

// join creates our znode. Its name has a guid, a random number: when the answer to a
// create is lost, nobody knows whether there is a znode, and join looks for that name
// until it knows, or until a server refuses to tell.
func (l *RWLock) join(waiting context.Context, k kind) (place, error) {
	conn := l.s.Conn()
	ownName := fmt.Sprintf("%s/_c_%016x-%s", l.dir, rand.Uint64(), k)
	for waiting.Err() == nil {
		owner := conn.SessionID()
		node := ""
		createErr := l.s.write(func() (err error) {
			node, err = create(conn, ownName, zk.FlagEphemeralSequential)
			return err
		})
		// If the session has changed meanwhile, the old one or the new one may have made the znode.
		sameSession := conn.SessionID() == owner
		ours := createErr == nil && sameSession
		final := createErr != nil && !l.s.canRetry(createErr) // refused, or the session is closed
		notDone := nothingDone(createErr)                     // no server could be reached, or it was too busy

		switch {
		case ours:
			return place{kind: k, node: node, owner: owner}, nil
		case final:
			return place{}, createErr
		case notDone:
			pause()
		default: // no answer, or the session has changed: is there a znode of our session?
			pause()
			found, err := l.find(ownName, k)
			if err != nil {
				return place{}, err
			}
			if found.node != "" {
				return found, nil
			}
		}
	}
	return place{}, whyEnded(waiting)
}

// find looks for a znode of our session whose path begins with ownName, until a
// server has answered. The place has no node if there is none.
func (l *RWLock) find(ownName string, k kind) (place, error) {
	for {
		owner := l.s.Conn().SessionID()
		node, err := l.look(ownName, owner)
		sameSession := l.s.Conn().SessionID() == owner
		if err == nil && sameSession {
			return place{kind: k, node: node, owner: owner}, nil
		}
		if err != nil && !l.s.canRetry(err) {
			return place{}, err
		}
		pause()
	}
}

// look is one try of find. The server that we are connected to now may lag behind the
// one that carried out the create. So look first makes a write that changes nothing: when
// it is answered, our server has caught up. If we come to another server before the list, that
// one has caught up, too: the client tells it what it has seen last, and a server that
// lags behind refuses the connection. A znode of another session is not ours: it goes with
// that session.
func (l *RWLock) look(ownName string, owner int64) (node string, err error) {
	if err := l.s.ask(); err != nil {
		return "", err
	}
	names, _, err := l.s.Conn().Children(l.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil // not even the directory is there
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		node := l.dir + "/" + name
		if !strings.HasPrefix(node, ownName) {
			continue
		}
		_, stat, err := l.s.Conn().Get(node)
		if errors.Is(err, zk.ErrNoNode) {
			continue // it has gone meanwhile
		}
		if err != nil {
			return "", err
		}
		if stat.EphemeralOwner == owner {
			return node, nil
		}
	}
	return "", nil
}

// wait returns when there is nobody left to wait for. After a wake-up it looks again: the
// predecessor may have been a waiter that died, or one of several readers, and the others
// may still be inside. If our own znode has gone, by hand or with its session, wait makes
// another one. With an error it returns the place to leave, which has no node if there is
// nothing to delete.
func (l *RWLock) wait(waiting context.Context, mine place, p patience) (place, error) {
	conn := l.s.Conn()
	for waiting.Err() == nil {
		// The lease is taken before the list, and our hold will hang on it. Suppose that
		// our session ends right after the list. The list still names our znode, but
		// the znode is gone. A lease that was taken after the list would be that of the next
		// session, and look good. This one is over then, and shows it: a lease that has ended
		// does not begin again.
		current := l.s.takeLease()

		names, stat, err := conn.Children(l.dir)
		if l.s.canRetry(err) {
			pause()
			continue
		}
		sessionEnded := conn.SessionID() != mine.owner
		directoryGone := errors.Is(err, zk.ErrNoNode)
		if sessionEnded || directoryGone {
			mine, err = l.join(waiting, mine.kind) // our znode has gone, too
			if err != nil {
				return place{}, err
			}
			continue
		}
		if err != nil {
			return mine, err // refused, or the session is closed
		}

		before, err := predecessor(names, pathpkg.Base(mine.node))
		// Here no write is needed before the list. Our client has seen our znode already, in the
		// create's answer or in find. A server that has not come so far refuses its connection. So
		// this list is not older than the create: if our name is missing, our znode is gone.
		ownZnodeGone := errors.Is(err, zk.ErrNoNode)
		if ownZnodeGone {
			mine, err = l.join(waiting, mine.kind)
			if err != nil {
				return place{}, err
			}
			continue
		}
		if err != nil {
			return mine, err // the numbers are used up
		}

		nobodyToWaitFor := before == ""
		if nobodyToWaitFor {
			if l.s.isOver(current) {
				l.s.waitHalfATick() // the session has ended, or no write was answered for too long: the next takeLease makes a write
				continue
			}
			mine.lease = current
			// The transaction that last changed the children. If we read, other readers may
			// still be inside, and their tokens may be equal to ours. All other holders before
			// us have left: each took its token from a list, then its znode was deleted, and
			// our list came after that. A delete changes the children. So our token is greater
			// than theirs.
			mine.token = stat.Pzxid
			return mine, nil
		}
		if p == mustNotWait {
			return mine, ErrLocked
		}

		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		watchesLost := l.s.watchesLost() // taken before the watch is set: the watch can be lost from then on
		_, _, gone, err := conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if l.s.canRetry(err) {
			pause()
			continue
		}
		if err != nil {
			return mine, err
		}
		if conn.SessionID() != mine.owner {
			// When a session ends, the watches set in it fire. But if ours ended just before GetW, this
			// watch was set in the next session. It has not fired, and our znode is gone: do not sleep.
			continue
		}
		select {
		case <-gone: // or the session has ended: the next round finds out
		case <-watchesLost: // a fault of the client library: the next round sets the watch again
		case <-waiting.Done():
		case <-l.s.done: // closed: the next request fails
		}
	}
	return mine, whyEnded(waiting)
}

// leave deletes our znode, and goes on until it knows that the znode is gone, or until the
// server refuses. ErrLost means that it was gone before, or goes with its session.
func (l *RWLock) leave(mine place) error {
	mayBeDone := false // a delete may have been sent whose answer is lost
	for {
		err := l.s.write(func() error { return l.s.Conn().Delete(mine.node, -1) })
		if err == nil {
			return nil
		}
		sessionEnded := l.s.isClosed() || l.s.Conn().SessionID() != mine.owner
		if sessionEnded {
			return ErrLost
		}
		if errors.Is(err, zk.ErrNoNode) && mayBeDone {
			return nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			return ErrLost
		}
		if !l.s.canRetry(err) {
			return err
		}
		if !nothingDone(err) {
			mayBeDone = true
		}
		pause()
	}
}

// Unlock ends one entry by Lock, and RUnlock one entry by RLock. If the hold has no such entry,
// they return ErrNotHeld.
//
// When no entry of either kind is left, the znode is deleted. If the server refuses that, as
// with zk.ErrNoAuth, the same call can be made again. For the rest see step 5.
func (l *RWLock) Unlock(held context.Context) error { return l.unlock(held, write) }

// RUnlock is Unlock for a call to RLock.
func (l *RWLock) RUnlock(held context.Context) error { return l.unlock(held, read) }

// unlock is Unlock or RUnlock.
func (l *RWLock) unlock(held context.Context, k kind) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	h, last, lost := exit(held, l, k)
	if h == nil {
		return failed("unlock", l.dir, ErrNotHeld)
	}
	if !last {
		return failed("unlock", l.dir, lost) // an unlock inside the hold, which goes on
	}
	h.release() // before anybody else can get in
	leaveErr := l.leaveInTime(h.place, func() { h.allowUnlockAgain(k) })
	if leaveErr != nil {
		return failed("unlock", h.node, leaveErr)
	}
	return failed("unlock", h.node, lost)
}

// leaveInTime is leave that waits no longer than one session time-out. Then the
// delete goes on in the background. It calls refused if the server refuses the delete. If that
// comes after the time-out, the caller does not hear of it, and the znode may stay for as
// long as the session.
func (l *RWLock) leaveInTime(mine place, refused func()) error {
	result := make(chan error, 1)
	begun := l.s.run(func() {
		err := l.leave(mine)
		if znodeStays(err) {
			refused()
		}
		result <- err
	})
	if !begun {
		return ErrLost // the session is closed, and the znode goes with it
	}
	select {
	case err := <-result:
		return err
	case <-time.After(l.s.Timeout()):
		return fmt.Errorf("no answer for %v, and the delete goes on: %w", l.s.Timeout(), ErrLost)
	}
}

// znodeStays reports whether leave failed because the server has refused the delete.
func znodeStays(leaveErr error) bool {
	return leaveErr != nil && !errors.Is(leaveErr, ErrLost)
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

// predecessor returns the name of the znode that mine has to watch: for a reader the last
// writer before it, for a writer the last znode before it. It is "" if there is none.
//
// It is an error when mine is not there at all: then nothing holds our place. It is also
// an error when another znode can have the same number.
func predecessor(names []string, mine string) (string, error) {
	own, ownKind, _ := number(mine)
	if own < 0 || own == lastNumber {
		return "", errors.New(usedUp)
	}
	before, highest, present := "", 0, false
	for _, name := range names {
		n, k, inQueue := number(name)
		bothRead := ownKind == read && k == read
		isBefore := inQueue && n < own && !bothRead
		isNearer := before == "" || n > highest
		if isBefore && isNearer {
			before, highest = name, n
		}
		if name == mine {
			present = true
		}
	}
	if !present {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	return before, nil
}

// number reads a queue znode's number and kind out of its name's end. Numbers are
// compared, never names; ok is false for a child that is not of the queue.
func number(name string) (n int, k kind, ok bool) {
	// The kind nearest to the end counts: what stands before it may contain one, too.
	at := max(strings.LastIndex(name, string(read)), strings.LastIndex(name, string(write)))
	if at < 0 {
		return 0, "", false
	}
	behind := at + len(read) // both kinds are equally long
	n, err := strconv.Atoi(name[behind:])
	return n, kind(name[at:behind]), err == nil
}
