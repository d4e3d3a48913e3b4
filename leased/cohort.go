package leased

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// After this many hand-overs, or this time, other processes have their turn.
const (
	maxHandOns     = 16
	maxProcessHold = 100 * time.Millisecond
)

// A process hold is one period in which the process holds the lock at ZooKeeper. Its states, and the functions
// that lead from one to the next:
//
//	none
//	    │  beginProcessHold, by the goroutine that has the turn: it queues up at ZooKeeper
//	used ◄───────────────────────────────┐
//	    │                                │
//	    │  the holder unlocks: release   │ handOn: the next in the line has the turn, and it
//	    ├────────────────────────────────┤
//	    │                                │ handOn, by passTurn: the goroutine that was given the
//	    │                                │ turn has given up
//	    │  no goroutine waits, or it is the turn of other processes: endProcessHold
//	none
//
// When the hold is lost (letGo), or when a server refuses to delete its znode (release), the process hold
// leaves these states, and belongs to the last holder alone. Then the Cohort starts again: the next goroutine in
// the line queues up at ZooKeeper, behind that znode, until its holder's Unlock has deleted it, or its session has
// ended. If the server refuses the delete that passTurn asks for, there is no holder. Then the process hold stays,
// and the next goroutine that has the turn uses it, or ends it.

// Cohort is a Mutex for the goroutines of one process. They wait in a line of their
// own, and only one of them at a time queues up at ZooKeeper. When it unlocks,
// the next one gets the turn, and the lock with it, without a request. After 16 of these
// hand-overs, or a tenth of a second, other processes have their turn. This is lock cohorting
// (Dice, Marathe, Shavit, PPoPP 2012). A Cohort and a Mutex on the same path exclude one another.
type Cohort struct {
	_ noCopy
	q *queue

	mu     sync.Mutex
	busy   bool            // a goroutine has the turn
	line   []chan struct{} // the goroutines that wait for it: closing a channel gives one the turn
	holder *Hold           // the hold that has the turn and the lock; nil if none has

	processHold *processHold // only the goroutine that has the turn may touch it; nil if there is none
}

// processHold is one period in which the process holds the lock at ZooKeeper. It may have many holds, one after
// another.
type processHold struct {
	place
	stopUsing func() // tells the lease that the process hold does not need it any more
	since     time.Time
	handOns   int
}

// NewCohort returns the lock whose directory is path, as NewMutex does. The goroutines of a process should share
// one Cohort.
func NewCohort(s *Session, path string) *Cohort {
	return &Cohort{q: NewMutex(s, path).q}
}

// Lock is like the Lock of a Mutex. When the Cohort passes its znode from one hold to the next, both have the same
// token.
//
// When a hold is lost, the next goroutine queues up at ZooKeeper, behind the hold's znode. It can acquire the lock
// only after that znode has been deleted: by the holder's Unlock, or when the session ends.
func (c *Cohort) Lock(ctx context.Context) (*Hold, error) {
	return c.take(ctx, true)
}

// TryLock is like the TryLock of a Mutex. It does not wait for another goroutine of the process either: if one
// holds the lock or is queued, TryLock returns ErrLocked, and the text says so.
func (c *Cohort) TryLock(ctx context.Context) (*Hold, error) {
	return c.take(ctx, false)
}

// take is like that of a queue.
func (c *Cohort) take(ctx context.Context, mayWait bool) (*Hold, error) {
	return c.q.enterOrAcquire(ctx, exclusive, mayWait, c.acquire)
}

// acquire is like that of a queue, with the process's own line before ZooKeeper's queue.
func (c *Cohort) acquire(t *try) (*Hold, error) {
	if err := c.takeTurn(t); err != nil {
		return nil, err
	}
	if !c.processHoldIsGood() {
		begin := func() (bool, error) { return true, c.beginProcessHold(t) }
		late := func(bool) { c.passTurn() }
		if _, err := doOrGiveUp(t, begin, late); err != nil {
			return nil, err // beginProcessHold or passTurn passes the turn on
		}
	}
	return c.begin(), nil
}

// begin returns a hold for the goroutine that has the turn, in the process hold.
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
	t.behind.Store(c.anotherGoroutine())
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
		c.q.s.run(c.passTurn) // it may wait for a delete; when the session is closed, no call waits for the turn
	}
	return err
}

// joinLine returns nil if the turn was free: now the caller has it. Otherwise the caller gets the turn when
// the channel is closed.
func (c *Cohort) joinLine(t *try) (mine chan struct{}, err error) {
	if c.q.s.isClosed() {
		return nil, zk.ErrClosing // perhaps the turn is not passed on any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy {
		c.busy = true
		return nil, nil
	}
	if !t.mayWait {
		return nil, c.anotherGoroutine()
	}
	mine = make(chan struct{})
	c.line = append(c.line, mine)
	return mine, nil
}

// anotherGoroutine is what a call waits for while it waits for the turn.
func (c *Cohort) anotherGoroutine() *LockedError {
	return &LockedError{Label: string(c.q.s.label), SameProcess: true}
}

// leaveLine leaves the process's line. It returns false if mine has already been given the turn.
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

// giveTurn gives the turn to the first in the line, if there is one.
func (c *Cohort) giveTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callFirst()
}

// callFirst is like giveTurn, for a caller that has c.mu.
func (c *Cohort) callFirst() {
	if len(c.line) == 0 {
		c.busy = false
		return
	}
	close(c.line[0])
	c.line = c.line[1:]
}

// handOn gives the turn to the first in the line, and the process hold with it. It returns
// false if no goroutine waits, if it is the turn of other processes, or if there is no good process
// hold.
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
	_ = c.endProcessHold(c.q.forget) // if it is refused, the process hold stays for the goroutine that gets the turn
	c.giveTurn()
}

func (c *Cohort) processHoldIsGood() bool {
	return c.processHold != nil && !c.q.s.isOver(c.processHold.lease)
}

// beginProcessHold acquires the lock at ZooKeeper. If that fails, it passes the turn on.
//
// There may still be an old process hold: the turn was handed on with it just when its lease ended, or the
// server has refused the delete that passTurn asked for. We must not queue up behind its znode.
func (c *Cohort) beginProcessHold(t *try) error {
	if err := c.endProcessHold(c.q.forget); isRefused(err) {
		c.giveTurn()
		return err
	}
	mine, err := c.q.joinAndWait(t, exclusive)
	if err != nil {
		c.giveTurn()
		return err
	}
	c.processHold = &processHold{place: mine, since: time.Now()}
	// Each hold is notified of a loss by itself.
	c.processHold.stopUsing = c.q.s.useLease(mine.lease, &leaseUser{lose: func(*LostError) {}})
	return nil
}

// endProcessHold leaves ZooKeeper's queue. If the server refuses that, the process hold stays.
func (c *Cohort) endProcessHold(leave func(place) error) error {
	if c.processHold == nil {
		return nil
	}
	err := leave(c.processHold.place)
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
	err := c.endProcessHold(c.q.leave)
	if isRefused(err) { // Unlock logs it, and can be called again: until then the znode is h's own
		c.processHold.stopUsing()
		c.processHold = nil
	}
	c.giveTurn()
	return err
}

// takeTurnFrom takes the turn if h has it.
func (c *Cohort) takeTurnFrom(h *Hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != h {
		return false
	}
	c.holder = nil
	return true
}

// letGo is called when a hold is lost. From now on the process's line does not wait for its holder:
// the next in the line has the turn, and queues up at ZooKeeper, behind the lost hold's znode, which
// belongs to that hold alone. While the session lives, no client acquires the lock before that hold's Unlock.
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
