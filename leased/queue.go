package leased

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// The queue of a lock, which Mutex, RWMutex and Cohort share. This is the life of a hold, with
// the functions that lead from one state to the next:
//
//	Lock is called
//	    │  join: it creates a znode
//	queued ──────────── Lock gives up ────────┐
//	    │  wait: it is the first              │
//	first                                     │
//	    │  begin: Lock returns a Hold         │
//	held   (enter and exit: Lock and          │
//	    │   Unlock inside the hold)           │
//	    ├─────────────┐ lose: the lease       │
//	    │             │ is over               │
//	    │           lost                      │
//	    ├─────────────┘                       │
//	    │  the last Unlock                    │
//	released                                  │
//	    ├─────────────────────────────────────┘
//	    │  leave: it deletes the znode
//	gone

// kind is the part of a znode's name before its number.
type kind string

const (
	exclusive kind = "lock-"    // of a Mutex and a Cohort, as in zk.Lock and Curator's InterProcessMutex
	read      kind = "__READ__" // of an RWMutex, as in Curator's InterProcessReadWriteLock
	write     kind = "__WRIT__"
)

// lastNumber is the greatest number that the server can give to a znode of a directory.
// After it, a create gets the same number again, or a number below 0.
const lastNumber = math.MaxInt32

// queue is a lock's directory. Its ephemeral children of certain kinds are the queue; other children
// are ignored, such as the directory of another lock.
type queue struct {
	s     *Session
	dir   string
	kinds []kind
}

// place is our znode in the queue.
type place struct {
	kind  kind
	node  string
	owner int64 // the session's id: when that session ends, the znode is deleted

	// These two are set when no znode is left to wait for.
	lease *lease // what the hold depends on
	token int64
}

// try is one call to Lock or TryLock, until it acquires the lock or gives up.
type try struct {
	s       *Session
	ctx     context.Context             // when it ends, the call gives up
	dir     string                      // of the lock
	mayWait bool                        // for other clients, as Lock does
	behind  atomic.Pointer[LockedError] // what is before us, by a server's last answer; nil: nothing, or no answer
	isFirst atomic.Bool                 // by a server's last answer, nothing is before us
	begun   time.Time
}

// waiting is what waits: the calls to Lock that have not returned yet, and a write that they have in common. The
// session's mutex guards it.
type waiting struct {
	tries  map[*try]bool
	asking chan struct{} // askTogether's write, if one is under way: closed when it is answered
}

// oldest returns the call to Lock that has waited longest, or nil.
func (w *waiting) oldest() (oldest *try) {
	for t := range w.tries {
		if oldest == nil || t.begun.Before(oldest.begun) {
			oldest = t
		}
	}
	return oldest
}

// newTry begins a call. The caller calls end when the call returns.
func (s *Session) newTry(ctx context.Context, dir string, mayWait bool) (t *try, end func()) {
	t = &try{s: s, ctx: ctx, dir: dir, mayWait: mayWait, begun: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.tries[t] = true
	return t, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting.tries, t)
	}
}

// whyEnded returns why the call has given up, and for what it waited: another client, or a server.
func (t *try) whyEnded() error {
	err := whyEnded(t.ctx)
	switch behind := t.behind.Load(); {
	case behind != nil:
		err = fmt.Errorf("%w: %w", err, behind)
	case t.isFirst.Load():
		err = fmt.Errorf("%w: %w", err, errTooFewAnswers)
	default:
		err = fmt.Errorf("%w: %w", err, ErrNoAnswer)
	}
	if why := t.s.whyNoConnection(); why != "" {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return err
}

// check refuses arguments with which no lock can work.
func (q *queue) check(ctx context.Context) error {
	if q == nil {
		return errors.New("leased: the lock is a zero value: make it with NewMutex, NewRWMutex or NewCohort")
	}
	return check(ctx, q.s, q.dir)
}

// take is Lock, RLock, TryLock or TryRLock of a Mutex or an RWMutex.
func (q *queue) take(ctx context.Context, k kind, mayWait bool) (*Hold, error) {
	return q.enterOrAcquire(ctx, k, mayWait, func(t *try) (*Hold, error) { return q.acquire(t, k) })
}

// enterOrAcquire does what take does, for any kind of lock. If ctx carries no hold, it calls acquire.
func (q *queue) enterOrAcquire(
	ctx context.Context, k kind, mayWait bool, acquire func(*try) (*Hold, error),
) (*Hold, error) {
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", q.dir, endedBefore(ctx))
	}
	t, end := q.s.newTry(ctx, q.dir, mayWait)
	defer end()
	h, err := enterAgain(ctx, q, k)
	if h == nil && err == nil {
		h, err = acquire(t)
	}
	return h, failed("lock", q.dir, err)
}

