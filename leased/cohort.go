package leased

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// After so many hand-ons, or so long, other processes have their turn.
const (
	maxHandOns     = 16
	maxProcessHold = 100 * time.Millisecond
)

// A process hold is one time for which the process has ZooKeeper's lock. Its states, and the functions
// that lead from one to the next:
//
//	none
//	    │  beginProcessHold, by the goroutine that has the turn: it queues up at ZooKeeper
//	used ◄───────────────────────────────┐
//	    │                                │
//	    │  the holder unlocks: release   │ handOn: the next in the line has the turn, and it
//	    ├────────────────────────────────┤
//	    │                                │ handOn, by passTurn: whoever was given the turn has
//	    │                                │ given up
//	    │  nobody waits, or it is the turn of other processes: endProcessHold
//	none
//
// It leaves these states, and becomes the last holder's alone, when the hold is lost (letGo), or when
// a server refuses to delete its znode (release). Then the Cohort begins anew: the next in the line
// queues up at ZooKeeper, behind that znode, until its holder's Unlock has deleted it, or it is gone with its
// session. Only if passTurn is refused the delete there is no holder: then it stays, and whoever
// has the turn next uses it, or ends it.

// Cohort is a Mutex for the goroutines of one process. They stand in a line of their
// own, and only one at a time has the turn to queue up at ZooKeeper. When it unlocks,
// the next one gets the turn, and the lock with it, without a request. After 16 of these
// hand-overs, or a tenth of a second, other processes have their turn. This is lock cohorting
// (Dice, Marathe, Shavit, PPoPP 2012). A Cohort and a Mutex on the same path exclude one another.
type Cohort struct {
	_ noCopy
	q *queue

	mu     sync.Mutex
	busy   bool            // somebody has the turn
	line   []chan struct{} // those who wait for it; closing the channel gives it
	holder *Hold           // the hold that has the turn and the lock; nil while the turn is used for something else

	processHold *processHold // only the goroutine that has the turn may touch it; nil if there is none
}

// processHold is one time for which the process has ZooKeeper's lock. Many holds may follow one
// another in it.
type processHold struct {
	place
	stopUsing func() // tells the lease that the process hold needs it no more
	since     time.Time
	handOns   int
}

// NewCohort is NewMutex for the goroutines of a process. They should share one Cohort.
func NewCohort(s *Session, path string) *Cohort {
	return &Cohort{q: NewMutex(s, path).q}
}

// Lock is the Lock of a Mutex. The holds that follow one another with one znode have the same
// token.
//
// When a hold is lost, the next goroutine queues up at ZooKeeper, whatever the holder does. It acquires the lock
// when the lock is free.
func (c *Cohort) Lock(ctx context.Context) (*Hold, error) {
	return c.take(ctx, true)
}

// TryLock is the TryLock of a Mutex. It does not wait for another goroutine of the process either.
func (c *Cohort) TryLock(ctx context.Context) (*Hold, error) {
	return c.take(ctx, false)
}

// take is as that of a queue.
func (c *Cohort) take(ctx context.Context, mayWait bool) (*Hold, error) {
	return c.q.enterOrAcquire(ctx, exclusive, mayWait, c.acquire)
}

// acquire is as that of a queue, with the process's own line before ZooKeeper's queue.
func (c *Cohort) acquire(t *try) (*Hold, error) {
	if err := c.takeTurn(t); err != nil {
		return nil, err
	}
	if !c.processHoldIsGood() {
		begin := func() (bool, error) { return true, c.beginProcessHold(t) }
		late := func(bool) { c.passTurn() }
		if _, err := doOrGiveUp(t, begin, late); err != nil {
			return nil, err // beginProcessHold or passTurn sees to the turn
		}
	}
	return c.begin(), nil
}

// begin makes the hold of the goroutine that has the turn, in a process hold.
func (c *Cohort) begin() *Hold {
	h := newHold(c.q, c.processHold.place)
	h.release = func() error { return c.release(h) }
	h.onLoss = func() { c.letGo(h) }
	c.mu.Lock()
	c.holder = h
	c.mu.Unlock()
	h.begin()
	return h
}

// takeTurn waits in the process's line.
func (c *Cohort) takeTurn(t *try) error {
	mine, err := c.joinLine(t)
	if err != nil {
		return err
	}
	if mine == nil {
		return nil // the turn was free
	}
	another := c.anotherGoroutine()
	t.behind.Store(&another)
	select {
	case <-mine:
		t.behind.Store(nil)
		return nil
	case <-t.ctx.Done():
		err = t.whyEnded()
	case <-c.q.s.done:
		err = zk.ErrClosing
	}
	left := c.leaveLine(mine)
	if !left { // the turn was given to us in this moment
		c.q.s.run(c.passTurn) // it may wait for a delete; once the session is closed, nobody waits for the turn
	}
	return err
}

