package reentrant

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// After so many hand-ons, or so long, other processes have their turn.
const maxHandOns, maxTenure = 16, 100 * time.Millisecond

// Cohort is a Lock for the goroutines of one process. One at a time has the turn,
// and stands in ZooKeeper's queue with a znode. When it unlocks, the next has the
// lock without a word to ZooKeeper. This is lock cohorting (Dice, Marathe, Shavit,
// PPoPP 2012). A Cohort excludes every Lock on the same path.
type Cohort struct {
	s       *Session
	lock    *Lock
	turn    chan struct{}   // has room for one: whoever put it in has the turn
	waiting atomic.Int32    // goroutines that wait for it
	held    context.Context // the tenure, if there is one; it goes with the turn
	since   time.Time
	handOns int
}

// NewCohort is New for the goroutines of a process, which should share one.
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
		if !once { // it may have been handed on to us
			c.s.Go(c.sweep)
		}
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

// fetch gets the lock from ZooKeeper, for the tenure, or gives the turn back.
func (c *Cohort) fetch(waiting context.Context, once bool) error {
	if err := c.finish(); c.held != nil { // a tenure that was lost, and whose znode stays
		<-c.turn
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(waiting, end)
	lock := c.lock.Lock
	if once {
		lock = func(ctx context.Context) (context.Context, error) { return c.lock.TryLock(ctx, 0) }
	}
	held, err := lock(ctx)
	c.held, c.since, c.handOns = held, time.Now(), 0
	if !stop() { // it may have come too late
		<-c.turn
		c.s.Go(c.sweep)
		return failed("lock", c.lock.dir, ended(waiting))
	}
	if err != nil {
		<-c.turn
	}
	return err
}

// finish ends the tenure, if there is one.
func (c *Cohort) finish() (err error) {
	if c.held != nil {
		err = c.lock.Unlock(c.held)
	}
	if err == nil || errors.Is(err, ErrLost) {
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
	if err = cmp.Or(h.released(c.finish()), failed("unlock", c.lock.dir, err)); c.held == nil {
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
