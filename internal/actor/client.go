package actor

import (
	"context"
	"errors"
	"sync"

	"zklock/internal/zktest"
)

// A State is the state of a client from now on, as far as the client knows.
type State struct {
	Name  string
	Err   string // or empty
	Token int64  // of its hold; 0: none
}

// The states that a client can be in.
const (
	Idle     = "idle"
	Waits    = "waits"
	Holds    = "holds"
	Reads    = "reads"
	Releases = "releases"
	Told     = "told that it lost the lock"
	Failed   = "got an error"
	Crashed  = "crashed"

	// CutOff is what others see: the client itself does not know it.
	CutOff = "cut off, believes it holds"
)

// IsInside reports whether a client in this state believes that it holds the lock: it is between Lock
// and Unlock, and does not know of a loss.
func IsInside(state string) bool { return state == Holds || state == Reads }

// A Client calls a lock in this process, and reports each of its new states. Its methods Lock, Enter
// and Unlock prepare a call, and return a function that makes it. To wait for the call, run the
// function; otherwise, start it in a goroutine.
type Client struct {
	tell func(State)

	mu     sync.Mutex
	state  string
	hold   *hold  // the last one; nil: there was none
	giveUp func() // cancels a call of Lock; nil: no call of Lock is under way
}

// A hold is what Lock has returned.
type hold struct {
	zktest.Hold
	way     zktest.Way
	work    context.Context
	entries int
}

// NewClient returns a client that is idle.
func NewClient(tell func(State)) *Client { return &Client{tell: tell, state: Idle} }

// becomes notes and reports a new state, unless the client has crashed. The caller holds mu.
func (c *Client) becomes(state string, err error) {
	if c.state == Crashed {
		return
	}
	c.state = state
	s := State{Name: state}
	if err != nil {
		s.Err = err.Error()
	}
	if IsInside(state) {
		s.Token = c.hold.Token()
	}
	c.tell(s)
}

// Lock prepares a call of the way's Lock. The client waits from now on. When the call has returned with
// the lock, its state is inside, which is Holds or Reads.
func (c *Client) Lock(ctx context.Context, way zktest.Way, inside string) (call func() (zktest.Hold, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.becomes(Waits, nil)
	ctx, c.giveUp = context.WithCancel(ctx)
	return func() (zktest.Hold, error) {
		held, err := way.Lock(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.giveUp = nil
		switch {
		case err == nil:
			h := &hold{held, way, held.Context(context.Background()), 1}
			c.hold = h
			c.becomes(inside, nil)
			context.AfterFunc(h.work, func() { c.hears(h) })
		case isGivenUp(ctx, err):
			c.becomes(Idle, nil)
		default:
			c.becomes(Failed, err)
		}
		return held, err
	}
}

// isGivenUp reports whether a call has failed because its context was canceled.
func isGivenUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// hears is called when the context of a hold has ended. If the client still believes that it holds the
// lock, it has lost it.
func (c *Client) hears(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isLost := c.hold == h && IsInside(c.state)
	if isLost {
		c.becomes(Told, context.Cause(h.work))
	}
}

// Enter prepares another call of Lock, within the hold.
func (c *Client) Enter() (call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hold
	ctx, cancel := context.WithCancel(h.work)
	c.giveUp = cancel
	return func() {
		_, err := h.way.Lock(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.giveUp = nil
		hasEnded := !IsInside(c.state)
		switch {
		case hasEnded || isGivenUp(ctx, err): // there is no hold to enter any more, or the client gave up
		case err != nil:
			c.becomes(Failed, err)
		default:
			h.entries++
			c.becomes(c.state, nil)
		}
	}
}

// GiveUp ends the context of a call of Lock, if one is under way.
func (c *Client) GiveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.giveUp != nil {
		c.giveUp()
	}
}

// Unlock prepares a call of unlock, which is the Unlock of the hold or of the lock.
func (c *Client) Unlock(unlock func() error) (call func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, h := c.state, c.hold
	c.becomes(Releases, nil)
	return func() error {
		err := unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		isEnteredAgain := h != nil && h.entries > 1
		switch {
		case err != nil && state != Told:
			c.becomes(Failed, err)
		case err == nil && isEnteredAgain:
			h.entries--
			c.becomes(state, nil)
		default:
			c.becomes(Idle, err)
		}
		return err
	}
}

// Crash notes that the client was made to crash. The client reports no state after that.
func (c *Client) Crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.becomes(Crashed, nil)
}

// State returns the client's present state.
func (c *Client) State() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Held returns the client's last hold, or nil if it has had none.
func (c *Client) Held() zktest.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == nil {
		return nil
	}
	return c.hold.Hold
}

// standing returns what decides which calls the client can make.
func (c *Client) standing() Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	enters := c.giveUp != nil && c.state != Waits
	return Standing{State: c.state, Enters: enters, Held: c.hold != nil}
}
