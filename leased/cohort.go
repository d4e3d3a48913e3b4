package leased

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// After so many hand-ons, or so long, other processes have their turn.
const (
	maxHandOns = 16
	maxTenure  = 100 * time.Millisecond
)

// Cohort is a Lock for the goroutines of one process. They stand in a queue of their
// own, and only one at a time has the turn to queue up at ZooKeeper. When it unlocks,
// the next one gets the turn, and the lock with it, without a request. This is lock
// cohorting (Dice, Marathe, Shavit, PPoPP 2012). A Cohort and a Lock on the same path
// exclude one another.
type Cohort struct {
	s    *Session
	lock *Lock

	mu    sync.Mutex
	busy  bool            // somebody has the turn
	queue []chan struct{} // those who wait for it; closing the channel gives it

	tenure *tenure // only who has the turn may touch it; nil if there is none
}

// tenure is one time for which the process has ZooKeeper's lock. Many holds may follow one
// another in it.
type tenure struct {
	place
	stopUsing func() // tells the lease that the tenure needs it no more
	since     time.Time
	handOns   int
}

// NewCohort is New for the goroutines of a process, which should share one.
func NewCohort(s *Session, path string) *Cohort {
	return &Cohort{s: s, lock: New(s, path)}
}

// Lock is like the Lock of a Lock. All holds of a tenure have the same token.
func (c *Cohort) Lock(ctx context.Context) (held context.Context, err error) {
	if err := check(ctx, c.s, c.lock.dir); err != nil {
		return nil, err
	}
	waiting := ctx
	held, err = c.acquire(ctx, waiting, mayWait)
	return held, failed("lock", c.lock.dir, err)
}

// TryLock is like the TryLock of a Lock. With 0 it waits for nobody in the process, either.
func (c *Cohort) TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error) {
	if err := check(ctx, c.s, c.lock.dir); err != nil {
		return nil, err
	}
	if wait <= 0 {
		waiting := ctx
		held, err = c.acquire(ctx, waiting, mustNotWait)
		return held, failed("lock", c.lock.dir, err)
	}
	waiting, stop := context.WithTimeoutCause(ctx, wait, errTimeIsUp)
	defer stop()
	held, err = c.acquire(ctx, waiting, mayWait)
	return held, failed("lock", c.lock.dir, err)
}

// acquire is as in lock.go, with the process's own queue before ZooKeeper's queue.
func (c *Cohort) acquire(ctx, waiting context.Context, p patience) (held context.Context, err error) {
	if waiting.Err() != nil {
		return nil, whyEnded(waiting)
	}
	if h := holdIn(ctx, c.lock); h != nil {
		held, inside, err := h.enter(ctx)
		if inside {
			return held, err
		}
	}
	if err := c.takeTurn(waiting, p); err != nil {
		return nil, err
	}
	handedOn := c.tenureIsGood()
	if !handedOn {
		if err := c.beginTenure(waiting, p); err != nil {
			return nil, err
		}
	}
	return begin(ctx, c.lock, c.tenure.place), nil
}

// takeTurn waits in the process's queue.
func (c *Cohort) takeTurn(waiting context.Context, p patience) error {
	mine, err := c.join(p)
	if err != nil {
		return err
	}
	if mine == nil {
		return nil // the turn was free
	}
	select {
	case <-mine:
		return nil
	case <-waiting.Done():
		err = whyEnded(waiting)
	case <-c.s.done:
		err = zk.ErrClosing
	}
	left := c.leave(mine)
	if !left { // the turn was given to us in this moment
		c.s.run(c.passTurn) // it may wait for a delete; once the session is closed, nobody waits for the turn
	}
	return err
}

// join is for the process's queue what a Lock's join is for ZooKeeper's. It returns nil if
// the turn is free, and the caller has it now. Else the turn is given to the caller by
// closing the channel.
func (c *Cohort) join(p patience) (mine chan struct{}, err error) {
	if c.s.isClosed() {
		return nil, zk.ErrClosing // perhaps nobody gives the turn on any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy {
		c.busy = true
		return nil, nil
	}
	if p == mustNotWait {
		return nil, ErrLocked
	}
	mine = make(chan struct{})
	c.queue = append(c.queue, mine)
	return mine, nil
}

// leave leaves the process's queue. It returns false if the turn has been given to mine
// already.
func (c *Cohort) leave(mine chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.queue, mine)
	if at < 0 {
		return false
	}
	c.queue = slices.Delete(c.queue, at, at+1)
	return true
}

