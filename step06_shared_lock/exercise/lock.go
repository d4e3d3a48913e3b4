// Package sharedlock is step 6, for you to write: the lock of step 5, which readers share.
//
// What stands here is step 5 with RLock and TryRLock. It is right, but readers wait for
// readers: nobody looks at the kind. The kind is handed on already, as far as join.
//
//	go test ./yours/step6    what your lock can do, and what not yet
//	make hint STEP=6         the next hint
//
// session.go and errors.go are given. hold.go has a TODO, too.
package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// forever is how long Lock waits.
const forever time.Duration = math.MaxInt64

// kind says whether a znode is a reader's or a writer's. Its text stands in the znode's
// name, before the number.
type kind string

const (
	read  kind = "__READ__"
	write kind = "__WRIT__"
)

// RWLock is one lock, seen by one process. It is safe for use by many goroutines: each of
// them queues up with a znode of its own, unless its context is a hold's. It must not be copied.
type RWLock struct {
	noCopy noCopy
	s      *Session
	dir    string
}

// place is our znode in the queue.
type place struct {
	node    string
	session int64 // the znode goes when this session ends
}

// New returns the lock whose directory is path, an absolute path below the root such as
// /locks/orders. It sends nothing: Lock reports a bad argument. The directory's children
// whose names end in __READ__<ten digits> or __WRIT__<ten digits> are the queue; others are
// ignored.
func New(s *Session, path string) *RWLock {
	return &RWLock{s: s, dir: path}
}

// Lock blocks until this call's znode is the first in the queue, and returns the hold. The
// directory and its parents are created where they are missing.
//
// Lock, called with the context of a hold or with one made from it, is re-entry: it returns
// the same hold at once, and one more Unlock is due. Inside a hold that RLock began it
// returns ErrUpgrade. Only the same RWLock knows the hold: another one for the same path
// queues up.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later. A broken
// connection or the end of the session does not end the wait. What the server refuses, such
// as zk.ErrNoAuth, does.
func (l *RWLock) Lock(ctx context.Context) (*Hold, error) {
	return l.lock(ctx, forever, write)
}

// RLock is Lock for a reader: it blocks until no writer stands before it, and readers hold
// the lock together. Inside a hold that Lock began it is re-entry, too, and the hold stays a
// writer's.
func (l *RWLock) RLock(ctx context.Context) (*Hold, error) {
	return l.lock(ctx, forever, read)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within wait. With 0
// it waits for the servers' answers, and for nobody in the queue.
func (l *RWLock) TryLock(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.lock(ctx, wait, write)
}

// TryRLock is TryLock for a reader.
func (l *RWLock) TryRLock(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.lock(ctx, wait, read)
}

// lock is each of the four.
func (l *RWLock) lock(ctx context.Context, wait time.Duration, k kind) (*Hold, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", l.dir, whyEnded(ctx))
	}
	if h := holdIn(ctx, l); h != nil {
		inside, err := h.enter(k)
		if err != nil {
			return nil, failed("lock", l.dir, err)
		}
		if inside {
			return h, nil
		}
	}
	mayWait := wait > 0
	waiting := ctx // wait limits this one alone: the hold's context is made from ctx, without that limit
	if mayWait {
		limited, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
		defer stop()
		waiting = limited
	}
	h, err := l.queueUp(waiting, k, mayWait)
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	h.begin(ctx)
	return h, nil
}

// queueUp returns the hold when there is nobody to wait for any more. It returns as soon as
// waiting ends: what is on its way then goes on in the background, and the znode is deleted.
func (l *RWLock) queueUp(waiting context.Context, k kind, mayWait bool) (*Hold, error) {
	type result struct {
		h   *Hold
		err error
	}
	// No buffer: either the caller takes the result, or the goroutine sees that waiting has ended,
	// and deletes the znode.
	results := make(chan result)
	go func() {
		h, err := l.joinAndWait(waiting, k, mayWait)
		select {
		case results <- result{h, err}:
		case <-waiting.Done():
			if err == nil {
				_ = l.leave(h.place) // nobody will use it, and nobody is there to be told
			}
		}
	}()
	select {
	case r := <-results:
		return r.h, r.err
	case <-waiting.Done():
		return nil, whyEnded(waiting)
	}
}