// joinLine returns nil if the turn is free, and the caller has it now. Else the turn is given to
// the caller by closing the channel.
func (c *Cohort) joinLine(t *try) (mine chan struct{}, err error) {
	if c.q.s.isClosed() {
		return nil, zk.ErrClosing // perhaps nobody gives the turn on any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy {
		c.busy = true
		return nil, nil
	}
	if !t.mayWait {
		return nil, fmt.Errorf("%w: %s", ErrLocked, c.anotherGoroutine())
	}
	mine = make(chan struct{})
	c.line = append(c.line, mine)
	return mine, nil
}

// anotherGoroutine says for what a call waits that waits for the turn.
func (c *Cohort) anotherGoroutine() string {
	return fmt.Sprintf("another goroutine of this process, whose label is %.100q", c.q.s.label)
}

// leaveLine leaves the process's line. It returns false if the turn has been given to mine
// already.
func (c *Cohort) leaveLine(mine chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.line, mine)
	if at < 0 {
		return false
	}
	c.line = slices.Delete(c.line, at, at+1)
	return true
}

// giveTurn gives the turn to the first in the line, or to nobody.
func (c *Cohort) giveTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callFirst()
}

// callFirst is giveTurn for a caller that has c.mu.
func (c *Cohort) callFirst() {
	if len(c.line) == 0 {
		c.busy = false
		return
	}
	close(c.line[0])
	c.line = c.line[1:]
}

// handOn gives the turn to the first in the line, and the process hold with it. It returns
// false if nobody waits, if it is the turn of other processes, or if there is no process hold
// that is good.
func (c *Cohort) handOn() bool {
	if !c.processHoldIsGood() {
		return false
	}
	othersTurn := c.processHold.handOns >= maxHandOns || time.Since(c.processHold.since) >= maxProcessHold
	if othersTurn {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.line) == 0 {
		return false
	}
	c.processHold.handOns++
	c.callFirst()
	return true
}

// passTurn is called when the turn was given to a goroutine that has given up.
func (c *Cohort) passTurn() {
	if c.handOn() {
		return
	}
	_ = c.endProcessHold() // if it is refused, the process hold stays, for the goroutine that gets the turn
	c.giveTurn()
}

func (c *Cohort) processHoldIsGood() bool {
	return c.processHold != nil && !c.q.s.isOver(c.processHold.lease)
}

// beginProcessHold gets the lock from ZooKeeper. If that fails, it gives the turn on.
//
// There may be an old one still: the turn was handed on with it, and just then its lease ran
// out; or passTurn was refused the delete. We must not queue up behind its znode.
func (c *Cohort) beginProcessHold(t *try) error {
	if err := c.endProcessHold(); isRefused(err) {
		c.giveTurn()
		return err
	}
	mine, err := c.q.joinAndWait(t, exclusive)
	if err != nil {
		c.giveTurn()
		return err
	}
	c.processHold = &processHold{place: mine, since: time.Now()}
	doNothing := func(*LostError) {} // each hold is notified of a loss by itself
	c.processHold.stopUsing = c.q.s.useLease(mine.lease, &leaseUser{lose: doNothing})
	return nil
}

// endProcessHold leaves ZooKeeper's queue. If the server refuses that, the process hold stays.
func (c *Cohort) endProcessHold() error {
	if c.processHold == nil {
		return nil
	}
	err := c.q.leave(c.processHold.place)
	if isRefused(err) {
		return err
	}
	c.processHold.stopUsing()
	c.processHold = nil
	return err
}

// release is called by the last Unlock of a hold. It hands the process hold on, or ends it.
func (c *Cohort) release(h *Hold) error {
	if !c.takeTurnFrom(h) {
		return c.q.leave(h.place) // it was lost, or a server has refused this before
	}
	if c.handOn() {
		return nil
	}
	err := c.endProcessHold()
	if isRefused(err) { // Unlock can be called again: the znode is h's own until then
		c.processHold.stopUsing()
		c.processHold = nil
	}
	c.giveTurn()
	return err
}

// takeTurnFrom makes the turn ours if h has it.
func (c *Cohort) takeTurnFrom(h *Hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != h {
		return false
	}
	c.holder = nil
	return true
}

// letGo is called when a hold is lost. Whatever the holder does from now on, the others go on
// without it: the next in the line has the turn, and queues up at ZooKeeper. The znode of the lost
// hold is its own from now on. While the session lives, no client acquires the lock before its Unlock.
func (c *Cohort) letGo(h *Hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != h {
		return // Unlock is under way
	}
	c.holder = nil
	c.processHold = nil
	c.callFirst()
}
