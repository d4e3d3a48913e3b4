package leased

import (
	"context"
	"fmt"
	"sync"
)

// hold is one time of having the lock, from Lock to the last Unlock. All contexts that
// Lock returned in this time carry it.
type hold struct {
	lock *Lock
	place
	stopUsing func() // tells the lease that this hold needs it no more

	mu       sync.Mutex
	count    int                   // calls to Lock without an Unlock yet
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
// token of the lock whose Lock returned the context.
type (
	holdKey struct{ lock *Lock }
	tokenOf struct{}
)

// errReleased is the cause of a context whose hold was released.
var errReleased = fmt.Errorf("the lock was released: %w", ErrNotHeld)

// begin makes a hold, and the first context that carries it. The context ends with
// ctx, when the lease is over, and when the lock is released.
func begin(ctx context.Context, lock *Lock, mine place) (held context.Context) {
	h := &hold{lock: lock, place: mine, count: 1, contexts: map[*heldContext]bool{}}
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
func holdIn(ctx context.Context, lock *Lock) *hold {
	c, ok := ctx.Value(holdKey{lock}).(*heldContext)
	if !ok {
		return nil
	}
	return c.hold
}

// enter counts one more call to Lock inside the hold that ctx carries. inside is false if the
// hold was released: its caller queues up like anybody else. (Such a ctx was made by
// context.WithoutCancel, or the release will end it in a moment: acquire refuses one that has ended.)
//
// A hold can have ended and still wait for an Unlock: it was lost, or the server has refused
// the delete of its last Unlock. Nobody enters it. Its contexts have ended for good, so new
// work in it could not be told of a loss. All that is left to do is to call Unlock.
func (h *hold) enter(ctx context.Context) (held context.Context, inside bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return nil, false, nil
	}
	if h.ended != nil {
		return nil, true, h.ended
	}
	h.count++
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

// exit counts one call to Unlock for the hold that the context carries. last tells
// that it was the last one: the lock is to be released. Without a hold, or with one that
// was released, exit returns nil. lost is ErrLost if the hold was lost.
func exit(held context.Context, lock *Lock) (h *hold, last bool, lost error) {
	h = holdIn(held, lock)
	if h == nil {
		return nil, false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return nil, false, nil
	}
	h.count--
	if h.ended == ErrLost {
		lost = ErrLost
	}
	return h, h.count == 0, lost
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

// release is called by the last Unlock, before the znode is deleted.
func (h *hold) release() {
	h.end(errReleased)
	h.stopUsing()
}

// allowUnlockAgain takes back the last Unlock: the server has refused the delete.
func (h *hold) allowUnlockAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count = 1
}

// Token returns the fencing token of the lock whose Lock returned held, and whether
// there is one. It is greater than those of all holds before on the same path. (In a Cohort,
// the holds that follow one another with one znode have the same token.) A store that
// refuses a smaller one than it has seen is safe from a holder that has lost the lock and
// does not know it yet, once the store has seen the next holder's token.
func Token(held context.Context) (int64, bool) {
	if held == nil {
		return 0, false
	}
	token, ok := held.Value(tokenOf{}).(int64)
	return token, ok
}
