package actor

import (
	"context"
	"errors"
	"sync"

	"zklock/internal/zktest"
)

// A State is what a client is from now on, as it knows itself.
type State struct {
	Name  string
	Err   string // or empty
	Token int64  // of its hold, if that has one
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

	// What others see of it, and it does not know itself.
	CutOff = "cut off, believes it holds"
)

// IsInside tells whether a client in this state is between Lock and Unlock, whatever the
// server says.
func IsInside(state string) bool { return state == Holds || state == Reads }

// A Client calls a lock, in this process, and tells each state that it is in from then on. Each
// of its methods Lock, Enter and Unlock begins a call, and returns it: whoever waits for the call
// makes it, and others start it.
type Client struct {
	tell func(State)

	mu     sync.Mutex
	state  string
	hold   *hold  // its last one; nil: there was none
	giveUp func() // nil: no call of Lock is under way
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

// becomes tells of a new state, but for a client that has crashed. The caller holds mu.
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

// Lock calls a way's Lock: the client waits from now on, and is inside in the state of that name
// when the call has returned.
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

// isGivenUp tells whether a call has failed since its context has ended.
func isGivenUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// hears is called when a hold has ended.
func (c *Client) hears(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isLost := c.hold == h && IsInside(c.state)
	if isLost {
		c.becomes(Told, context.Cause(h.work))
	}
}

// Enter calls Lock once more, within the hold.
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
		case hasEnded || isGivenUp(ctx, err): // there is nothing to enter any more
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

// Unlock calls the Unlock of the hold, or of the lock.
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

// Crash tells that somebody has made the client crash. It tells nothing after that.
func (c *Client) Crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.becomes(Crashed, nil)
}

// State is the client's now.
func (c *Client) State() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Held is its last hold; nil: it has had none.
func (c *Client) Held() zktest.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == nil {
		return nil
	}
	return c.hold.Hold
}

// standing is what decides which calls it can make.
func (c *Client) standing() Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	enters := c.giveUp != nil && c.state != Waits
	return Standing{State: c.state, Enters: enters, Held: c.hold != nil}
}