// giveTurn gives the turn to the first in the queue, or to nobody.
func (c *Cohort) giveTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.busy = false
		return
	}
	c.callFirst()
}

// callFirst gives the turn to the first in the queue. The caller has c.mu.
func (c *Cohort) callFirst() {
	close(c.queue[0])
	c.queue = c.queue[1:]
}

// handOn gives the turn to the first in the queue, and the tenure with it. It returns
// false if nobody waits, if it is the turn of other processes, or if there is no tenure
// that is good.
func (c *Cohort) handOn() bool {
	if !c.tenureIsGood() {
		return false
	}
	othersTurn := c.tenure.handOns >= maxHandOns || time.Since(c.tenure.since) >= maxTenure
	if othersTurn {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return false
	}
	c.tenure.handOns++
	c.callFirst()
	return true
}

// passTurn is called when the turn was given to somebody who has given up.
func (c *Cohort) passTurn() {
	if c.handOn() {
		return
	}
	_ = c.endTenure() // if it is refused, the tenure stays, and whoever gets the turn has it
	c.giveTurn()
}

func (c *Cohort) tenureIsGood() bool { return c.tenure != nil && !c.s.isOver(c.tenure.lease) }

// beginTenure gets the lock from ZooKeeper. If that fails, it gives the turn back.
func (c *Cohort) beginTenure(waiting context.Context, p patience) error {
	if err := c.endOldTenure(waiting); err != nil {
		return err // endOldTenure sees to the turn
	}
	mine, err := c.lock.queueUp(waiting, p)
	if err != nil {
		c.giveTurn()
		return err
	}
	c.tenure = &tenure{place: mine, since: time.Now()}
	doNothing := func() {} // each hold is told of a loss by itself
	c.tenure.stopUsing = c.s.useLease(mine.lease, doNothing)
	return nil
}

// endOldTenure ends a tenure that is still there though its lease is over. There are two ways
// to such a tenure:
//
//   - The tenure was handed on to us, and just then its lease ran out.
//   - The server refused the delete in passTurn, or here for somebody before us. Then
//     endTenure keeps the tenure, and the turn goes to the next one. If the lease is good,
//     that one uses the tenure; if it is over by then, it comes here. (After a refusal in
//     Unlock the turn stays with its caller.)
//
// The znode may be there, too, and we must not queue up behind it.
//
// We have the turn. The delete can take long, and our caller can give up meanwhile: then
// giveUpAt calls late when the delete is done. Who gets the turn?
//
//	                               | who gets the turn | who gives it
//	ended, our caller waits        | our caller        | nobody has to: it has the turn
//	ended, our caller has given up | the next one      | late
//	refused by the server          | the next one      | end
func (c *Cohort) endOldTenure(waiting context.Context) error {
	if c.tenure == nil {
		return nil
	}
	end := func() error {
		err := c.endTenure()
		if znodeStays(err) {
			c.giveTurn()
			return err
		}
		return nil
	}
	late := func(err error) {
		ended := err == nil
		if ended {
			c.giveTurn()
		}
	}
	return c.s.giveUpAt(waiting, end, late)
}

// endTenure leaves ZooKeeper's queue. If the server refuses that, the tenure stays. If it
// refuses it only after a session time-out without an answer, nobody hears of it: the znode
// stays for as long as the session.
func (c *Cohort) endTenure() error {
	if c.tenure == nil {
		return nil
	}
	doNothing := func() {} // if the delete is refused, c.tenure stays: see below
	err := c.lock.leaveInTime(c.tenure.place, doNothing)
	if znodeStays(err) {
		return err
	}
	c.tenure.stopUsing()
	c.tenure = nil
	return err
}

// Unlock is like the Unlock of a Lock, or hands the tenure on in the process.
func (c *Cohort) Unlock(held context.Context) error {
	if err := check(held, c.s, c.lock.dir); err != nil {
		return err
	}
	h, last, lost := exit(held, c.lock)
	if h == nil {
		return failed("unlock", c.lock.dir, ErrNotHeld)
	}
	if !last {
		return failed("unlock", c.lock.dir, lost) // an Unlock inside the hold, which goes on
	}
	h.release() // before anybody else can get in
	if c.handOn() {
		return failed("unlock", h.node, lost)
	}
	leaveErr := c.endTenure()
	if znodeStays(leaveErr) {
		h.allowUnlockAgain() // and we keep the turn
		return failed("unlock", h.node, leaveErr)
	}
	c.giveTurn()
	if leaveErr != nil {
		return failed("unlock", h.node, leaveErr)
	}
	return failed("unlock", h.node, lost)
}
