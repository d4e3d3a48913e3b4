// Package leased is step 5: the queue of step 4, made into a lock to rely on.
//
// This file is the queue. These are the others:
//
//	hold.go      what Lock returns
//	session.go   opens and closes the session
//	lease.go     how long the session can be relied on
//	errors.go    the errors, and what they say
//	client.go    mistakes of the client library; the other files can be read without it
//	cohort.go    beside the parts: a Lock for the goroutines of one process
//
// This is what lock.go and hold.go need of the session, besides its connection, its
// time-out, and whether it is closed:
//
//	ask, write                    make a write: one that changes nothing, or one of ours; the lease counts it
//	canRetry                      no answer, or a server that was too busy, in an open session: make the request again
//	run                           on a goroutine that Close waits for; once closed, run does nothing and returns false
//	giveUpAt                      do something, but return as soon as the caller gives up
//	takeLease, isOver, useLease   how long the session can be relied on
//	waitHalfATick                 rest until it is worth looking again
//	watchesLost                   a channel that is closed when the client library has lost watches: look again
//
// The life of a hold, with the functions that lead from one state to the next:
//
//	Lock is called
//	    │  join: it creates a znode
//	queued ──────────── Lock gives up ────────┐
//	    │  wait: nobody is before the znode   │
//	first                                     │
//	    │  begin: Lock returns a context      │
//	held   (enter and exit: Lock and          │
//	    │   Unlock inside the hold)           │
//	    ├─────────────┐ lose: the lease       │
//	    │             │ is over               │
//	    │           lost                      │
//	    ├─────────────┘                       │
//	    │  release: the last Unlock           │
//	released                                  │
//	    ├─────────────────────────────────────┘
//	    │  leave: it deletes the znode
//	gone
//
// Two pairs of words: join and leave are about the queue, enter and exit about the hold.
// These three put the steps together:
//
//	joinAndWait   join and wait; and leave, if the wait fails
//	queueUp       joinAndWait, in the background if Lock's context can end: so Lock can give up at once
//	acquire       enter, if the caller is inside the hold; else queueUp and begin
package leased

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

// Lock is one lock, seen by one process. It is safe for use by many goroutines:
// each of them queues up with a znode of its own.
type Lock struct {
	s   *Session
	dir string
}

// place is our znode in the queue.
type place struct {
	node  string
	owner int64 // the session's id: when that session ends, the znode is deleted

	// These two are set when the znode is the first.
	lease *lease // what the hold depends on
	token int64
}

// patience says whether a call waits behind others.
type patience int

const (
	mayWait patience = iota
	mustNotWait
)

// New returns the lock whose directory is path, absolute and below the root, such
// as /locks/orders. It sends nothing: Lock reports a bad argument.
//
// The children whose names end in lock-<number> are the queue. So a zk.Lock or Curator's
// InterProcessMutex on the same path stands in it, too. Other children are ignored.
//
// To lock again inside a hold, use the same Lock: another one for the same path queues up.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until its znode is the first in the queue, and returns the context
// that carries the hold. Unlock needs it, so a stranger cannot unlock. Lock, called with
// it or with a context made from it, is re-entry: it returns at once, and one more
// Unlock is due. A goroutine that is given the context shares the hold.
//
// The context ends with cause ErrLost when the lock can no longer be relied on.
// Work under the lock should stop then, and call Unlock: while the session lives,
// nobody else comes in before that Unlock. If somebody deletes the znode, only Unlock
// notices. The context ends with ctx, too, without a release: a deadline for the waiting belongs in TryLock.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later.
// A connection that fails, or a session that expires, does not end the wait. What
// the server refuses, such as zk.ErrNoAuth, does.
//
// If ctx is of a type of your own, its methods must not block. When a hold is lost, they are
// called with the session's mutex locked, and the session would stand still.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	waiting := ctx
	held, err = l.acquire(ctx, waiting, mayWait)
	return held, failed("lock", l.dir, err)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within
// wait. With 0 it does not wait behind anybody. It waits only for the servers: for
// their answers, and after an outage for a lease, which takes one or two fifths of the
// session time-out. Without a connection it waits as long as ctx lets it.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if wait <= 0 {
		waiting := ctx
		held, err = l.acquire(ctx, waiting, mustNotWait)
		return held, failed("lock", l.dir, err)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, errTimeIsUp)
	defer stop()
	held, err = l.acquire(ctx, waiting, mayWait)
	return held, failed("lock", l.dir, err)
}

