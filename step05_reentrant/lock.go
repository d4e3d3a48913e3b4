// Package reentrant is step 5: the queue of step 4, made into a lock to rely
// on. A lost reply does no harm, the holder may lock again, a release is sure,
// a holder that has lost the lock is told, and each tenure has a fencing token.
//
// Goroutines of one process that use one Lock queue in the process first. One
// znode stands in ZooKeeper's queue for all of them, and a tenure is handed on
// from one to the next for a short while before the znode is deleted.
package reentrant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A tenure is handed on inside the process so often and for so long at most:
// then other processes have their turn.
const (
	maxHandOns = 16
	maxTenure  = 100 * time.Millisecond
)

// The errors that callers ask for, with errors.Is.
var (
	ErrLocked  = errors.New("somebody else holds the lock")
	ErrNotHeld = errors.New("the context does not hold the lock: give Unlock what Lock returned, once for each Lock")
	ErrLost    = errors.New("the lock was lost: its session ended or was cut off, or its znode was deleted")
)

// Lock is one lock, as one process has it. It is safe for use by many
// goroutines; those of a process should share one Lock.
type Lock struct {
	s   *Session
	dir string

	mu       sync.Mutex
	line     []*waiter          // the process's own goroutines that want the lock, in order
	held     bool               // one of them has it
	busy     bool               // it is held, or run stands in ZooKeeper's queue for the line
	withdraw context.CancelFunc // makes run leave that queue
}

// waiter is a call to Lock or TryLock that waits.
type waiter struct {
	ctx    context.Context
	once   bool // do not wait behind anybody
	answer chan answer
}

type answer struct {
	held context.Context
	err  error
}

// hold is the lock held by one of the process's goroutines.
type hold struct {
	tenure
	count   int                     // calls to Lock without an Unlock yet, guarded by Lock.mu
	end     context.CancelCauseFunc // ends the context that was given out
	unwatch func() bool             // stops waiting for the loss; false: it has come
}

// tenure is the time for which our znode is the first in ZooKeeper's queue.
type tenure struct {
	place
	start   time.Time
	handOns int
}

// holdOf is the key under which a context carries its hold of a lock.
type holdOf struct{ *Lock }

// anyHold is the key of the innermost hold, for Token.
type anyHold struct{}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children whose names end in lock-<number> are the queue, so
// that zk.Lock and Curator's InterProcessMutex stand in the same one. Others
// are ignored.
func New(s *Session, path string) *Lock { return &Lock{s: s, dir: path} }

// Lock blocks until the caller holds the lock, and returns the context that is
// the hold. Its three uses:
//
//   - Unlock needs it, so a stranger cannot unlock.
//   - Lock, called with it or with a context made from it, is re-entry: it
//     returns at once, and one more Unlock is due. A goroutine that is given
//     the context shares the hold, and nothing keeps the two apart.
//   - It is cancelled with cause ErrLost when the lock can no longer be relied
//     on: the session has expired, or has been cut off for so long that it
//     might. Work under the lock should stop then. (A znode deleted by hand is
//     not noticed before Unlock, which answers ErrLost.)
//
// The hold ends with ctx, too: a deadline in ctx is one for the work. For the
// waiting alone there is TryLock. When ctx ends first, Lock returns ctx's error
// at once; its znode is taken out of the queue in the background.
//
// A connection that fails, or a session that expires, does not end the wait.
// What the server refuses, such as zk.ErrNoAuth, does.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, nil, false)
}

// TryLock is Lock that returns ErrLocked when the lock is not to be had within
// wait. With 0 it asks once, and does not wait behind anybody.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if wait <= 0 {
		return l.acquire(ctx, nil, true)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return l.acquire(ctx, timer.C, false)
}

func (l *Lock) acquire(ctx context.Context, late <-chan time.Time, once bool) (context.Context, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", l.dir, ended(ctx))
	}
	if again, err := l.reenter(ctx); err != nil {
		return nil, failed("lock", l.dir, err)
	} else if again {
		return ctx, nil
	}
	w := &waiter{ctx, once, make(chan answer, 1)}
	if l.join(w) {
		if late == nil && ctx.Done() == nil { // a caller who cannot give up may as well go itself
			l.run()
		} else if !l.s.background(l.run) {
			l.proceed()
		}
	}
	var err error
	select {
	case a := <-w.answer:
		return a.held, failed("lock", l.dir, a.err)
	case <-late:
		err = ErrLocked
	case <-ctx.Done():
		err = ended(ctx)
	}
	if !l.leave(w) { // it was answered at the same moment
		if a := <-w.answer; a.err == nil {
			l.s.background(func() { _ = l.Unlock(a.held) })
		}
	}
	return nil, failed("lock", l.dir, err)
}

// reenter counts one more entry if ctx carries a hold of this lock.
func (l *Lock) reenter(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := ctx.Value(holdOf{l}).(*hold)
	if !ok || h.count == 0 {
		return false, nil
	}
	if h.life.ctx.Err() != nil {
		return false, ErrLost
	}
	h.count++
	return true, nil
}

// join puts a waiter at the end of the process's line. A waiter that will not
// wait is refused if it had to. first says that run is to be started for it.
func (l *Lock) join(w *waiter) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.once && (l.held || len(l.line) > 0) {
		w.answer <- answer{err: ErrLocked}
		return false
	}
	l.line = append(l.line, w)
	first = !l.busy
	l.busy = true
	return first
}

