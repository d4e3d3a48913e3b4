package reentrant

import (
	"context"
	"errors"
	"sync"
)

// Hold is what Lock returns: the lock is held, until the last Unlock. Only a caller that has the
// Hold can unlock through this package. It is safe for use by many goroutines.
type Hold struct {
	lock  *Lock
	mine  place
	token int64
	life  context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
	end   context.CancelCauseFunc

	mu    sync.Mutex
	count int // calls to Lock without an Unlock yet
}

// newHold returns a hold that is lost when its connection ends.
func newHold(l *Lock, mine place, connection context.Context, token int64) *Hold {
	h := &Hold{lock: l, mine: mine, token: token, count: 1}
	h.life, h.end = context.WithCancelCause(connection)
	return h
}

// Context is for the work under the lock. It is made from parent, and ends with it. It also
// ends when the lock is released, and when the lock is lost: the cause is then ErrLost, and the
// work should stop. When somebody deletes the znode, only Unlock notices.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
	context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	if h.life.Err() != nil {
		cancel(context.Cause(h.life)) // AfterFunc cancels in a goroutine of its own, a moment later
	}
	return ctx
}

// holdIn returns the lock's hold that ctx carries, or nil. The hold may be over: released or lost.
func holdIn(ctx context.Context, l *Lock) *Hold {
	h, _ := ctx.Value(l).(*Hold)
	return h
}

// enter counts one more Lock by the holder. It refuses if the hold is over.
func (h *Hold) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life.Err() != nil {
		return context.Cause(h.life)
	}
	h.count++
	return nil
}

// lost returns ErrLost if the hold was lost, else nil.
func (h *Hold) lost() error {
	if cause := context.Cause(h.life); errors.Is(cause, ErrLost) {
		return cause
	}
	return nil
}

// Token is the fencing token. It is greater than those of all earlier holds on the same
// path. A store that refuses a token smaller than the greatest it has seen is safe from a late
// write, once it has seen the token of the next holder.
func (h *Hold) Token() int64 { return h.token }