// joinAndWait creates our znode, and waits until there is nobody to wait for any more. If the
// znode is gone meanwhile, it queues up again. If anything else fails, it leaves the queue.
func (l *RWLock) joinAndWait(waiting context.Context, k kind, mayWait bool) (*Hold, error) {
	for {
		mine, err := l.join(waiting, k)
		if err != nil {
			return nil, err
		}
		h, err := l.wait(waiting, mine, mayWait)
		if err == nil {
			h.kind = k // wait need not know the kind: it stands in the znode's name
			return h, nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		leaveErr := l.leave(mine)
		if isRefused(leaveErr) { // with ErrLost the znode is gone, and there is nothing to tell
			err = errors.Join(err, fmt.Errorf("leave the queue: delete %s: %w", mine.node, leaveErr))
		}
		return nil, err
	}
}

// join creates our znode. Its name has a guid, a random number. When the answer to the
// create is lost, nobody knows whether there is a znode, and join looks for that name.
//
// TODO 1: whoever lists the queue has to see which znodes are readers' and which are writers'.
// 待办 1：列出队列时，要看得出哪些 znode 是读者的，哪些是写者的。
func (l *RWLock) join(waiting context.Context, k kind) (place, error) {
	prefix := fmt.Sprintf("%s/_c_%016x-%s", l.dir, rand.Uint64(), "lock-") // k is not used yet
	for waiting.Err() == nil {
		session := l.s.conn.SessionID()
		node, err := create(l.s.conn, prefix, zk.FlagEphemeralSequential)
		// The library may keep a request, and send it in the next session. So when the session has
		// changed, an answer does not tell whose znode it is: look.
		sameSession := l.s.conn.SessionID() == session
		if err == nil && sameSession {
			return place{node, session}, nil
		}
		if err != nil && !l.s.mustAskAgain(err) {
			return place{}, err // the server refuses it, or the session is closed
		}
		mine, err := l.find(prefix)
		if err != nil || mine.node != "" {
			return mine, err
		}
	}
	return place{}, whyEnded(waiting)
}

// find looks for a znode whose path begins with prefix. It asks until a server has
// answered, even if the caller has given up: the znode would have to be deleted. The place
// has no node if there is none.
func (l *RWLock) find(prefix string) (place, error) {
	for {
		mine, err := l.look(prefix)
		if !l.s.mustAskAgain(err) {
			return mine, err
		}
		pause()
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
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return place{}, err
		}
		if stat.EphemeralOwner == session { // else it goes with an earlier session of ours
			return place{node, session}, nil
		}
	}
	return place{}, nil
}

// wait returns when there is nobody to wait for any more. After a wake-up it looks again:
// the predecessor may have been a waiter that died, or one of several readers. With
// zk.ErrNoNode our znode is gone.
func (l *RWLock) wait(waiting context.Context, mine place, mayWait bool) (*Hold, error) {
	for waiting.Err() == nil {
		// connection is a context, which ends when the present connection does. It is taken
		// before all that follows: if it has not ended when the list has come, our session has
		// not ended in between. If it ends later, the hold ends with it.
		connection := l.s.connection()
		if l.s.conn.SessionID() != mine.session {
			return nil, zk.ErrNoNode // our znode goes with its session
		}
		names, stat, err := l.s.conn.Children(l.dir)
		for l.s.mustAskAgain(err) {
			pause()
			names, stat, err = l.s.conn.Children(l.dir)
		}
		if err != nil {
			return nil, err
		}
		before, err := predecessor(names, pathpkg.Base(mine.node))
		if err != nil {
			return nil, err
		}
		if before == "" && connection.Err() != nil {
			pause() // the connection ended before the list came, and our session may be over: look again
			continue
		}
		if before == "" {
			// The fencing token is the number of the transaction that last changed the queue.
			// Take a holder before us for whom we had to wait. It took its token from a list in which
			// its znode still stood. The znode was deleted after that list, and before ours. So our
			// token is greater.
			token := stat.Pzxid
			return &Hold{lock: l, place: mine, connection: connection, token: token}, nil
		}
		if !mayWait {
			return nil, ErrLocked
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		for l.s.mustAskAgain(err) {
			pause()
			_, _, gone, err = l.s.conn.GetW(l.dir + "/" + before)
		}
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-gone: // or the watch is lost with its session: look again in either case
		case <-connection.Done(): // our session may have ended, too: look again
		case <-waiting.Done():
		}
	}
	return nil, whyEnded(waiting)
}