func (q *queue) acquire(t *try, k kind) (*Hold, error) {
	join := func() (place, error) { return q.joinAndWait(t, k) }
	late := func(mine place) { _ = q.forget(mine) } // it logs a refusal
	mine, err := doOrGiveUp(t, join, late)
	if err != nil {
		return nil, err
	}
	h := newHold(q, mine)
	h.begin()
	return h, nil
}

// enterAgain is Lock by a caller that already has the hold: ctx carries it. If ctx carries no hold, it returns nil.
func enterAgain(ctx context.Context, q *queue, k kind) (*Hold, error) {
	h := holdIn(ctx, q)
	if h == nil {
		return nil, nil
	}
	inside, err := h.enter(k)
	if !inside || err != nil {
		return nil, err // with an error this call does not count: as many calls to Unlock are due as before
	}
	return h, nil
}

// doOrGiveUp runs do on a goroutine of its own, and returns what it returns. If t's context ends
// first, doOrGiveUp returns at once, with the reason. Then do continues in the background. If it
// succeeds, late is called.
func doOrGiveUp[V any](t *try, do func() (V, error), late func(V)) (V, error) {
	type result struct {
		value V
		err   error
	}
	var none V
	results := make(chan result) // without a buffer: a result that is not received goes to late
	begun := t.s.run(func() {
		value, err := do()
		select {
		case results <- result{value, err}:
		case <-t.ctx.Done():
			if err == nil {
				late(value)
			}
		}
	})
	if !begun {
		return none, zk.ErrClosing
	}
	select {
	case r := <-results:
		return r.value, r.err
	case <-t.ctx.Done():
		return none, t.whyEnded()
	}
}

// forget is like leave, for a znode that no hold has. It logs a refusal: perhaps the call that created the znode
// has given up, and its caller does not get the error.
func (q *queue) forget(mine place) error {
	err := q.leave(mine)
	if isRefused(err) {
		q.s.log.say(slog.LevelError, "leased: a server has refused to delete a znode that belongs to no hold",
			"znode", mine.node, "error", err)
	}
	return err
}

// joinAndWait creates our znode and waits until no znode is left to wait for. If the
// wait fails, it leaves the queue.
func (q *queue) joinAndWait(t *try, k kind) (place, error) {
	if !t.mayWait {
		if err := q.lookFirst(t, k); err != nil {
			return place{}, err
		}
	}
	mine, err := q.join(t, k)
	if err != nil {
		return place{}, err
	}
	mine, err = q.wait(t, mine)
	if err == nil {
		return mine, nil
	}
	if mine.node == "" {
		return place{}, err // there is no znode to delete
	}
	if leaveErr := q.forget(mine); isRefused(leaveErr) {
		err = fmt.Errorf("%w; leave the queue: delete %s: %w", err, short(mine.node), leaveErr)
	}
	return place{}, err
}

// lookFirst returns ErrLocked if a client that joined the queue now would have to wait. Then TryLock
// creates no znode. Without this look, callers that poll would block one another with znodes that never become holds.
func (q *queue) lookFirst(t *try, k kind) error {
	for t.ctx.Err() == nil {
		names, _, err := q.s.Conn().Children(q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // not even the directory exists
		}
		if err == nil {
			_, _, err = q.watchPredecessor(t, names, lastNumber, k)
		}
		hasLeft := errors.Is(err, zk.ErrNoNode)
		if !hasLeft && !q.s.canRetry(err) {
			return err // ErrLocked; or refused, or the session is closed; nil if no client is in the queue
		}
		pause()
	}
	return t.whyEnded()
}

