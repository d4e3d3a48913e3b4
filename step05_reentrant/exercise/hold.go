package reentrant

import (
	"context"
	"fmt"
	"sync"
)

// Hold is one time of having the lock, from Lock to the last Unlock. Whoever has the hold
// can unlock, and nobody else. It is safe for use by many goroutines.
type Hold struct {
	lock *Lock
	place
	connection context.Context // when it ends, the hold is lost
	token      int64

	given context.Context // what Lock was given
	ctx   context.Context // what Context returns, made from given
	stop  context.CancelCauseFunc

	mu         sync.Mutex
	count      int         // calls to Lock without an Unlock yet
	ended      error       // ErrLost or errReleased, once ctx has been ended
	stopListen func() bool // so that the end of the connection does not call end any more
}

// holdKey is the key under which a hold's context carries the hold: one for each lock.
type holdKey struct{ lock *Lock }

// errReleased is the cause of a context whose hold was released.
var errReleased = fmt.Errorf("the lock was released: %w", ErrNotHeld)

// begin makes the hold's context.
func (h *Hold) begin(given context.Context) {
	h.mu.Lock() // end waits for it, should the connection have ended already
	defer h.mu.Unlock()
	h.count = 1
	h.given = given
	carrying := context.WithValue(given, holdKey{h.lock}, h)
	h.ctx, h.stop = context.WithCancelCause(carrying)
	h.stopListen = context.AfterFunc(h.connection, func() { h.end(ErrLost) })
}

// Context ends, with the cause ErrLost, when the lock is lost. Work under the lock should
// stop then, and call Unlock. It ends when the lock is released. It also ends with the context
// that was given to Lock; in that case the lock is still held, and Unlock is due. When
// somebody deletes the znode, only Unlock notices.
func (h *Hold) Context() context.Context { return h.ctx }

// Token is the fencing token. It is greater than those of all holds before on the same
// path. A store that refuses a smaller token than it has seen is safe from a late write, once
// it has seen the token of the next holder.
func (h *Hold) Token() int64 { return h.token }

// holdIn returns the hold of the lock that ctx carries, or nil. It may be over.
func holdIn(ctx context.Context, lock *Lock) *Hold {
	h, _ := ctx.Value(holdKey{lock}).(*Hold)
	return h
}

// enter counts one more Lock inside the hold. inside is false if the hold was released, and
// then the caller queues up like anybody else. (The hold's context has ended with it, so the
// caller came here with one made by context.WithoutCancel, or while another goroutine unlocks.)
// Nobody enters a hold that was lost: all that is left to do in it is to call Unlock.
func (h *Hold) enter() (inside bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return false, nil
	}
	if h.ended != nil {
		return false, h.ended
	}
	h.count++
	return true, nil
}

// exit counts one Unlock. isLast tells that the lock is to be released.
func (h *Hold) exit() (isLast bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return false, ErrNotHeld
	}
	h.count--
	if h.ended == ErrLost {
		err = ErrLost
	}
	return h.count == 0, err
}

// exitAgain takes the last exit back: the server has refused the delete.
func (h *Hold) exitAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count = 1
}

// end ends the hold's context, if that has not ended yet.
func (h *Hold) end(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = cause
	h.stopListen()
	h.stop(cause)
}

// noCopy makes go vet warn of a copied lock: a copy would not find the holds of the original.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
