package sharedlock

import (
	"context"
	"errors"
	"sync"
)

// Hold is what Lock and RLock return: the lock is held, until the last Unlock. Only a caller that
// has the Hold can unlock through this package. It is safe for use by many goroutines.
type Hold struct {
	lock  *RWLock
	mine  place
	token int64
	life  context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
	end   context.CancelCauseFunc

	mu    sync.Mutex
	count int // calls to Lock and RLock without an Unlock yet
}

// newHold returns a hold that is lost when its connection ends.
func newHold(l *RWLock, mine place, connection context.Context, token int64) *Hold {
	h := &Hold{lock: l, mine: mine, token: token, count: 1}
	h.life, h.end = context.WithCancelCause(connection)
	return h
}

// Context is for the work under the lock. It is made from parent, and ends with it. It also
// ends when the lock is released, and when the lock is lost: the cause is then ErrLost, and the
// work should stop. When somebody deletes the znode, only Unlock notices.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
	forget := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	context.AfterFunc(ctx, func() { forget() }) // else a long hold keeps each context that has ended
	if h.life.Err() != nil {
		cancel(context.Cause(h.life)) // AfterFunc cancels in a goroutine of its own, a moment later
	}
	return ctx
}

// holdIn returns the lock's hold that ctx carries, or nil. The hold may be over: released or lost.
func holdIn(ctx context.Context, l *RWLock) *Hold {
	h, _ := ctx.Value(l).(*Hold)
	return h
}

// enter counts one more Lock or RLock by the holder. It refuses if the hold is over.
//
// TODO 4: two readers hold the lock, and both ask to write. Which client does each of them wait for?
// 待办 4：两个读者都持有锁，又都要写。各自在等谁？
func (h *Hold) enter(k kind) error {
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

// Token is the fencing token. A writer's is greater than those of all earlier holds on the same
// path. A reader's is greater than those of all earlier writers. So a store keeps two numbers: the
// greatest token of any writer, and the greatest token of any client. It refuses a read whose token
// is below the first number, and a write whose token is below the second.
func (h *Hold) Token() int64 { return h.token }
