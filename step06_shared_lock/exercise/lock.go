// Package sharedlock is step 6, for you to write: step 5's lock, changed so that readers share it.
//
// This starter is step 5 with RLock and TryRLock. It is right, but readers wait for readers,
// because the code ignores the kind. The kind is already passed as far as join.
//
//	go test ./yours/step6    what your lock can do, what it cannot do yet, and how to get a hint
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

// kind says whether a znode is a reader's or a writer's. Its text is in the znode's
// name, before the number.
type kind string

const (
	read  kind = "__READ__"
	write kind = "__WRIT__"
)

// RWLock is one lock, seen by one process. It is safe for use by many goroutines: each of
// them queues up with a znode of its own, unless its context was made by Hold.Context.
type RWLock struct {
	s   *Session
	dir string

	_ sync.Mutex // go vet warns of a copied RWLock: the copy would not find the holds of the original
}

// place is our znode in the queue.
type place struct {
	node    string
	session int64 // has created the znode; when it ends, the servers delete the znode
	kind    kind
}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children named _c_<guid>-__READ__<number> or
// _c_<guid>-__WRIT__<number> are the queue; others are ignored.
func New(s *Session, path string) *RWLock {
	return &RWLock{s: s, dir: path}
}

// Lock blocks until this call's znode is the first in the queue, and returns the hold. It
// creates the directory and its parents where they are missing.
//
// ctx bounds the wait, and nothing else. When it ends, Lock returns the reason at once. A
// goroutine remains until the request that is on its way is answered, and deletes the znode. A
// broken connection, or the end of the session, does not end the wait. A refusal by the server,
// such as zk.ErrNoAuth, ends it.
//
// Lock called with a hold's context, or with one made from it, is re-entry: it returns the same
// hold at once, and one more Unlock is due. With the context of a reader's hold it returns
// ErrUpgrade.
func (l *RWLock) Lock(ctx context.Context) (*Hold, error) { return l.lock(ctx, write, true) }

// RLock is Lock for a reader: it blocks until no writer is before it, and readers hold the
// lock together. With the context of a writer's hold it is re-entry, and the hold stays a
// writer's.
func (l *RWLock) RLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, read, true) }

// TryLock does not wait for others: it returns ErrLocked when it would have to wait for somebody.
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
	var h *Hold
	result := make(chan error)
	go func() {
		var err error
		h, err = l.acquire(ctx, k, mayWait)
		select {
		case result <- err:
		case <-ctx.Done(): // Lock has returned, and no caller will unlock
			if err == nil {
				_ = h.Unlock()
			}
		}
	}()
	select {
	case err := <-result:
		return h, failed("lock", l.dir, err)
	case <-ctx.Done():
		return nil, failed("lock", l.dir, context.Cause(ctx))
	}
}

// acquire is Lock without its caller: it returns the hold when it is our turn.
func (l *RWLock) acquire(ctx context.Context, k kind, mayWait bool) (*Hold, error) {
	for {
		mine, err := l.join(ctx, k)
		if err != nil {
			return nil, err
		}
		h, err := l.wait(ctx, mine, mayWait)
		if errors.Is(err, zk.ErrNoNode) {
			continue // our znode was deleted: queue up again
		}
		if err != nil {
			go l.leave(mine) // until the znode is deleted, or the server refuses
			return nil, err
		}
		return h, nil
	}
}

// join creates our znode. Its name has a guid, a random number. When the create gets no answer,
// nobody knows whether the znode exists: join looks for that guid, and creates again if it finds
// nothing.
//
// TODO 1: a client that lists the queue must see which znodes are readers' and which are writers'.
// 待办 1：列出队列时，要看得出哪些 znode 是读者的，哪些是写者的。
func (l *RWLock) join(ctx context.Context, k kind) (place, error) {
	prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
	for ctx.Err() == nil {
		session := l.s.conn.SessionID()
		node, err := create(l.s.conn, prefix, zk.FlagEphemeralSequential)
		sameSession := l.s.conn.SessionID() == session
		if err == nil && sameSession {
			return place{node: node, session: session, kind: k}, nil
		}
		if err != nil && !l.s.mustRetry(err) {
			return place{}, err // the server refuses it, or the session is closed
		}
		// There was no answer. Or the session has changed: the library may have sent the create in the
		// old session or in the new one, and the answer does not say in which.
		mine, err := l.find(prefix)
		if err != nil || mine.node != "" {
			mine.kind = k
			return mine, err
		}
	}
	return place{}, context.Cause(ctx)
}

// find looks for a znode whose path begins with prefix, and retries until a server answers. It
// returns an empty place if there is none.
func (l *RWLock) find(prefix string) (place, error) {
	for {
		mine, err := l.look(prefix)
		if !l.s.mustRetry(err) {
			return mine, err
		}
		pause()
	}
}

