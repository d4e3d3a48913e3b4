package leased

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Hold stands for a lock that is held, from the Lock that acquired it to the last Unlock. Only code that has the
// Hold can unlock through this package. A Hold is safe for use by many goroutines.
type Hold struct {
	_       noCopy
	q       *queue
	place   place
	release func() error // releases the lock: the last Unlock calls it
	onLoss  func()       // is called when the hold is lost, with the session's mutex locked

	stopUsing func() // tells the lease that this hold does not need it any more

	mu       sync.Mutex
	count    int                       // calls to Lock whose Unlock is still due
	ended    error                     // a LostError or errReleased, once the hold has ended
	contexts map[<-chan struct{}]inner // see Context: for each Done channel of a parent, if it has not ended
}

// inner is a context that ends with a hold, and with the parents that have a certain Done channel.
type inner struct {
	context.Context
	end         context.CancelCauseFunc
	neverForget func() bool // so that forget does not follow its end
}

// workContext is what Hold.Context returns. It ends with its inner context, and has the values of its own parent.
type workContext struct {
	context.Context // the inner one
	values          context.Context
}

// Value returns the inner context itself when package context asks for it, to find the cause, or to end a
// context that was made from this one. Any other value is the parent's.
func (c workContext) Value(key any) any {
	if v := c.Context.Value(key); v == c.Context {
		return v
	}
	return c.values.Value(key)
}

// noCopy lets go vet warn of a copy.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// holdKey is the key under which a hold's context carries the hold. Two values for the same
// lock have the same key, so NewMutex may be called for each request.
type holdKey struct {
	s    *Session
	dir  string
	kind kind // the first of the queue's
}

func (q *queue) holdKey() holdKey { return holdKey{q.s, q.dir, q.kinds[0]} }

// errReleased is the cause with which the contexts of a released hold end.
var errReleased error = releasedError{}

type releasedError struct{}

func (releasedError) Error() string        { return "the lock was released" }
func (releasedError) Is(target error) bool { return target == ErrNotHeld }

// newHold returns the hold of our place, when no znode is left before it. begin makes it depend on the lease.
func newHold(q *queue, mine place) *Hold {
	h := &Hold{q: q, place: mine, count: 1, onLoss: func() {}, contexts: map[<-chan struct{}]inner{}}
	h.release = func() error { return q.leave(mine) }
	return h
}

// begin makes the hold end when its lease is over, which may be at once.
func (h *Hold) begin() {
	user := &leaseUser{hold: h.place.node, begun: time.Now(), lose: h.lose, notify: h.endContexts}
	h.stopUsing = h.q.s.useLease(h.place.lease, user)
}

// holdIn returns the hold of the lock that ctx carries, or nil. The hold may
// have been released meanwhile.
func holdIn(ctx context.Context, q *queue) *Hold {
	h, _ := ctx.Value(q.holdKey()).(*Hold)
	return h
}

// Context returns a context for work under the lock. It is made from parent, and ends with it. It
// also ends when the lock is lost, with a LostError as its cause, and when the lock is released, with a cause for
// which errors.Is(cause, ErrNotHeld) is true.
//
// Lock with this context, or with one made from it, is re-entry.
//
// A hold may have any number of contexts: those whose parents have the same Done channel end together, as one.
//
// If parent is of a type of your own, its methods must not block: the hold's other contexts would end late.
//
// For a nil Hold, Context returns a context that has ended.
func (h *Hold) Context(parent context.Context) context.Context {
	if h.isNone() {
		ctx, end := context.WithCancelCause(parent)
		end(ErrNotHeld)
		return ctx
	}
	return workContext{h.innerContext(parent), context.WithValue(parent, h.q.holdKey(), h)}
}

// innerContext returns the context that ends with the hold and with parent. It calls parent without a mutex: parent
// may be of any type.
func (h *Hold) innerContext(parent context.Context) context.Context {
	done := parent.Done()
	h.mu.Lock()
	known, isKnown := h.contexts[done]
	h.mu.Unlock()
	if isKnown {
		return known.Context
	}
	ctx, end := context.WithCancelCause(parent)
	used, ended := h.keep(done, inner{Context: ctx, end: end})
	if ended != nil || used != ctx {
		end(ended)
	}
	return used
}

// keep makes a new inner context end with the hold, and returns the one to be used: another goroutine may have been
// faster. If the hold has ended, keep returns why.
func (h *Hold) keep(done <-chan struct{}, made inner) (used context.Context, ended error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return made.Context, h.ended
	}
	if known, isKnown := h.contexts[done]; isKnown {
		return known.Context, nil
	}
	made.neverForget = context.AfterFunc(made.Context, func() { h.forget(done) })
	h.contexts[done] = made
	return made.Context, nil
}

// forget drops an inner context that has ended with its parents.
func (h *Hold) forget(done <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.contexts, done)
}

