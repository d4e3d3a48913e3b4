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
// 待办 4：它也必须随租约结束，原因是 ErrLost。持锁期间由 Keep 续租。
// TODO 5: it can carry the token, under a key of its own.
// 待办 5：它可以用自己的键带上令牌。
func begin(ctx context.Context, lock any, p place) (held context.Context) {
	return context.WithValue(ctx, holdOf{lock}, &hold{place: p, count: 1})
}

// acquire makes a hold that ends with ctx. It gives up when waiting ends.
//
// TODO 2: now that leave may take long, give up at once, and let Go do the rest.
// 待办 2：leave 现在可能要很久，所以马上放弃，其余交给 Go。
// TODO 3: does ctx carry a hold of this lock already? Then count one more.
// 待办 3：ctx 是不是已经带着这把锁的持锁？是就把计数加一。
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
// 待办 3：几次 Unlock 里只有最后一次结束持锁。
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
// 待办 5：它要大于同一路径上之前所有持锁期的令牌。
func Token(context.Context) (int64, bool) { return 0, false }
