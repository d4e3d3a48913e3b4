// Package exercise is step 5, for you to write: the queue of step 4, made into a
// lock to rely on. A lost reply does no harm, the holder may lock again, a
// holder that has lost the lock is told, and each tenure has a fencing token.
//
// What stands here, and in queue.go, is step 4 over a Session. The context that
// Lock returns carries the hold already.
//
//	make exercise STEP=05    what your lock can do, and what not yet
//	make hint STEP=05        the next hint
//
// session.go, pulse.go and errors.go are given. Of the Session you need:
//
//	l.s.conn             the connection
//	life, _ := l.s.now() the session's present life: life.id is the session's
//	                     id, and life.ctx ends when the session can no longer
//	                     be relied on
//	unanswered(err)      nobody knows whether the server did what was asked
//
//lint:file-ignore U1000 what is not used yet is there for you
package exercise

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The errors that callers ask for, with errors.Is.
var (
	ErrLocked  = errors.New("somebody else holds the lock")
	ErrNotHeld = errors.New("the context does not hold the lock: give Unlock what Lock returned, once for each Lock")
	ErrLost    = errors.New("the lock was lost: its session ended or was cut off, or its znode was deleted")
)

// Lock is one lock, as one process has it.
type Lock struct {
	s   *Session
	dir string
	mu  sync.Mutex // guards what the holds count
}

// hold is the lock held by one caller.
type hold struct {
	place
	count int                     // calls to Lock without an Unlock yet, guarded by Lock.mu
	end   context.CancelCauseFunc // ends the context that was given out
}

// holdOf is the key under which a context carries its hold of a lock.
type holdOf struct{ *Lock }

// New returns the lock whose directory is path. It sends nothing.
func New(s *Session, path string) *Lock { return &Lock{s: s, dir: path} }

// Lock blocks until the caller holds the lock, and returns the context that is
// the hold: Unlock needs it, Lock called with it is re-entry, and it is
// cancelled with cause ErrLost when the lock can no longer be relied on.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.acquire(ctx, ctx)
}

// TryLock is Lock that returns ErrLocked when the lock is not to be had within
// wait.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	waiting, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
	defer stop()
	return l.acquire(ctx, waiting)
}

// acquire waits for as long as waiting has not ended.
func (l *Lock) acquire(ctx, waiting context.Context) (context.Context, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", l.dir, ended(ctx))
	}
	// TODO 3: does ctx carry a hold of this lock already?
	p, err := l.enqueue(waiting)
	if err == nil {
		err = l.wait(waiting, &p)
	}
	if err != nil && p.node != "" {
		err = errors.Join(err, l.remove(p))
	}
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	return l.grant(ctx, p), nil
}

// grant makes the hold and its context.
func (l *Lock) grant(ctx context.Context, p place) context.Context {
	h := &hold{place: p, count: 1}
	held := context.WithValue(ctx, holdOf{l}, h)
	held, h.end = context.WithCancelCause(held)
	// TODO 4: when the session's life ends, so must held.
	return held
}

// Unlock ends a hold. It works with a context that has ended, and returns
// ErrNotHeld when held does not hold this lock (any more).
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
	h.count-- // TODO 3: and when it is not the last?
	l.mu.Unlock()
	h.end(ErrNotHeld) // before anybody else can get in
	return failed("unlock", h.node, l.remove(h.place))
}

// Token returns the fencing token of the hold that the context carries, and
// whether it carries one. Each tenure's token is greater than that of all
// tenures before it on the same path.
//
// TODO 5: a token for each tenure. The context can carry it under a key of its
// own.
func Token(held context.Context) (int64, bool) {
	return 0, false
}