// Token returns the fencing token. It is greater than those of all earlier holds on the same path, with two
// exceptions:
//
//   - The tokens of readers that hold the lock together do not say which reader came first.
//   - When a Cohort passes its znode from one hold to the next, both have the same token.
//
// Let the store refuse a token that is smaller than one that it has seen. Then, from the next holder's first write
// on, the store is safe from a holder that has lost the lock and does not know it yet.
func (h *Hold) Token() int64 {
	if h.isNone() {
		return 0
	}
	return h.place.token
}

// Unlock is due once for each Lock, TryLock, RLock and TryRLock that has returned the hold. The
// last Unlock ends the hold's contexts and releases the lock.
//
// Unlock retries until it knows that the lock is released. It returns ErrNoAnswer at once if there is no connection,
// and otherwise after the session's timeout without an answer. If the lock was lost, it waits at most a tenth of the
// timeout, and returns ErrLost. Whenever it does not wait any longer, the znode still exists, and the release continues
// in the background: do not call Unlock again, unless the log says that a server has refused the release. The znode is
// deleted by this release, or by the servers with the session.
//
// The error is ErrNotHeld if no Unlock was due. It is ErrLost if the lock was lost before: this Unlock counts,
// and the others that were due are still due. If a server has refused to delete the znode, the error is the
// refusal, such as zk.ErrNoAuth, and also ErrLost if the lock was lost before: repair the cause, and call Unlock
// again.
func (h *Hold) Unlock() error {
	if h.isNone() {
		return fmt.Errorf("leased: unlock: the hold is nil, as when Lock has returned an error: %w", ErrNotHeld)
	}
	isLast, lost := h.exit()
	if !isLast {
		return failed("unlock", h.q.dir, lost)
	}
	h.end(errReleased) // before another client can acquire the lock
	h.stopUsing()

	limit, noAnswer := h.answerLimit(lost != nil) // before the delete, which may be what breaks the connection
	result := make(chan error, 1)
	begun := h.q.s.run(func() {
		err := h.release()
		if isRefused(err) {
			h.allowUnlockAgain()
			h.q.s.log.say(slog.LevelError, "leased: a server has refused to release a lock", "znode", h.place.node, "error", err)
		}
		result <- err
	})
	if !begun { // the session is closed, and the servers delete the znode with it
		return failed("unlock", h.place.node, cmp.Or(lost, error(h.q.s.whyClosed())))
	}
	var err error
	select {
	case err = <-result:
	case <-time.After(limit):
		why := noAnswer
		if lost != nil {
			why = lost
		}
		return failed("unlock", h.place.node, fmt.Errorf("%w; the znode stays until the delete, "+
			"which continues in the background, or until the session ends", why))
	}
	switch {
	case lost != nil && isRefused(err):
		err = fmt.Errorf("%w; %w", err, lost)
	case lost != nil:
		err = lost // why the work had to stop: this says more than what happened to the znode
	}
	return failed("unlock", h.place.node, err)
}

// answerLimit returns how long Unlock waits for an answer, and the error if none comes. Without a connection the wait
// may be long, and after a loss the caller has more urgent things to do.
func (h *Hold) answerLimit(isLost bool) (limit time.Duration, noAnswer error) {
	stats := h.q.s.Stats()
	timeout := h.q.s.Timeout()
	switch {
	case !stats.Connected:
		return 0, fmt.Errorf("%w: there is no connection", ErrNoAnswer)
	case isLost:
		limit = timeout / 10
	default:
		limit = timeout
	}
	return limit, fmt.Errorf("%w within %v", ErrNoAnswer, limit)
}

// isNone reports whether this is not a hold that Lock has returned with a nil error.
func (h *Hold) isNone() bool { return h == nil || h.q == nil }

// enter counts one more call to Lock or RLock inside the hold. inside is false if the hold was
// released: then the caller queues up like any other.
//
// No call enters a hold that was lost, since new work in it could not be notified of the loss: its
// holders only have to call Unlock. And no call enters a reader's hold to write.
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

// exit counts one call to Unlock. isLast reports whether it was the last one: then the lock has to be
// released. Otherwise err is what Unlock returns. In both cases err is ErrLost if the hold was lost.
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

// end ends the hold and its contexts. When it returns, all of them have ended.
func (h *Hold) end(why error) {
	h.mark(why)
	h.endContexts()
}

// mark makes the hold one that has ended. Its contexts have to end, too.
func (h *Hold) mark(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = why
	}
}

// endContexts ends the contexts of a hold that has ended. When it returns, all of them have ended, also if another
// goroutine is about to end them. It locks no mutex meanwhile: a caller's contexts may run code of their own.
func (h *Hold) endContexts() {
	h.mu.Lock()
	why, contexts := h.ended, maps.Clone(h.contexts)
	h.mu.Unlock()
	for _, ctx := range contexts {
		ctx.neverForget()
		ctx.end(why)
	}
	h.mu.Lock()
	clear(h.contexts)
	h.mu.Unlock()
}

// lose is called when the lease is over, with the session's mutex locked. Then endContexts is due.
func (h *Hold) lose(why *LostError) {
	h.mark(why)
	h.onLoss()
}
