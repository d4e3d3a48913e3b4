package sharedlock

import (
	"context"
	"errors"
	"sync"
)

// Hold is one time of having the lock, from Lock or RLock to the last Unlock. Whoever has the
// hold can unlock through this package, and nobody else. It is safe for use by many goroutines.
type Hold struct {
	lock  *RWLock
	mine  place
	token int64
	life  context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
	end   context.CancelCauseFunc

	mu    sync.Mutex
	count int // calls to Lock and RLock without an Unlock yet
}

// newHold returns a hold that is lost when the connection is.
func newHold(l *RWLock, mine place, connection context.Context, token int64) *Hold {
	h := &Hold{lock: l, mine: mine, token: token, count: 1}
	h.life, h.end = context.WithCancelCause(connection)
	return h
}

// Context is for the work under the lock. It is made from parent, and ends with it. It also
// ends when the lock is lost, with the cause ErrLost: then the work should stop. And it ends
// when the lock is released. When somebody deletes the znode, only Unlock notices.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
	context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	if h.life.Err() != nil {
		cancel(context.Cause(h.life)) // at once, where AfterFunc would do it in a moment
	}
	return ctx
}

// holdIn returns the hold of the lock that ctx carries, or nil. It may be over.
func holdIn(ctx context.Context, l *RWLock) *Hold {
	h, _ := ctx.Value(l).(*Hold)
	return h
}

// enter counts one more Lock or RLock inside the hold. Nobody enters a hold that is over.
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

// Token is the fencing token. A writer's is greater than those of all holds before on the
// same path, a reader's than those of all writers before. So a store that knows who reads
// keeps two numbers, the greatest token of a writer, and the greatest of anybody. It refuses
// a read below the first, and a write below the second.
func (h *Hold) Token() int64 { return h.token }