// acquire gives up when waiting ends. The context that it returns ends with ctx.
func (l *Lock) acquire(ctx, waiting context.Context, p patience) (held context.Context, err error) {
	if waiting.Err() != nil {
		return nil, whyEnded(waiting)
	}
	if h := holdIn(ctx, l); h != nil {
		held, inside, err := h.enter(ctx)
		if inside {
			return held, err // with an error this call does not count: whatever Unlock was due is still due
		}
	}
	mine, err := l.queueUp(waiting, p)
	if err != nil {
		return nil, err
	}
	return begin(ctx, l, mine), nil
}

// queueUp returns our place when it is the first. It returns as soon as waiting ends:
// what is under way then goes on in the background.
func (l *Lock) queueUp(waiting context.Context, p patience) (place, error) {
	var mine place // do sets it, perhaps in the background: nobody may read it before do has returned
	do := func() (err error) {
		mine, err = l.joinAndWait(waiting, p)
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

// joinAndWait creates our znode and waits until it is the first. If the wait fails, it
// leaves the queue.
func (l *Lock) joinAndWait(waiting context.Context, p patience) (place, error) {
	mine, err := l.join(waiting)
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
func (l *Lock) join(waiting context.Context) (place, error) {
	conn := l.s.Conn()
	ownName := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
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
			return place{node: node, owner: owner}, nil
		case final:
			return place{}, createErr
		case notDone:
			pause()
		default: // no answer, or the session has changed: is there a znode of our session?
			pause()
			found, err := l.find(ownName)
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
func (l *Lock) find(ownName string) (place, error) {
	for {
		owner := l.s.Conn().SessionID()
		node, err := l.look(ownName, owner)
		sameSession := l.s.Conn().SessionID() == owner
		if err == nil && sameSession {
			return place{node: node, owner: owner}, nil
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
func (l *Lock) look(ownName string, owner int64) (node string, err error) {
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

// wait returns when our znode is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died. If our own znode has
// gone, by hand or with its session, wait makes another one. With an error it returns
// the place to leave, which has no node if there is nothing to delete.
func (l *Lock) wait(waiting context.Context, mine place, p patience) (place, error) {
	conn := l.s.Conn()
	for waiting.Err() == nil {
		// The lease is taken before the list, and our hold will hang on it. Suppose that
		// our session ends right after the list. The list still names our znode first, but
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
			mine, err = l.join(waiting) // our znode has gone, too
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
			mine, err = l.join(waiting)
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
			// The transaction that last changed the children. The holder before us
			// took its token from a list. The holder or the servers deleted its znode
			// later, and our list has seen that change. So our token is greater.
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
func (l *Lock) leave(mine place) error {
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

// Unlock is due once for each Lock; held may have ended. The last Unlock of a hold
// deletes the znode. Unlock returns ErrNotHeld when held does not hold this lock (any
// more), and ErrLost when the hold was lost or the znode gone. With no answer for one
// session time-out it returns ErrLost, too, and the delete goes on. After any other
// error, such as zk.ErrNoAuth, Unlock can be called again.
func (l *Lock) Unlock(held context.Context) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	h, last, lost := exit(held, l)
	if h == nil {
		return failed("unlock", l.dir, ErrNotHeld)
	}
	if !last {
		return failed("unlock", l.dir, lost) // an Unlock inside the hold, which goes on
	}
	h.release() // before anybody else can get in
	leaveErr := l.leaveInTime(h.place, h.allowUnlockAgain)
	if leaveErr != nil {
		return failed("unlock", h.node, leaveErr)
	}
	return failed("unlock", h.node, lost)
}

// leaveInTime is leave that waits no longer than one session time-out. Then the
// delete goes on in the background. It calls refused if the server refuses the delete. If that
// comes after the time-out, the caller does not hear of it, and the znode may stay for as
// long as the session.
func (l *Lock) leaveInTime(mine place, refused func()) error {
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

// predecessor names the znode right before mine in the queue, "" when mine is
// the first. It is an error when mine is not there at all: then nothing holds
// our place. It is also an error when another znode can have the same number.
func predecessor(names []string, mine string) (string, error) {
	own, _ := number(mine)
	if own < 0 || own == lastNumber {
		return "", errors.New(usedUp)
	}
	before, highest, present := "", 0, false
	for _, name := range names {
		n, inQueue := number(name)
		isBefore := inQueue && n < own
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
