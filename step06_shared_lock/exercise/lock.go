// Package sharedlock is step 6, for you to write: the lock of step 5, which readers share.
//
// This starter is step 5 with RLock and TryRLock. It is right, but readers wait for readers,
// because the code ignores the kind. The kind is already passed as far as join.
//
//	go test ./yours/step6    what your lock can do, and what not yet
//	make hint STEP=6         the next hint
//
// session.go and errors.go are given. hold.go also has a TODO.
package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// kind says whether a znode is a reader's or a writer's. Its text stands in the znode's
// name, before the number.
type kind string

const (
	read  kind = "__READ__"
	write kind = "__WRIT__"
)

// RWLock is one lock, seen by one process. It is safe for use by many goroutines: each of
// them queues up with a znode of its own, unless its context is a hold's.
type RWLock struct {
	s   *Session
	dir string

	_ sync.Mutex // go vet warns of a copied RWLock, which would not know the holds of the first
}

// place is our znode in the queue.
type place struct {
	node    string
	session int64 // that made the znode, and deletes it when it ends
	kind    kind
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named _c_<guid>-__READ__<number> or _c_<guid>-__WRIT__<number> are the queue; others are
// ignored.
func New(s *Session, path string) *RWLock {
	return &RWLock{s: s, dir: path}
}

// Lock blocks until this call's znode is the first in the queue, and returns the hold. The
// directory and its parents are created where they are missing.
//
// ctx bounds the wait, and nothing else. When it ends, Lock returns why, and the znode is
// deleted in the background. Lock looks at ctx between two requests: on a line that has gone
// silent it returns late, after two thirds of the session time-out at most. A broken
// connection or the end of the session does not end the wait. What the server refuses, such
// as zk.ErrNoAuth, does.
//
// Lock, called with a context that a hold of this Lock made, or with one made from that, is
// re-entry: it returns the same hold at once, and one more Unlock is due. Inside a hold that
// RLock began it returns ErrUpgrade.
func (l *RWLock) Lock(ctx context.Context) (*Hold, error) { return l.lock(ctx, write, true) }

// RLock is Lock for a reader: it blocks until no writer is before it, and readers hold the
// lock together. Inside a hold that Lock began it is re-entry, too, and the hold stays a
// writer's.
func (l *RWLock) RLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, read, true) }

// TryLock is Lock that returns ErrLocked when it would have to wait for somebody in the queue.
func (l *RWLock) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, write, false) }

// TryRLock is TryLock for a reader.
func (l *RWLock) TryRLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, read, false) }

func (l *RWLock) lock(ctx context.Context, k kind, mayWait bool) (*Hold, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if h := holdIn(ctx, l); h != nil {
		if err := h.enter(k); err != nil {
			return nil, failed("lock", l.dir, err)
		}
		return h, nil
	}
	for {
		mine, err := l.join(ctx, k)
		if err != nil {
			return nil, failed("lock", l.dir, err)
		}
		h, err := l.wait(ctx, mine, mayWait)
		if errors.Is(err, zk.ErrNoNode) {
			continue // our znode is gone: queue up again
		}
		if err != nil {
			go l.leave(mine) // until the znode is deleted, or the server refuses
			return nil, failed("lock", l.dir, err)
		}
		return h, nil
	}
}

// join creates our znode. Its name has a guid, a random number. When the answer to the
// create is lost, nobody knows whether there is a znode, and join looks for that name.
//
// TODO 1: a client that lists the queue must see which znodes are readers' and which are writers'.
// 待办 1：列出队列时，要看得出哪些 znode 是读者的，哪些是写者的。
func (l *RWLock) join(ctx context.Context, k kind) (place, error) {
	prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
	for ctx.Err() == nil {
		session := l.s.conn.SessionID()
		node, err := create(l.s.conn, prefix, zk.FlagEphemeralSequential)
		// The library may keep a request, and send it in the next session. So when the session has
		// changed, an answer does not tell whose znode it is: look.
		if err == nil && l.s.conn.SessionID() == session {
			return place{node: node, session: session, kind: k}, nil
		}
		if err != nil && !l.s.mustAskAgain(err) {
			return place{}, err // the server refuses it, or the session is closed
		}
		mine, err := l.find(ctx, prefix)
		if err != nil || mine.node != "" {
			mine.kind = k
			return mine, err
		}
	}
	return place{}, context.Cause(ctx)
}

// find looks for a znode whose path begins with prefix, until a server has answered. The
// place has no node if there is none. When ctx ends first, the search goes on in the
// background, and what it finds is deleted: nobody would ever use it.
func (l *RWLock) find(ctx context.Context, prefix string) (place, error) {
	for {
		mine, err := l.look(prefix)
		if !l.s.mustAskAgain(err) {
			return mine, err
		}
		if ctx.Err() != nil {
			go l.findAndLeave(prefix)
			return place{}, context.Cause(ctx)
		}
		pause()
	}
}

func (l *RWLock) findAndLeave(prefix string) {
	mine, err := l.find(context.Background(), prefix)
	if err == nil && mine.node != "" {
		_ = l.leave(mine) // nobody waits for the answer
	}
}

