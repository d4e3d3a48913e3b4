package leased

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Hold is one time of holding a lock: from the Lock that acquired it to the last Unlock. Code that has the hold
// can unlock, and no other code can through this package. It is safe for use by many goroutines.
type Hold struct {
	_       noCopy
	q       *queue
	place   place
	release func() error // gives the lock back: the last Unlock runs it
	onLoss  func()       // is called when the hold is lost, with the session's mutex locked

	stopUsing func() // tells the lease that this hold needs it no more

	mu       sync.Mutex
	count    int                                         // calls to Lock without an Unlock yet
	ended    error                                       // a LostError or errReleased, once the hold has ended
	contexts map[context.Context]context.CancelCauseFunc // those that Context has made, and that go on
}

// noCopy lets go vet warn of a copy.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// holdKey is the key under which a hold's context carries the hold. Two values that stand for one
// lock have one key: NewMutex may be called for each request.
type holdKey struct {
	s    *Session
	dir  string
	kind kind // the first of the queue's
}

func (q *queue) holdKey() holdKey { return holdKey{q.s, q.dir, q.kinds[0]} }

// errReleased is why a hold has ended that was released.
var errReleased = fmt.Errorf("the lock was released: %w", ErrNotHeld)

// newHold is the hold that our place gives, once no znode before it is left. begin makes it depend on the lease.
func newHold(q *queue, mine place) *Hold {
	h := &Hold{q: q, place: mine, count: 1, onLoss: func() {}, contexts: map[context.Context]context.CancelCauseFunc{}}
	h.release = func() error { return q.leave(mine) }
	return h
}

// begin makes the hold end when its lease is over. That may be at once.
func (h *Hold) begin() {
	h.q.s.taken.Add(1)
	h.stopUsing = h.q.s.useLease(h.place.lease, &leaseUser{hold: h.place.node, begun: time.Now(), lose: h.lose})
}

// holdIn returns the hold of the lock that ctx carries, nil if there is none. The hold may
// have been released meanwhile.
func holdIn(ctx context.Context, q *queue) *Hold {
	h, _ := ctx.Value(q.holdKey()).(*Hold)
	return h
}

// Context returns a context for work under the lock. It is made from parent, and ends with it. It
// also ends when the lock is lost, with a LostError as its cause, and when it is released.
//
// To lock again with it, or with a context made from it, is re-entry.
//
// If parent is of a type of your own, its methods must not block. When the hold is lost, they are
// called with the session's mutex locked, and the session would stand still.
//
// A hold that is nil makes a context that has ended.
func (h *Hold) Context(parent context.Context) context.Context {
	if h.isNone() {
		ctx, end := context.WithCancelCause(parent)
		end(ErrNotHeld)
		return ctx
	}
	ctx, end := context.WithCancelCause(context.WithValue(parent, h.q.holdKey(), h))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		end(h.ended)
		return ctx
	}
	h.contexts[ctx] = end
	context.AfterFunc(ctx, func() { h.forget(ctx) })
	return ctx
}

// forget drops a context that has ended with its parent.
func (h *Hold) forget(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.contexts, ctx)
}

// Token is the fencing token. It is greater than those of all holds before on the same path,
// except that holds which may overlap can have the same: those of readers beside one another, and
// those that follow one another with one znode of a Cohort. A store that refuses a
// smaller token than it has seen is safe from a holder that has lost the lock and has not been notified
// yet, once the store has seen the next holder's token.
func (h *Hold) Token() int64 {
	if h.isNone() {
		return 0
	}
	return h.place.token
}

// Unlock is due once for each Lock, TryLock, RLock and TryRLock that has returned the hold. The
// last one ends the hold's contexts and releases the lock.
//
// Unlock goes on until it knows that the lock is released. If no server answers for the session's
// time-out, it returns ErrNoAnswer, and the release goes on in the background: it needs no second
// call. By then the servers have ended the session, and have deleted the znode with it, or they
// will.
//
// The error is ErrNotHeld if no Unlock was due. It is ErrLost if the lock was lost before: this Unlock
// is done then, and the others that are due are left. After any other error, such as zk.ErrNoAuth, the server has
// refused to delete the znode, and Unlock can be called again.
func (h *Hold) Unlock() error {
	if h.isNone() {
		return fmt.Errorf("leased: unlock: the hold is nil, as when Lock has returned an error: %w", ErrNotHeld)
	}
	isLast, lost := h.exit()
	if !isLast {
		return failed("unlock", h.q.dir, lost)
	}
	h.end(errReleased) // before anybody else can get in
	h.stopUsing()

	result := make(chan error, 1)
	begun := h.q.s.run(func() {
		err := h.release()
		if isRefused(err) {
			h.allowUnlockAgain()
			h.q.s.log.say(slog.LevelError, "leased: a server has refused to release a lock", "znode", h.place.node, "error", err)
		}
		result <- err
	})
	if !begun { // the session is closed, and the znode goes with it
		result <- h.q.s.whyClosed()
	}
	timeout := h.q.s.Timeout()
	select {
	case err := <-result:
		if lost != nil && !isRefused(err) {
			err = lost // why the work had to stop: more than what became of the znode
		}
		return failed("unlock", h.place.node, err)
	case <-time.After(timeout):
		err := fmt.Errorf("%w within the time-out of %v, the delete continues in the background", ErrNoAnswer, timeout)
		if lost != nil {
			err = fmt.Errorf("%w; %w", err, lost)
		}
		return failed("unlock", h.place.node, err)
	}
}

// isNone tells that this is not what Lock returns together with a nil error.
func (h *Hold) isNone() bool { return h == nil || h.q == nil }

// enter counts one more call to Lock or RLock inside the hold. inside is false if the hold was
// released: then the caller queues up like anybody else.
//
// No call enters a hold that has ended: new work in it could not be notified of a loss. All
// that is left to do is to call Unlock. And no call enters a reader's hold to write.
func (h *Hold) enter(k kind) (inside bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return false, nil
	}
	if h.ended != nil {
		return true, h.ended
	}
	// Two readers that both queued up as writers would wait for each other.
	if h.place.kind == read && k == write {
		return true, ErrUpgrade
	}
	h.count++
	return true, nil
}

// exit counts one call to Unlock. isLast tells that it was the last one: the lock is to be
// released. If not, err is what Unlock returns. In either case it is ErrLost if the hold was lost.
func (h *Hold) exit() (isLast bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return false, ErrNotHeld
	}
	h.count--
	if h.ended != errReleased {
		err = h.ended
	}
	return h.count == 0, err
}

// allowUnlockAgain takes back the last Unlock: the server has refused the delete.
func (h *Hold) allowUnlockAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count = 1
}

// end ends the hold's contexts. When it returns, all of them have ended.
func (h *Hold) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = why
	for _, end := range h.contexts {
		end(why)
	}
	clear(h.contexts)
}

// lose is called when the lease is over, with the session's mutex locked.
func (h *Hold) lose(why *LostError) {
	h.end(why)
	h.onLoss()
}
