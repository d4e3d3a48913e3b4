package reentrant

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// A tenure is handed on inside the process so often and for so long at most:
// then other processes have their turn.
const (
	maxHandOns = 16
	maxTenure  = 100 * time.Millisecond
)

// Cohort is a Lock for the goroutines of one process. One at a time has the turn,
// and stands in ZooKeeper's queue with a znode. When it unlocks, the next has the
// lock without a word to ZooKeeper. This is lock cohorting (Dice, Marathe, Shavit,
// PPoPP 2012). A Cohort excludes every Lock on the same path.
type Cohort struct {
	s       *Session
	lock    *Lock
	turn    chan struct{} // has room for one: whoever put it in has the turn
	waiting atomic.Int32  // who waits for the turn

	// The tenure that has been handed on, or is held. It is the turn's.
	held    context.Context // nil: none
	end     context.CancelFunc
	since   time.Time
	handOns int
}

// NewCohort returns the lock whose directory is path, as New does. The goroutines
// of a process should share one.
func NewCohort(s *Session, path string) *Cohort {
	return &Cohort{s: s, lock: New(s, path), turn: make(chan struct{}, 1)}
}

// Lock is like the Lock of a Lock. All holds of a tenure have the same token.
func (c *Cohort) Lock(ctx context.Context) (held context.Context, err error) {
	return c.acquire(ctx, ctx, false)
}

// TryLock is like the TryLock of a Lock. With 0 it waits for nobody, here either.
func (c *Cohort) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if ctx == nil || wait <= 0 {
		return c.acquire(ctx, ctx, true)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
	defer stop()
	return c.acquire(ctx, waiting, false)
}

func (c *Cohort) acquire(ctx, waiting context.Context, once bool) (held context.Context, err error) {
	if held, err := again(ctx, waiting, c.s, c.lock.dir, c); held != nil || err != nil {
		return held, err
	}
	if err := c.takeTurn(waiting, once); err != nil {
		c.s.Go(c.sweep) // it may have been handed on to us
		return nil, failed("lock", c.lock.dir, err)
	}
	if c.held == nil || c.held.Err() != nil {
		if err := c.fetch(waiting, once); err != nil {
			return nil, err
		}
	}
	token, _ := Token(c.held)
	return begin(ctx, c, place{lease: c.held, token: token}, func() {}), nil
}

func (c *Cohort) takeTurn(waiting context.Context, once bool) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
		if once {
			return ErrLocked
		}
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-waiting.Done():
		return ended(waiting)
	case <-c.s.ctx.Done():
		return zk.ErrClosing
	}
}

// fetch gets the lock from ZooKeeper, for a tenure that may outlast this caller.
// Without it, it gives the turn back.
func (c *Cohort) fetch(waiting context.Context, once bool) error {
	_ = c.finish() // a tenure that was lost
	tenure, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(waiting, end)
	lock := c.lock.Lock
	if once {
		lock = func(ctx context.Context) (context.Context, error) { return c.lock.TryLock(ctx, 0) }
	}
	held, err := lock(tenure)
	c.held, c.end, c.since, c.handOns = held, end, time.Now(), 0
	if !stop() { // it may have come too late
		c.s.Go(func() {
			_ = c.finish()
			<-c.turn
		})
		return failed("lock", c.lock.dir, ended(waiting))
	}
	if err != nil {
		<-c.turn
	}
	return err
}

// finish ends the tenure, if there is one.
func (c *Cohort) finish() error {
	if c.held == nil {
		return nil
	}
	err := c.lock.Unlock(c.held)
	if err == nil || errors.Is(err, ErrLost) {
		c.end()
		c.held = nil
	}
	return err
}

// Unlock is like the Unlock of a Lock, or hands the tenure on in the process.
func (c *Cohort) Unlock(held context.Context) error {
	if err := check(held, c.s, c.lock.dir); err != nil {
		return err
	}
	h, err := exit(held, c)
	if h == nil {
		return failed("unlock", c.lock.dir, err)
	}
	h.end() // before anybody else can get in
	c.handOns++
	if c.waiting.Load() > 0 && c.held.Err() == nil && c.handOns <= maxHandOns && time.Since(c.since) < maxTenure {
		<-c.turn
		if c.waiting.Load() == 0 { // it has been taken, or given up
			c.s.Go(c.sweep)
		}
		return nil
	}
	err = cmp.Or(h.left(c.finish()), failed("unlock", c.lock.dir, err))
	if c.held == nil { // else the server refuses the release
		<-c.turn
	}
	return err
}

// sweep ends a tenure that was handed on, if nobody is there to take it.
func (c *Cohort) sweep() {
	select {
	case c.turn <- struct{}{}:
		if c.waiting.Load() == 0 {
			_ = c.finish()
		}
		<-c.turn
	default:
	}
}