// join creates our znode. Its name has a guid, a random number. When the answer to a create is lost, it is not
// known whether the znode was created. Then join looks for that name until it knows, or until a server refuses
// the list or the read.
func (q *queue) join(t *try, k kind) (place, error) {
	conn := q.s.Conn()
	ownName := fmt.Sprintf("%s/_c_%016x-%s", q.dir, rand.Uint64(), k)
	for t.ctx.Err() == nil {
		owner := conn.SessionID()
		node, createErr := q.create(ownName)
		// If the session has changed meanwhile, either the old one or the new one may have created the znode.
		sameSession := conn.SessionID() == owner
		ours := createErr == nil && sameSession
		final := createErr != nil && !q.s.canRetry(createErr) // refused, or the session is closed
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
			found, err := q.find(ownName)
			if err != nil {
				return place{}, err
			}
			if found.node != "" {
				found.kind = k
				return found, nil
			}
		}
	}
	return place{}, t.whyEnded()
}

// find looks for a znode of our session whose path begins with ownName, until a
// server has answered. If there is none, the place has no node.
func (q *queue) find(ownName string) (place, error) {
	for {
		owner := q.s.Conn().SessionID()
		node, err := q.look(ownName, owner)
		sameSession := q.s.Conn().SessionID() == owner
		if err == nil && sameSession {
			return place{node: node, owner: owner}, nil
		}
		if err != nil && !q.s.canRetry(err) {
			return place{}, err
		}
		pause()
	}
}

