package exercise

import (
	"context"
	"errors"
	"sync"
)

// hold is the lock held by one caller. The context that Lock returned carries it.
type hold struct {
	place
	end func() // ends that context

	mu    sync.Mutex
	count int // calls to Lock and RLock without an unlock yet
}

// A context carries each hold under its lock, and the last token.
type (
	holdOf  struct{ lock any }
	tokenOf struct{}
)

// begin makes the context that is the hold. It ends with ctx and with the lease,
// and when the lock is released: then it calls rest.
func begin(ctx context.Context, lock *RWLock, p place, rest func()) (held context.Context) {
	h := &hold{place: p, count: 1}
	held = context.WithValue(context.WithValue(ctx, holdOf{lock}, h), tokenOf{}, p.token)
	held, end := context.WithCancelCause(held)
	stop := context.AfterFunc(p.lease, func() { end(ErrLost) })
	h.end = func() {
		stop()
		end(ErrNotHeld)
		rest()
	}
	return held
}

// acquire makes a hold that ends with ctx. It gives up when waiting ends.
func (l *RWLock) acquire(ctx, waiting context.Context, once bool) (held context.Context, err error) {
	if held, err := again(ctx, waiting, l.s, l.dir, l); held != nil || err != nil {
		return held, err
	}
	p, err := l.queueUp(waiting, once)
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	return begin(ctx, l, p, l.s.Keep(p.lease)), nil
}

// again counts one more entry if ctx carries a hold of the lock. It returns nil
// if it carries none, or one that was released. Bad arguments end here.
//
// TODO 3: who reads and asks to write must be refused with ErrUpgrade: two readers
// who do so would wait for each other.
// 待办 3：持有读锁又要求写的，必须以 ErrUpgrade 拒绝：两个读者都这样做就会互相等待。
func again(ctx, waiting context.Context, s *Session, dir string, lock *RWLock) (held context.Context, err error) {
	if err := check(ctx, s, dir); err != nil {
		return nil, err
	}
	if waiting.Err() != nil {
		return nil, failed("lock", dir, ended(waiting))
	}
	h, ok := ctx.Value(holdOf{lock}).(*hold)
	if !ok {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return nil, nil
	}
	if context.Cause(h.lease) == ErrLost {
		return nil, failed("lock", dir, ErrLost)
	}
	h.count++
	return context.WithValue(ctx, tokenOf{}, h.token), nil
}

// exit ends one entry. It returns the hold if that was the last one, for it is to
// be released then, and ErrLost if the hold was lost.
//
// TODO 2: RUnlock must not end an entry by Lock, and Unlock none by RLock. So the
// hold has to count each kind by itself.
// 待办 2：RUnlock 不能结束经 Lock 的进入，Unlock 不能结束经 RLock 的。所以要按类型分别计数。
func exit(held context.Context, lock *RWLock) (last *hold, err error) {
	h, ok := held.Value(holdOf{lock}).(*hold)
	if !ok {
		return nil, ErrNotHeld
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		return nil, ErrNotHeld
	}
	if context.Cause(h.lease) == ErrLost {
		err = ErrLost
	}
	if h.count--; h.count > 0 {
		return nil, err
	}
	return h, err
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

// Token returns the fencing token of the lock whose Lock or RLock returned held. A
// writer's is greater than those of all before it, a reader's than all writers'.
func Token(held context.Context) (int64, bool) {
	if held == nil {
		return 0, false
	}
	token, ok := held.Value(tokenOf{}).(int64)
	return token, ok
}
