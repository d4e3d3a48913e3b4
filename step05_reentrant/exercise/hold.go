package exercise

import (
	"context"
	"errors"
	"sync"
)

// hold is the lock held by one caller. The context that Lock returned carries it.
type hold struct {
	place

	mu    sync.Mutex
	count int // calls to Lock without an Unlock yet
}

// A context carries each hold under its lock.
type holdOf struct{ lock any }

// begin makes the context that is the hold. It ends with ctx.
//
// TODO 4: it must end with the lease, too, with the cause ErrLost. While the lock is
// held, Keep makes the lease go on.
// TODO 5: it can carry the token, under a key of its own.
func begin(ctx context.Context, lock any, p place) (held context.Context) {
	return context.WithValue(ctx, holdOf{lock}, &hold{place: p, count: 1})
}

// acquire makes a hold that ends with ctx. It gives up when waiting ends.
//
// TODO 2: now that leave may take long, give up at once, and let Go do the rest.
// TODO 3: does ctx carry a hold of this lock already? Then count one more.
func (l *Lock) acquire(ctx, waiting context.Context, once bool) (held context.Context, err error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if waiting.Err() != nil {
		return nil, failed("lock", l.dir, ended(waiting))
	}
	p, err := l.stand(waiting, once)
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	return begin(ctx, l, p), nil
}

// exit ends the hold, and returns it, for it is to be released then.
//
// TODO 3: only the last of several Unlocks ends it.
func exit(held context.Context, lock any) (last *hold, err error) {
	h, ok := held.Value(holdOf{lock}).(*hold)
	if !ok {
		return nil, ErrNotHeld
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return nil, ErrNotHeld
	}
	h.count--
	return h, nil
}

// released is told what became of the release. If the server refused it, the last
// entry stays, and its exit can be tried again.
func (h *hold) released(err error) error {
	if err != nil && !errors.Is(err, ErrLost) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count = 1
	}
	return err
}

// Token returns the fencing token of the lock whose Lock returned held, and whether
// there is one.
//
// TODO 5: it is to be greater than those of all tenures before on the same path.
func Token(context.Context) (int64, bool) { return 0, false }