// look is one try of find. The server to which we are connected now may not know yet what our
// last server has done: the sync makes it catch up. A create that our last server has not passed
// on by then is refused: the session belongs to the new connection.
func (l *RWLock) look(prefix string) (place, error) {
	session := l.s.conn.SessionID()
	if _, err := l.s.conn.Sync(l.dir); err != nil {
		return place{}, err
	}
	names, _, err := l.s.conn.Children(l.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return place{}, nil // not even the directory is there
	}
	if err != nil {
		return place{}, err
	}
	for _, name := range names {
		node := l.dir + "/" + name
		if !strings.HasPrefix(node, prefix) {
			continue
		}
		_, stat, err := l.s.conn.Get(node)
		if err == nil && stat.EphemeralOwner == session {
			return place{node: node, session: session}, nil
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return place{}, err
		} // else an earlier session of ours made it, and deletes it
	}
	return place{}, nil
}

// wait returns the hold when there is nobody to wait for any more. After a wake-up it looks
// again: the predecessor may have been a waiter that died. When a request got no answer, it
// looks again, too. With zk.ErrNoNode our znode is gone.
func (l *RWLock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	for ctx.Err() == nil {
		connection := l.s.connection() // ends when the present connection does
		if connection.Err() != nil && !l.s.isClosed() {
			pause() // until there is another one
			continue
		}
		if l.s.conn.SessionID() != mine.session {
			return nil, zk.ErrNoNode // our znode is deleted with its session
		}
		names, stat, err := l.s.conn.Children(l.dir)
		if l.s.mustAskAgain(err) {
			pause()
			continue
		}
		if err != nil {
			return nil, err
		}
		before, err := predecessor(names, pathpkg.Base(mine.node))
		if err != nil {
			return nil, err
		}
		if before == "" {
			// The connection was there before this list. If it breaks, or has broken, the hold is lost.
			//
			// The fencing token is the number of the transaction that last changed the queue.
			// A holder for whom we had to wait took its own from an older list, in which its znode still
			// stood. That znode was deleted after that list and before our list. So our token is greater.
			return newHold(l, mine, connection, stat.Pzxid), nil
		}
		if !mayWait {
			return nil, ErrLocked
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if l.s.mustAskAgain(err) {
			pause()
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-gone: // or the session has ended, and the watch with it: look again in either case
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// leave deletes our znode, and goes on until it knows that the znode is gone, or until the
// server refuses. ErrLost means that it was gone before, or is deleted with its session.
func (l *RWLock) leave(mine place) error {
	mayBeDone := false // a delete may have been sent whose answer is lost
	for {
		err := l.s.conn.Delete(mine.node, -1)
		if err == nil {
			return nil
		}
		if l.s.isClosed() || l.s.conn.SessionID() != mine.session {
			return ErrLost
		}
		if errors.Is(err, zk.ErrNoNode) && mayBeDone {
			return nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			return ErrLost
		}
		if !l.s.mustAskAgain(err) {
			return err
		}
		mayBeDone = true
		pause()
	}
}

// errNoAnswer is what Unlock returns when it does not wait any longer.
var errNoAnswer = errors.New("no answer yet: the delete goes on in the background")

// leaveInTime is leave that waits for the session time-out, and no longer. By then the servers
// have deleted the znode themselves, or will: the delete goes on in the background.
func (l *RWLock) leaveInTime(mine place) error {
	result := make(chan error, 1)
	go func() { result <- l.leave(mine) }()
	select {
	case err := <-result:
		return err
	case <-time.After(l.s.timeout):
		return errNoAnswer
	}
}

// isRefused tells that the server has refused the delete.
func isRefused(leaveErr error) bool {
	return leaveErr != nil && !errors.Is(leaveErr, ErrLost) && !errors.Is(leaveErr, errNoAnswer)
}

// Unlock is due once for each Lock, and the last one releases the lock.
//
// It deletes the znode, and goes on until it knows that the znode is gone. It waits no longer
// than the session time-out; then it returns an error, and the delete goes on in the background.
//
// Unlock returns ErrNotHeld when it is called too often, and ErrLost when the hold was lost
// or the znode gone. After an error by which the server refuses the delete, such as
// zk.ErrNoAuth, Unlock can be called again.
func (h *Hold) Unlock() error {
	if h == nil {
		return fmt.Errorf("zklock: unlock: %w", ErrNotHeld)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return failed("unlock", h.mine.node, ErrNotHeld)
	}
	if h.count > 1 {
		h.count--
		return failed("unlock", h.mine.node, h.lost())
	}
	lost := h.lost()
	h.end(ErrNotHeld) // before anybody else can get in
	err := h.lock.leaveInTime(h.mine)
	if isRefused(err) {
		return failed("unlock", h.mine.node, err) // this Unlock is still due
	}
	h.count--
	if lost != nil {
		err = lost
	}
	return failed("unlock", h.mine.node, err)
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

// predecessor names the znode that mine waits for, "" when there is none. It is an
// error when mine is not there at all: then nothing holds our place.
//
// TODO 3: which client does a reader wait for, and which a writer?
// 待办 3：读者等谁？写者等谁？
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

// queueName is what the names in the queue look like. The server's number has ten digits, or more.
var queueName = regexp.MustCompile(`^_c_.*-lock-([0-9]{10,})$`)

// number reads a queue znode's number out of its name. Numbers are compared,
// never names; ok is false for a child that is not of the queue.
//
// TODO 2: in step 6 the names have another ending. Also return the kind.
// 待办 2：第 6 步的名字，结尾不同。把种类也返回。
func number(name string) (n int, ok bool) {
	parts := queueName.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}
