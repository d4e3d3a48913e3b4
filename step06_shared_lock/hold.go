package sharedlock

import (
	"context"
	"fmt"
	"sync"
)

// hold is one time of having the lock, from the call that let us in to the last unlock. All
// contexts that Lock and RLock returned in this time carry it.
type hold struct {
	lock *RWLock
	place
	stopUsing func() // tells the lease that this hold needs it no more

	mu       sync.Mutex
	count    map[kind]int          // calls to Lock, and to RLock, without an unlock yet
	ended    error                 // ErrLost or errReleased, once the hold has ended
	contexts map[*heldContext]bool // they end with the hold
}

// heldContext is one context that newContext has made, as its hold knows it. The context
// itself carries a pointer to it: so one gets from the context to the hold.
type heldContext struct {
	hold *hold
	done <-chan struct{} // the context's Done channel: endsWithHold recognises the context by it
	end  context.CancelCauseFunc
}

// The keys of what a context carries: a heldContext for each lock that is held, and the
// token of the lock whose Lock or RLock returned the context.
type (
	holdKey struct{ lock *RWLock }
	tokenOf struct{}
)

// errReleased is the cause of a context whose hold was released.
var errReleased = fmt.Errorf("the lock was released: %w", ErrNotHeld)

// begin makes a hold, and the first context that carries it. The context ends with
// ctx, when the lease is over, and when the lock is released.
func begin(ctx context.Context, lock *RWLock, mine place) (held context.Context) {
	h := &hold{lock: lock, place: mine, count: map[kind]int{mine.kind: 1}, contexts: map[*heldContext]bool{}}
	h.mu.Lock() // newContext needs it locked; nobody else has h yet
	held = h.newContext(ctx)
	h.mu.Unlock()
	h.stopUsing = lock.s.useLease(mine.lease, h.lose)
	return held
}

// newContext makes a context that carries the hold: it ends with ctx, and with the
// hold. The caller has h.mu.
func (h *hold) newContext(ctx context.Context) (held context.Context) {
	held, end := context.WithCancelCause(ctx)
	c := &heldContext{hold: h, done: held.Done(), end: end}
	h.contexts[c] = true
	context.AfterFunc(held, func() { h.forget(c) })
	held = context.WithValue(held, holdKey{h.lock}, c)
	return context.WithValue(held, tokenOf{}, h.token)
}

// forget is called when a context has ended, so that a long hold does not collect contexts
// that have ended. It runs on a goroutine of its own (AfterFunc). So c.end can be called with
// h.mu locked.
func (h *hold) forget(c *heldContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.contexts, c)
}

// holdIn returns the hold of the lock that ctx carries, nil if there is none. The hold may
// have been released meanwhile.
func holdIn(ctx context.Context, lock *RWLock) *hold {
	c, ok := ctx.Value(holdKey{lock}).(*heldContext)
	if !ok {
		return nil
	}
	return c.hold
}

// enter counts one more call to Lock or RLock inside the hold that ctx carries. inside is
// false if the hold was released: then the caller queues up like anybody else.
//
// A hold can have ended and still wait for an unlock: it was lost, or the server has refused
// its last unlock. Nobody enters such a hold: enter returns why it has ended.
// Nobody enters a read hold to write, either: enter returns ErrUpgrade, and the hold goes on.
func (h *hold) enter(ctx context.Context, k kind) (held context.Context, inside bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entries() == 0 {
		return nil, false, nil
	}
	if h.ended != nil {
		return nil, true, h.ended
	}
	// Two readers that both queued up as writers would wait for each other.
	if h.kind == read && k == write {
		return nil, true, ErrUpgrade
	}
	h.count[k]++
	if h.endsWithHold(ctx) {
		return ctx, true, nil
	}
	return h.newContext(ctx), true, nil
}

// endsWithHold reports whether a context surely ends with the hold: it has the Done channel
// of the context that we made. Any other may be one of context.WithoutCancel, which does
// not end.
func (h *hold) endsWithHold(ctx context.Context) bool {
	c := ctx.Value(holdKey{h.lock}).(*heldContext)
	return ctx.Done() == c.done
}

// exit counts one call to Unlock or RUnlock for the hold that the context carries. last tells
// that it was the last one: the lock is to be released. exit returns nil if there is no hold,
// or no call of this kind left to undo in it. lost is ErrLost if the hold was lost.
func exit(held context.Context, lock *RWLock, k kind) (h *hold, last bool, lost error) {
	h = holdIn(held, lock)
	if h == nil {
		return nil, false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count[k] == 0 {
		return nil, false, nil
	}
	h.count[k]--
	if h.ended == ErrLost {
		lost = ErrLost
	}
	return h, h.entries() == 0, lost
}

// end ends all contexts of the hold. It has h.mu meanwhile: forget, which needs h.mu, too,
// runs on a goroutine of its own.
func (h *hold) end(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = cause
	for c := range h.contexts {
		c.end(cause)
	}
}

// lose is called when the lease is over.
func (h *hold) lose() { h.end(ErrLost) }

// release is called by the last unlock, before the znode is deleted.
func (h *hold) release() {
	h.end(errReleased)
	h.stopUsing()
}

// allowUnlockAgain takes back the last unlock: the server has refused the delete. Only an
// unlock of the same kind can be called again.
func (h *hold) allowUnlockAgain(k kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[k] = 1
}

// entries is the number of calls without an unlock yet. The caller has h.mu.
func (h *hold) entries() int { return h.count[read] + h.count[write] }

// Token returns the fencing token of the lock whose Lock or RLock returned held, and
// whether there is one. A writer's token is greater than those of all holders before
// it; a reader's token is greater than those of all writers before it. Two readers may have
// the same.
func Token(held context.Context) (int64, bool) {
	if held == nil {
		return 0, false
	}
	token, ok := held.Value(tokenOf{}).(int64)
	return token, ok
}