// look is one try of find. We may be connected to another server now, which does not know of the
// create yet: the sync makes it catch up. Perhaps the previous server has not passed the create on
// yet. If it does so later, the leader refuses it, because the session has moved to the new server.
func (l *RWLock) look(prefix string) (place, error) {
	session := l.s.conn.SessionID()
	if _, err := l.s.conn.Sync(l.dir); err != nil {
		return place{}, err
	}
	names, _, err := l.s.conn.Children(l.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return place{}, nil // not even the directory exists
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
		if errors.Is(err, zk.ErrNoNode) {
			continue // it was deleted after the list
		}
		if err != nil {
			return place{}, err
		}
		if stat.EphemeralOwner == session {
			return place{node: node, session: session}, nil
		}
		// Else it belongs to an old session of ours, and will be deleted with it.
	}
	return place{}, nil
}

// wait returns the hold when there is nobody to wait for any more. After a wake-up it looks
// again: the predecessor may have been a waiter that crashed. It also lists again when a request
// got no answer. It returns zk.ErrNoNode when our own znode was deleted, or its session has ended.
func (l *RWLock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
	for ctx.Err() == nil {
		connection := l.s.connection() // ends when the present connection does
		if connection.Err() != nil && !l.s.isClosed() {
			pause() // until there is another one
			continue
		}
		names, stat, err := l.s.conn.Children(l.dir)
		if l.sessionEnded(mine) {
			return nil, zk.ErrNoNode // a list of the next session may still show our znode
		}
		if l.s.mustRetry(err) {
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
			// We took the connection before the list. If it has broken since, the hold is lost from
			// the start.
			//
			// The fencing token is the number of the transaction that last changed the queue.
			// A holder for whom we had to wait took its token from an older list, in which its znode
			// still was. That znode was deleted after that list and before ours. So our token is greater.
			return newHold(l, mine, connection, stat.Pzxid), nil
		}
		if !mayWait {
			return nil, ErrLocked
		}
		// GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if l.sessionEnded(mine) {
			return nil, zk.ErrNoNode // a watch of the next session does not end with ours
		}
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if l.s.mustRetry(err) {
			pause()
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-gone: // deleted; or the session has ended, or is closed: list again
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// leave deletes our znode. It retries until it knows that the znode is deleted, or until the server
// refuses. It returns ErrLost if the znode was deleted before, or if its session has ended: then
// nobody knows whether our delete came first.
func (l *RWLock) leave(mine place) error {
	mayBeDone := false // an earlier delete got no answer: perhaps it was carried out
	for {
		err := l.s.conn.Delete(mine.node, -1)
		switch {
		case err == nil:
			return nil
		case l.sessionEnded(mine):
			return ErrLost
		case errors.Is(err, zk.ErrNoNode) && mayBeDone:
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return ErrLost
		case !l.s.mustRetry(err):
			return err
		}
		mayBeDone = true
		pause()
	}
}

// sessionEnded reports whether the session of our znode has ended. Then the servers delete the
// znode, now or soon.
func (l *RWLock) sessionEnded(mine place) bool {
	return l.s.isClosed() || l.s.conn.SessionID() != mine.session
}

// errNoAnswer is what Unlock returns when it has waited long enough.
var errNoAnswer = errors.New("no answer yet: the delete continues in the background")

// leaveInTime waits for leave, but no longer than the session timeout. Then leave continues in the
// background: it deletes the znode, or the servers delete it with the session.
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

// isRefused reports whether the server has refused the delete.
func isRefused(leaveErr error) bool {
	isGone := leaveErr == nil || errors.Is(leaveErr, ErrLost)
	isUnknown := errors.Is(leaveErr, errNoAnswer)
	return !isGone && !isUnknown
}

// Unlock is due once for each Lock or RLock, and the last one releases the lock.
//
// It deletes the znode, and retries until it knows that the znode is deleted. It waits no longer
// than the session timeout; then it returns an error, and the delete continues in the background.
//
// Unlock returns ErrNotHeld when it is called too often, and ErrLost when the hold was lost or the
// znode was deleted. It also returns ErrLost when the session ends before the delete is answered:
// then nobody knows whether the lock was lost. After a refusal by the server, such as zk.ErrNoAuth,
// the znode is still in the queue, and Unlock can be called again.
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
	h.end(ErrNotHeld) // before another client can get the lock, and even if the server refuses the delete
	err := h.lock.leaveInTime(h.mine)
	if isRefused(err) {
		return failed("unlock", h.mine.node, err) // the znode is still in the queue: the count stays
	}
	h.count--
	if lost != nil {
		err = lost
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

// predecessor names the znode that mine waits for, "" when there is none. It is an
// error when mine is not in the list: then we have no place in the queue.
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
		n, ok := number(name)
		isBefore := ok && n < own
		isNearest := before == "" || n > highest
		if isBefore && isNearest {
			before, highest = name, n
		}
	}
	return before, nil
}

// queueName matches the names in the queue. The server's number has ten digits.
var queueName = regexp.MustCompile(`^_c_.*-lock-([0-9]{10})$`)

// number returns the number in a znode's name. The queue compares numbers, never
// names. For a child that is not part of the queue, ok is false.
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