// leave takes a waiter out of the line; false means that it has its answer.
func (l *Lock) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.line, w)
	if i < 0 {
		return false
	}
	l.line = slices.Delete(l.line, i, i+1)
	l.withdrawIfIdle()
	return true
}

// withdrawIfIdle makes run leave ZooKeeper's queue if nobody is left to stand
// there for. The caller holds mu.
func (l *Lock) withdrawIfIdle() {
	if len(l.line) == 0 && l.withdraw != nil {
		l.withdraw()
	}
}

// Unlock ends a hold. The last Unlock of a hold that was entered several times
// hands the lock on to the next goroutine of this process, or deletes the
// znode: it returns once the server has said so. Lost replies are seen to.
//
// Unlock works with a context that has ended. It returns ErrNotHeld when held
// does not hold this lock (any more), and ErrLost when the lock was no longer
// there to be released. Without a word from the server for one session
// time-out it returns ErrLost, too, and the session goes on trying.
func (l *Lock) Unlock(held context.Context) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	h, ok := held.Value(holdOf{l}).(*hold)
	if !ok || h.count == 0 {
		l.mu.Unlock()
		return failed("unlock", l.dir, ErrNotHeld)
	}
	h.count--
	again := h.count > 0
	l.mu.Unlock()
	if again {
		return nil
	}
	if !h.unwatch() {
		return failed("unlock", h.node, ErrLost)
	}
	h.end(ErrNotHeld) // before anybody else can get in
	h.handOns++
	if h.handOns <= maxHandOns && time.Since(h.start) < maxTenure && l.grant(h.tenure) {
		return nil
	}
	return failed("unlock", h.node, l.finish(h.place))
}

// finish deletes the znode and, when that is certain, lets the line go on. As a
// rule one try does it, on the caller's own goroutine. The rest is done in the
// background, and waited for until one session time-out is over.
func (l *Lock) finish(p place) error {
	start := time.Now()
	tried := l.s.conn.State() == zk.StateHasSession
	if tried {
		if err, sure := l.tryRemove(p, false); sure {
			l.proceed()
			return err
		}
	}
	result := make(chan error, 1)
	if !l.s.background(func() {
		result <- l.remove(p, tried)
		l.proceed()
	}) {
		l.proceed()
		return ErrLost
	}
	_, timeout := l.s.now()
	select {
	case err := <-result:
		return err
	case <-time.After(time.Until(start.Add(timeout))):
		return fmt.Errorf("no word from the server for %v, and the delete goes on: %w", timeout, ErrLost)
	}
}

// proceed is called when a tenure is over: run goes on if somebody waits.
func (l *Lock) proceed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.busy = len(l.line) > 0 && l.s.background(l.run)
	if !l.busy { // nobody waits, or the session is closed
		l.turnAway(errClosed, false)
	}
}

// Token returns the fencing token of the hold that the context carries, and
// whether it carries one: of several locks, the one locked last. Each tenure's
// token is greater than that of all tenures before it on the same path. A store
// that refuses a smaller token than the greatest it has seen is safe from a
// holder that has lost the lock and does not know it yet. Within a tenure that
// is handed on in the process it stays the same: there the lock is passed on by
// memory, which cannot be late.
func Token(held context.Context) (int64, bool) {
	if held != nil {
		if h, ok := held.Value(anyHold{}).(*hold); ok {
			return h.token, true
		}
	}
	return 0, false
}

// run stands in ZooKeeper's queue once, and gives the lock to the first of the
// line, if it gets there and somebody still waits.
func (l *Lock) run() {
	ctx, withdraw := context.WithCancel(l.s.ctx)
	defer withdraw()
	l.mu.Lock()
	l.withdraw = withdraw
	l.withdrawIfIdle() // they may have left already
	l.mu.Unlock()
	p, err := l.enqueue(ctx)
	if err == nil {
		err = l.wait(ctx, &p)
	}
	if err == nil && l.grant(tenure{place: p, start: time.Now()}) {
		return
	}
	if p.node != "" {
		_ = l.remove(p, false)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errGone) {
		l.refuse(err, false)
	}
	l.proceed()
}

// grant gives the lock to the first in the line; false means that it is empty.
func (l *Lock) grant(t tenure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) == 0 {
		return false
	}
	w := l.line[0]
	l.line = l.line[1:]
	l.held = true
	h := &hold{tenure: t, count: 1}
	held := context.WithValue(context.WithValue(w.ctx, holdOf{l}, h), anyHold{}, h)
	held, h.end = context.WithCancelCause(held)
	h.unwatch = l.s.rely(t.life, func() {
		h.end(ErrLost)
		_ = l.finish(t.place) // the session may live on, and so the znode
	})
	w.answer <- answer{held, nil}
	return true
}

// refuse answers the waiters with an error: all of them, or those that will not
// wait.
func (l *Lock) refuse(err error, onlyOnce bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnAway(err, onlyOnce)
	l.withdrawIfIdle()
}

// turnAway is refuse for a caller who holds mu.
func (l *Lock) turnAway(err error, onlyOnce bool) {
	l.line = slices.DeleteFunc(l.line, func(w *waiter) bool {
		if onlyOnce && !w.once {
			return false
		}
		w.answer <- answer{nil, err}
		return true
	})
}
