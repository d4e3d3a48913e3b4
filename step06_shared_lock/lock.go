// Package sharedlock is step 6: step 5's lock, shared by readers. Any number of
// readers hold it together; a writer holds it alone. They stand in one queue:
// a reader waits for the last writer before it, a writer for the last znode
// before it, so each is woken once, when it matters, and nobody is overtaken.
//
// Here every goroutine has a znode of its own. Handing a tenure on inside the
// process, as in step 5, would let late readers join it for ever.
package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// The errors that callers ask for, with errors.Is.
var (
	ErrLocked  = errors.New("somebody else holds the lock")
	ErrNotHeld = errors.New("the context does not hold the lock that way: give RUnlock what RLock returned, Unlock what Lock returned, once for each")
	ErrLost    = errors.New("the lock was lost: its session ended or was cut off, or its znode was deleted")
	ErrUpgrade = errors.New("write asked for inside a read hold: two readers who do so would wait for each other; release the read hold first")
)

// RWLock is one lock for readers and writers, as one process has it. It is safe
// for use by many goroutines.
type RWLock struct {
	s   *Session
	dir string
	mu  sync.Mutex // guards the counts of the holds
}

// hold is the lock held by one caller.
type hold struct {
	place
	kind    string                  // read or write: what the znode says
	count   map[string]int          // calls to RLock and Lock without an unlock yet, guarded by RWLock.mu
	end     context.CancelCauseFunc // ends the context that was given out
	unwatch func() bool             // stops waiting for the loss; false: it has come
}

// holdOf is the key under which a context carries its hold of a lock.
type holdOf struct{ *RWLock }

// anyHold is the key of the innermost hold, for Token.
type anyHold struct{}

// New returns the lock whose directory is path, an absolute path below the
// root such as /locks/orders. It sends nothing: Lock reports a bad argument.
// The directory's children whose names end in __READ__<number> or
// __WRIT__<number> are the queue, so that Curator's InterProcessReadWriteLock
// stands in the same one. Others are ignored.
func New(s *Session, path string) *RWLock { return &RWLock{s: s, dir: path} }

// RLock blocks until the caller holds the lock together with other readers,
// and returns the context that is the hold. What step 5 says of that context
// holds here: RUnlock needs it, RLock called with it is re-entry, it is
// cancelled with cause ErrLost when the lock can no longer be relied on, and it
// ends with ctx. Inside a write hold RLock is re-entry, and the lock stays
// exclusive until all is released.
//
// When ctx ends first, RLock returns ctx's error at once; its znode is taken
// out of the queue in the background. A connection that fails, or a session
// that expires, does not end the wait. What the server refuses, such as
// zk.ErrNoAuth, does.
func (l *RWLock) RLock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, read, nil, false)
}

// Lock is RLock for a writer, who holds the lock alone. Inside a read hold it
// returns ErrUpgrade at once.
func (l *RWLock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, write, nil, false)
}

// TryRLock is RLock that returns ErrLocked when the lock is not to be had
// within wait. With 0 it asks once, and does not wait behind anybody.
func (l *RWLock) TryRLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	return l.try(ctx, read, wait)
}

// TryLock is TryRLock for a writer.
func (l *RWLock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	return l.try(ctx, write, wait)
}

func (l *RWLock) try(ctx context.Context, kind string, wait time.Duration) (context.Context, error) {
	if wait <= 0 {
		return l.acquire(ctx, kind, nil, true)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return l.acquire(ctx, kind, timer.C, false)
}

func (l *RWLock) acquire(ctx context.Context, kind string, late <-chan time.Time, once bool) (context.Context, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", l.dir, ended(ctx))
	}
	if again, err := l.reenter(ctx, kind); err != nil {
		return nil, failed("lock", l.dir, err)
	} else if again {
		return ctx, nil
	}
	queueing, withdraw := context.WithCancel(l.s.ctx)
	defer withdraw()
	if late == nil && ctx.Done() == nil { // a caller who cannot give up may as well go itself
		p, err := l.stand(queueing, kind, once)
		if err != nil {
			return nil, failed("lock", l.dir, err)
		}
		return l.grant(ctx, kind, p), nil
	}
	first := make(chan place)      // given away, or taken back
	refused := make(chan error, 1) // what ended it instead
	if !l.s.background(func() {
		p, err := l.stand(queueing, kind, once)
		if err != nil {
			refused <- err
			return
		}
		select {
		case first <- p:
		case <-queueing.Done():
			_ = l.remove(p, false)
		}
	}) {
		return nil, failed("lock", l.dir, errClosed)
	}
	var err error
	select {
	case p := <-first:
		return l.grant(ctx, kind, p), nil
	case err = <-refused:
	case <-late:
		err = ErrLocked
	case <-ctx.Done():
		err = ended(ctx)
	}
	return nil, failed("lock", l.dir, err)
}

