// Package actor is a client of a lock in a process of its own. It does what the process
// that started it, its parent, asks, and tells it everything: its state, and each frame on
// its connection, which goes on when the parent lets it.
package actor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Acts makes a process that was started to be a client of this lock one.
func Acts(lock property.Subject) {
	process.Role(lock.Name, func(parent process.Call) any {
		return &Actor{lock: lock, parent: parent, tap: wiretap.New()}
	})
}

// An Address is where a client finds its lock.
type Address struct {
	Servers []string
	Timeout time.Duration
	Path    string
}

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

	// What others see of it, and it does not know itself.
	Crashed = "crashed"
	CutOff  = "cut off, believes it holds"
)

// A Frame is a frame at the gate, with what only the client knows of it.
type Frame struct {
	wiretap.Frame
	Watched []string // with a SetWatches: the paths
	Session int64    // that the client has; 0: none yet
	Server  string   // that it is connected to, or was last; "": none yet
}

// An Actor is the process, as its parent sees it: that calls its exported methods. The parent
// has the methods Pass of a Frame, Becomes of a State, and Put of a token.
type Actor struct {
	lock    property.Subject
	parent  process.Call
	tap     *wiretap.Tap
	session zktest.Session
	conn    atomic.Pointer[zk.Conn]
	write   zktest.Way
	read    *zktest.Way

	mu      sync.Mutex
	state   string
	way     *zktest.Way     // of its last hold
	held    zktest.Hold     // that hold; nil: there was none
	work    context.Context // of that hold
	entries int             // of the hold
	giveUp  func()          // nil: it does not wait
}

// Begin joins a lock, and tells whether it has a way to read.
func (c *Actor) Begin(place Address, reads *bool) (err error) {
	pass := func(f wiretap.Frame) {
		at := Frame{Frame: f}
		if f.Op == wiretap.SetWatches {
			at.Watched = c.tap.Watched()
		}
		if conn := c.conn.Load(); conn != nil {
			at.Session, at.Server = conn.SessionID(), conn.Server()
		}
		_ = c.parent("Pass", at, new(bool))
	}
	c.tap.Gate(pass)
	if c.session, err = c.lock.Open(place.Servers, place.Timeout, c.tap.Dial); err != nil {
		return err
	}
	conn := c.session.Conn()
	c.conn.Store(conn)
	for late := time.Now().Add(zktest.Patience); conn.State() != zk.StateHasSession; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			return errors.New("no server gives it a session")
		}
	}
	c.write, c.read = c.lock.Ways(c.session, place.Path)
	*reads = c.read != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.becomes(Idle, nil)
	return nil
}

// becomes tells the parent of a new state. The caller holds mu.
func (c *Actor) becomes(state string, err error) {
	c.state = state
	s := State{Name: state}
	if err != nil {
		s.Err = err.Error()
	}
	if IsInside(c.state) && c.held != nil {
		s.Token = c.held.Token()
	}
	_ = c.parent("Becomes", s, new(bool))
}

// IsInside tells whether a client in this state is between Lock and Unlock, whatever the
// server says.
func IsInside(state string) bool { return state == Holds || state == Reads }

// Do does what it is asked to. Calls that wait go on when it has returned.
func (c *Actor) Do(what string, _ *bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	enters := c.giveUp != nil && c.state != Waits
	standing := Standing{State: c.state, Enters: enters, Held: c.held != nil, Reads: c.read != nil}
	if why := standing.Refuses(what); why != "" {
		return errors.New("it " + why)
	}
	switch what {
	case "lock":
		c.take(&c.write, Holds, nil)
	case "read":
		c.take(c.read, Reads, nil)
	case "again":
		c.take(c.way, c.state, c.held)
	case "giveup":
		c.giveUp()
	case "unlock":
		return c.unlock()
	case "put":
		return c.parent("Put", c.held.Token(), new(bool))
	case "losecreate":
		c.tap.LoseReply(wiretap.Create, 1)
	case "losedelete":
		c.tap.LoseReply(wiretap.Delete, 1)
	case "cut":
		c.tap.Cut()
	case "restore":
		c.tap.Restore()
	default:
		return fmt.Errorf("it does not know what %q is", what)
	}
	return nil
}

// take calls a way's Lock in the background: for a new hold, or, with a hold, to enter
// that once more. It can be given up.
func (c *Actor) take(way *zktest.Way, state string, hold zktest.Hold) {
	again := hold != nil
	ctx := context.Background()
	if again {
		ctx = c.work
	} else {
		c.becomes(Waits, nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	given := false
	c.giveUp = func() { given = true; cancel() }
	go func() {
		held, err := way.Lock(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.giveUp = nil
		stillHeld := c.held == hold && c.state == state
		switch {
		case given && errors.Is(err, context.Canceled):
			if c.state == Waits {
				c.becomes(Idle, nil)
			}
		case again && !stillHeld: // there is nothing to enter any more
		case err != nil:
			c.becomes(Failed, err)
		case again:
			c.entries++
			c.becomes(state, nil)
		default:
			c.way, c.held, c.entries = way, held, 1
			c.work = held.Context(context.Background())
			c.becomes(state, nil)
			go c.hears(held, c.work)
		}
	}()
}

// hears waits for the end of a hold that is lost.
func (c *Actor) hears(held zktest.Hold, work context.Context) {
	<-work.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == held && IsInside(c.state) {
		c.becomes(Told, context.Cause(work))
	}
}

// unlock calls Unlock, also without a hold: that is refused, if the lock is any good.
func (c *Actor) unlock() error {
	state, held := c.state, c.held
	unlock := c.write.Unlock // of who has never held the lock
	if held != nil {
		unlock = held.Unlock
	}
	if unlock == nil {
		return errors.New("it has no hold, and only a hold can unlock")
	}
	c.becomes(Releases, nil)
	go func() {
		err := unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err != nil && state != Told:
			c.becomes(Failed, err)
		case err == nil && c.entries > 1:
			c.entries--
			c.becomes(state, nil)
		default:
			c.entries = 0
			c.becomes(Idle, err)
		}
	}()
	return nil
}

// Leave ends the session.
func (c *Actor) Leave(bool, *bool) error {
	if c.session != nil {
		c.tap.Restore()
		c.session.Close()
	}
	return nil
}