// leave deletes our znode, and goes on until it knows that the znode is gone, or until the
// server refuses. ErrLost means that it was gone before, or goes with its session.
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

// isRefused tells that leave has failed because the server refuses the delete.
func isRefused(leaveErr error) bool { return leaveErr != nil && !errors.Is(leaveErr, ErrLost) }

// Unlock is due once for each Lock. The last one deletes the znode, and goes on until it
// knows that the znode is gone. When ctx ends first, Unlock returns ctx's error at once, and
// the delete goes on in the background. If the server refuses it then, nobody hears of it.
//
// ctx may be the hold's context, or made from it. The release ends that context, too. From then on
// Unlock waits under the context that Lock was given, and keeps ctx's deadline. If ctx had ended
// already, for example because the hold was lost, Unlock does not wait.
//
// Unlock returns ErrNotHeld when it is called too often, and ErrLost when the hold was lost
// or the znode gone. After an error by which the server refuses the delete, such as
// zk.ErrNoAuth, Unlock can be called again.
func (h *Hold) Unlock(ctx context.Context) error {
	if h == nil || h.lock == nil {
		return fmt.Errorf("zklock: unlock: %w", ErrNotHeld)
	}
	if ctx == nil {
		return errNoContext
	}
	isLast, err := h.exit() // err is ErrLost if the hold was lost before
	if !isLast {
		return failed("unlock", h.lock.dir, err)
	}
	h.end(errReleased) // before anybody else can get in
	if context.Cause(ctx) == errReleased {
		// ctx was made from the hold's, and the line above has just ended it. So Unlock waits
		// under what was given to Lock, with ctx's deadline if it has one.
		deadline, has := ctx.Deadline()
		ctx = h.given
		if has {
			limited, stop := context.WithDeadline(ctx, deadline)
			defer stop()
			ctx = limited
		}
	}
	result := make(chan error, 1)
	go func() {
		leaveErr := h.lock.leave(h.place)
		if isRefused(leaveErr) {
			h.exitAgain()
		}
		result <- leaveErr
	}()
	select {
	case leaveErr := <-result: // if there is none, err is still ErrLost when the hold was lost before
		if leaveErr != nil {
			err = leaveErr
		}
		return failed("unlock", h.node, err)
	case <-ctx.Done():
		goesOn := fmt.Errorf("the delete goes on in the background: %w", whyEnded(ctx))
		return failed("unlock", h.node, errors.Join(err, goesOn))
	}
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
// TODO 3: whom does a reader wait for, and whom a writer?
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

// fewestDigits is how many digits the server gives a number, or more.
const fewestDigits = 10

// number reads a queue znode's number, behind the last "lock-" of its name. Numbers are
// compared, never names. ok is false for a child that is not of the queue.
//
// TODO 2: in step 6 the names end otherwise. Return the kind, too.
// 待办 2：第 6 步的名字，结尾不同。把种类也返回。
func number(name string) (n int, ok bool) {
	at := strings.LastIndex(name, "lock-")
	if at < 0 {
		return 0, false
	}
	digits := name[at+len("lock-"):]
	n, err := strconv.Atoi(digits)
	return n, err == nil && len(digits) >= fewestDigits
}