// reenter counts one more entry if ctx carries a hold of this lock.
func (l *RWLock) reenter(ctx context.Context, kind string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := ctx.Value(holdOf{l}).(*hold)
	if !ok || h.entries() == 0 {
		return false, nil
	}
	if h.life.ctx.Err() != nil {
		return false, ErrLost
	}
	if kind == write && h.kind == read {
		return false, ErrUpgrade
	}
	h.count[kind]++
	return true, nil
}

func (h *hold) entries() int { return h.count[read] + h.count[write] }

// stand stands in ZooKeeper's queue with one znode until it may hold the lock.
// If that fails, or ctx ends before, the znode is removed.
func (l *RWLock) stand(ctx context.Context, kind string, once bool) (place, error) {
	for {
		p, err := l.enqueue(ctx, kind)
		if err == nil {
			err = l.wait(ctx, &p, kind, once)
		}
		if err == nil {
			return p, nil
		}
		if p.node != "" {
			_ = l.remove(p, false)
		}
		if l.s.ctx.Err() != nil {
			return place{}, errClosed
		}
		if !errors.Is(err, errGone) {
			return place{}, err
		}
	}
}

// grant makes the hold and its context.
func (l *RWLock) grant(ctx context.Context, kind string, p place) context.Context {
	h := &hold{place: p, kind: kind, count: map[string]int{kind: 1}}
	held := context.WithValue(context.WithValue(ctx, holdOf{l}, h), anyHold{}, h)
	held, h.end = context.WithCancelCause(held)
	h.unwatch = l.s.rely(p.life, func() {
		h.end(ErrLost)
		_ = l.finish(p) // the session may live on, and so the znode
	})
	return held
}

// RUnlock ends one entry by RLock. The last release of a hold deletes the
// znode: it returns once the server has said so. Lost replies are seen to.
//
// It works with a context that has ended. It returns ErrNotHeld when held does
// not hold this lock that way (any more), and ErrLost when the lock was no
// longer there to be released. Without a word from the server for one session
// time-out it returns ErrLost, too, and the session goes on trying.
func (l *RWLock) RUnlock(held context.Context) error { return l.release(held, read) }

// Unlock ends one entry by Lock, as RUnlock does for RLock.
func (l *RWLock) Unlock(held context.Context) error { return l.release(held, write) }

func (l *RWLock) release(held context.Context, kind string) error {
	if err := check(held, l.s, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	h, ok := held.Value(holdOf{l}).(*hold)
	if !ok || h.count[kind] == 0 {
		l.mu.Unlock()
		return failed("unlock", l.dir, ErrNotHeld)
	}
	h.count[kind]--
	again := h.entries() > 0
	l.mu.Unlock()
	if again {
		return nil
	}
	if !h.unwatch() {
		return failed("unlock", h.node, ErrLost)
	}
	h.end(ErrNotHeld) // before anybody else can get in
	return failed("unlock", h.node, l.finish(h.place))
}

// finish deletes the znode. As a rule one try does it, on the caller's own
// goroutine. The rest is done in the background, and waited for until one
// session time-out is over.
func (l *RWLock) finish(p place) error {
	start := time.Now()
	tried := l.s.conn.State() == zk.StateHasSession
	if tried {
		if err, sure := l.tryRemove(p, false); sure {
			return err
		}
	}
	result := make(chan error, 1)
	if !l.s.background(func() { result <- l.remove(p, tried) }) {
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

// Token returns the fencing token of the hold that the context carries, and
// whether it carries one: of several locks, the one locked last. A writer's
// token is greater than those of all holders before it on the same path, a
// reader's greater than those of all writers before it.
func Token(held context.Context) (int64, bool) {
	if held != nil {
		if h, ok := held.Value(anyHold{}).(*hold); ok {
			return h.token, true
		}
	}
	return 0, false
}