// look is one try of find. Our present server may lag behind the
// one that carried out the create. So look first makes a write that changes nothing: when
// it is answered, our server has caught up. If we are connected to another server before the list, that
// one has also caught up: the client library sends the last zxid that it has seen, and a server that
// lags behind refuses the connection. A znode of another session is not ours: it is deleted with
// that session.
func (q *queue) look(ownName string, owner int64) (node string, err error) {
	if err := q.s.ask(); err != nil {
		return "", err
	}
	names, _, err := q.s.Conn().Children(q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil // not even the directory exists
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		node := q.dir + "/" + name
		if !strings.HasPrefix(node, ownName) {
			continue
		}
		_, stat, err := q.s.Conn().Get(node)
		if errors.Is(err, zk.ErrNoNode) {
			continue // it was deleted meanwhile
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

// wait returns when no znode is left to wait for. After a notification it lists again: the
// predecessor may have been a waiter that crashed, or one of several readers, and the others
// may still hold the lock. If our own znode was deleted, by hand or with its session, wait creates
// another one. With an error it returns the place to leave; if there is nothing to delete, the place
// has no node.
func (q *queue) wait(t *try, mine place) (place, error) {
	for t.ctx.Err() == nil {
		// The lease is taken before the list, and our hold will depend on it. Suppose that
		// our session ends right after the list. The list still has our znode, but
		// the znode is deleted. A lease that was taken after the list would be that of the next
		// session, and would look good. The lease that was taken before is over then, and a lease that
		// has ended does not begin again.
		current := q.s.takeLease(t.ctx)

		names, stat, err := q.s.conn.Children(q.dir)
		if q.s.canRetry(err) {
			pause()
			continue
		}
		if q.isGone(mine, names, err) {
			mine, err = q.join(t, mine.kind)
			if err != nil {
				return place{}, err
			}
			continue
		}
		if err != nil {
			return mine, err // refused, or the session is closed
		}
		q.warnOfOthers(names)

		isFirst, err := q.waitOnce(t, mine, names)
		if err != nil {
			return mine, err
		}
		if isFirst && q.s.isOver(current) {
			// The session has ended, or no write was answered for too long. The next takeLease makes a write.
			q.s.waitHalfATick(t.ctx)
			continue
		}
		if isFirst {
			mine.lease = current
			// The token is the zxid of the transaction that last changed the children. If we are a reader,
			// other readers may still hold the lock, and their tokens may be equal to ours. All other
			// earlier holders have released it: each took its token from a list, then its znode was deleted, and
			// then we listed. A delete changes the children. So our token is greater than theirs.
			mine.token = stat.Pzxid
			return mine, nil
		}
	}
	return mine, t.whyEnded()
}

// isGone reports whether our znode was deleted, by hand or with its session. The names and the error are those of a
// list that was answered.
//
// No write is needed before that list. Our session has already seen our znode, in the create's answer or in find. A
// server that has not seen it yet refuses the session's connection. So the list is not older than the create: if our
// name is missing, our znode was deleted.
func (q *queue) isGone(mine place, names []string, listErr error) bool {
	ownZnodeGone := listErr == nil && !slices.Contains(names, pathpkg.Base(mine.node))
	sessionEnded := q.s.conn.SessionID() != mine.owner
	directoryGone := errors.Is(listErr, zk.ErrNoNode)
	return ownZnodeGone || sessionEnded || directoryGone
}

// waitOnce returns true if no znode in the list is left to wait for. Otherwise it waits for one of them, and then it is
// time to list again. An error says that the server has refused a request, or that this is a TryLock and a client is
// before it.
func (q *queue) waitOnce(t *try, mine place, names []string) (isFirst bool, err error) {
	own, err := q.ownNumber(mine)
	if err != nil {
		return false, err
	}
	watchesLost := q.s.watchesLost() // taken before the watch is set, since the watch can be lost from then on
	before, gone, err := q.watchPredecessor(t, names, own, mine.kind)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, nil // it was deleted meanwhile
	case q.s.canRetry(err):
		pause()
		return false, nil
	case err != nil:
		return false, err
	case before == "":
		t.behind.Store(nil)
		t.isFirst.Store(true)
		return true, nil
	case q.s.conn.SessionID() != mine.owner:
		// When a session ends, the watches set in it fire. But if ours ended just before GetW, this
		// watch was set in the next session. It has not fired, and our znode is deleted: do not wait.
		return false, nil
	}
	select {
	case <-gone: // or the session has ended: the next round will see it
	case <-watchesLost: // by a fault of the client library: the next round sets the watch again
	case <-t.ctx.Done():
	case <-q.s.done: // closed: the next request fails
	}
	return false, nil
}

// watchPredecessor sets a watch on the znode that a client with this number has to wait for, and returns its
// name, or "" if there is none. The channel gone is ready when that znode is deleted. If t may not wait, it
// returns ErrLocked and sets no watch. The error is zk.ErrNoNode if the znode was deleted before it was read.
func (q *queue) watchPredecessor(
	t *try, names []string, own int, k kind,
) (before string, gone <-chan zk.Event, err error) {
	for {
		before := q.predecessor(names, own, k)
		if before == "" {
			return "", nil, nil
		}
		label, stat, gone, err := q.read(before, t.mayWait)
		if err != nil {
			return "", nil, err
		}
		if isOwned := stat.EphemeralOwner != 0; isOwned {
			who := &LockedError{
				Znode:       q.dir + "/" + before,
				Label:       string(label),
				SameProcess: stat.EphemeralOwner == q.s.Conn().SessionID(),
			}
			if !t.mayWait {
				return "", nil, who
			}
			t.behind.Store(who)
			return before, gone, nil
		}
		// No session owns this znode: it was created by hand. Look for the one before it.
		names = slices.DeleteFunc(names, func(name string) bool { return name == before })
	}
}

// read reads a znode of the queue, and may set a watch. It uses GetW, since ExistsW would also set a watch if the
// znode was deleted meanwhile.
func (q *queue) read(name string, watch bool) (label []byte, stat *zk.Stat, gone <-chan zk.Event, err error) {
	if watch {
		return q.s.client.watch(q.dir + "/" + name)
	}
	label, stat, err = q.s.Conn().Get(q.dir + "/" + name)
	return label, stat, nil, err
}

// leave deletes our znode, and retries until it knows that the znode is deleted, or until the
// server refuses. A LostError means that the znode was deleted before, or is deleted with its session.
func (q *queue) leave(mine place) error {
	mayBeDone := false // the answer to an earlier delete may have been lost
	for {
		err := q.s.write(func() error { return q.s.Conn().Delete(mine.node, -1) })
		if err == nil {
			return nil
		}
		if q.s.isClosed() {
			return q.s.whyClosed()
		}
		sessionEnded := q.s.Conn().SessionID() != mine.owner
		if sessionEnded {
			return errExpired
		}
		if errors.Is(err, zk.ErrNoNode) && mayBeDone {
			return nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			return errZnodeDeleted
		}
		if !q.s.canRetry(err) {
			return err
		}
		if !nothingDone(err) {
			mayBeDone = true
		}
		pause()
	}
}

// create creates our znode and returns its path, with the number that the server gave it. Its data is the
// label. A client that waits behind it has to be able to read it; the directory's ACL says who may delete it.
//
// The directory is created only when the server says that it is missing. Creating it each time would cost one
// more write for each znode.
func (q *queue) create(path string) (made string, err error) {
	err = q.s.write(func() error {
		made, err = q.s.conn.Create(path, q.s.label, zk.FlagEphemeralSequential, q.s.acl)
		return err
	})
	if !errors.Is(err, zk.ErrNoNode) {
		return made, err
	}
	if err := q.s.makeDirectory(q.dir, q.s.createDirectory); err != nil {
		return "", err
	}
	return q.create(path)
}

// makeDirectory creates a directory, and before it, if necessary, its parents. Each create counts as a write of
// its own. Counted as one write, they would seem to be sent with the first create, and answered with the last.
func (s *Session) makeDirectory(path string, create func(path string) error) error {
	err := s.write(func() error { return create(path) })
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case !errors.Is(err, zk.ErrNoNode):
		return err
	}
	if err := s.makeDirectory(pathpkg.Dir(path), s.createParent); err != nil {
		return err
	}
	return s.makeDirectory(path, create)
}

// createDirectory creates the directory of a lock. If it is a container, the server deletes it when it has been
// empty for a while: so it may be missing more than once.
func (s *Session) createDirectory(path string) error {
	if !s.noContainers.Load() {
		_, err := s.conn.CreateContainer(path, nil, zk.FlagContainer, s.acl)
		if !hasCode(err, unimplemented) {
			return err
		}
		s.noContainers.Store(true) // a server of 3.4 or older. It has also closed the session
	}
	_, err := s.conn.Create(path, nil, zk.FlagPersistent, s.acl)
	return err
}

// createParent creates a parent of a lock's directory. It may become the parent of other services' locks,
// so it is open to everybody.
func (s *Session) createParent(path string) error {
	_, err := s.conn.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	return err
}

// ownNumber returns the number of our znode. If another znode can have the same number, it returns an error.
func (q *queue) ownNumber(mine place) (int, error) {
	own, _, ok := q.number(pathpkg.Base(mine.node))
	if !ok || own == lastNumber {
		return 0, errors.New(usedUp)
	}
	return own, nil
}

// predecessor returns the name of the znode that a client with this number has to watch: for a reader the last
// writer before it, otherwise the last znode before it. It returns "" if there is none.
func (q *queue) predecessor(names []string, own int, ownKind kind) string {
	before, highest := "", 0
	for _, name := range names {
		n, k, inQueue := q.number(name)
		bothRead := ownKind == read && k == read
		isBefore := inQueue && n < own && !bothRead
		isNearer := before == "" || n > highest
		if isBefore && isNearer {
			before, highest = name, n
		}
	}
	return before
}

// number returns the number and the kind in a znode's name. Numbers are compared, never names; ok is false
// for a child that is not in the queue. After the last number a create can get a negative one:
// such a znode is not in the queue either.
func (q *queue) number(name string) (n int, k kind, ok bool) {
	parts := placeName.FindStringSubmatch(name)
	if parts == nil || !slices.Contains(q.kinds, kind(parts[1])) {
		return 0, "", false
	}
	n, err := strconv.Atoi(parts[2])
	return n, kind(parts[1]), err == nil
}

// placeName is the form of a name in any queue: a guid, a kind, and a number. The guid of leased and
// step 5 has 16 hexadecimal digits, that of zk.Lock 32; Curator's has dashes, and kazoo's has no _c_ before it.
// So the directory of another lock, such as block-0000000012, is in no queue.
var placeName = regexp.MustCompile(`^(?:_c_)?[0-9a-f-]{16,}-(lock-|__READ__|__WRIT__)([0-9]{10,})$`)
