package explore

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// timeout is of the sessions: so long that time changes nothing in an order.
const timeout = 30 * time.Second

// patience is the explorer's with whatever it waits for.
const patience = 20 * time.Second

// A client takes the lock once. On its connection there is a gate, at which its requests wait.
type client struct {
	*actor.Client
	name    string
	tap     *wiretap.Tap
	session zktest.Session
	way     zktest.Way
	story   *account
	number  int
	record  *record

	mu         sync.Mutex
	connection int            // the number of its connection
	isCut      bool           // that connection has been broken, and there is no other one yet
	atServer   int            // requests at the server, without a reply
	pending    *wiretap.Frame // the request that waits at the gate
	let        chan struct{}  // lets it go
	told       int            // notifications that have come
	connects   sync.Mutex     // locked while the client must not connect

	counted bool  // its token has been looked at
	err     error // that the last call has returned
	gaveUp  bool
	expired bool // its session has ended, and it lives on
	lost    bool // and it had the lock
	faulty  bool // its line has failed
}

// newClient opens a session for a client.
func newClient(number int, lock property.Subject, servers []string, story *account, record *record) (*client, error) {
	c := &client{name: nameOf(number), number: number, tap: wiretap.New(), story: story, record: record}
	c.Client = actor.NewClient(func(is actor.State) { record.becomes(number, is.Name) })
	address := servers[0]
	// with one alone, the library rests before it connects again
	several := []string{address, address, address, address}
	session, err := lock.Open(several, timeout, c.dial)
	if err != nil {
		return nil, fmt.Errorf("open a session for %s: %w", c.name, err)
	}
	c.session = session
	return c, nil
}

// dial gives each connection a gate of its own: what comes late to the gate of an old one
// is no news.
func (c *client) dial(network, address string, limit time.Duration) (net.Conn, error) {
	c.connects.Lock()
	defer c.connects.Unlock()
	c.mu.Lock()
	c.connection++
	connection := c.connection
	c.isCut = false
	c.atServer = 0
	c.mu.Unlock()
	c.tap.Gate(func(f wiretap.Frame) { c.pass(connection, f) })
	return c.tap.Dial(network, address, limit)
}

// pass returns when a frame may go on.
func (c *client) pass(connection int, f wiretap.Frame) {
	if f.Op == wiretap.Ping {
		return
	}
	if f.Op == wiretap.Connect || f.Op == wiretap.Close {
		c.record.passes(c.number, actor.Seen(c.tap, f))
		return
	}
	c.mu.Lock()
	if connection != c.connection || c.hasCrashed() {
		c.mu.Unlock()
		return
	}
	isOfLock := f.Class() == wiretap.OfLock
	waits := f.Kind == wiretap.Request && isOfLock
	if !waits {
		c.record.passes(c.number, actor.Seen(c.tap, f))
	}
	let := make(chan struct{})
	switch {
	case f.Kind == wiretap.Reply:
		c.atServer--
		c.isCut = f.Lost
		if isOfLock {
			c.story.replied(c.name, f)
		}
		close(let)
	case f.Kind == wiretap.Notification:
		c.told++
		c.story.notified(c.name, f)
		close(let)
	case waits:
		c.pending = &f
		c.let = let
	default:
		c.atServer++
		close(let)
	}
	c.mu.Unlock()
	<-let
}

// letGo lets the pending request go on.
func (c *client) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.passes(c.number, actor.Seen(c.tap, *c.pending))
	c.atServer++
	c.pending = nil
	close(c.let)
}

// hangUp closes the connection. A pending request never gets to the server.
func (c *client) hangUp() {
	c.mu.Lock()
	c.connection++ // what the old one still brings is no news
	c.isCut = true
	c.atServer = 0
	let := c.let
	if c.pending == nil {
		let = nil
	} else {
		c.pending.Lost = true
		c.record.passes(c.number, actor.Seen(c.tap, *c.pending))
	}
	c.pending = nil
	c.mu.Unlock()
	c.tap.HangUp()
	if let != nil {
		close(let)
	}
}

// isSettled tells whether the client has a session, and nothing is on its way to the server
// or back.
func (c *client) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCrashed() {
		return true
	}
	hasSession := c.session.Conn().State() == zk.StateHasSession // it may not know yet that it is cut
	isConnected := hasSession && !c.isCut
	return isConnected && c.atServer == 0
}

// flush returns when all notifications have come that the server has sent until now: the
// answer to a read comes behind them.
func (c *client) flush() error {
	_, _, err := c.session.Conn().Exists("/")
	return err
}

// lock makes the client's lock, and calls Lock. It returns when the lock has been made, or when
// making it has sent a request. So the locks of several clients are made one after the other.
func (c *client) lock(makeLock func() error, inside string) error {
	made := make(chan error, 1)
	lock := func(ctx context.Context) (held zktest.Hold, err error) {
		err = guarded(makeLock)
		made <- err
		if err != nil {
			return nil, err
		}
		err = guarded(func() (err error) {
			held, err = c.way.Lock(ctx)
			return err
		})
		return held, err
	}
	call := c.Lock(context.Background(), zktest.Way{Lock: lock}, inside)
	go func() {
		_, err := call()
		c.returned("Lock", err)
	}()
	for late := time.Now().Add(patience); time.Now().Before(late); {
		select {
		case err := <-made:
			return err
		case <-time.After(time.Millisecond):
		}
		if c.asks() {
			return nil
		}
	}
	return fmt.Errorf("the lock of %s is not made in time", c.name)
}

// asks tells whether a request of the client waits at the gate.
func (c *client) asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil
}

// unlock calls Unlock.
func (c *client) unlock() {
	held := c.Held()
	call := c.Unlock(func() error { return guarded(held.Unlock) })
	go func() { c.returned("Unlock", call()) }()
}

// returned tells of a call that has come back.
func (c *client) returned(call string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	if !c.hasCrashed() {
		c.story.returned(c.name, call, err)
	}
}

// guarded makes a panic an error.
func guarded(do func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return do()
}

func (c *client) hasCrashed() bool { return c.State() == actor.Crashed }

// hasHold tells whether the client can call Unlock: it may have been notified that the lock is lost.
func (c *client) hasHold() bool { return actor.IsInside(c.State()) || c.State() == actor.Told }

// isDone tells whether no call is under way, and none is due.
func (c *client) isDone() bool { return c.State() == actor.Idle || c.State() == actor.Failed }

// endSession makes the server end the client's session at once.
func (c *client) endSession(server string) error {
	if err := zktest.CloseSession(server, c.tap.Session()); err != nil {
		return fmt.Errorf("end the session of %s: %w", c.name, err)
	}
	return nil
}

// expire breaks the connection and ends the session, before the client can connect again.
func (c *client) expire(server string) error {
	c.connects.Lock()
	defer c.connects.Unlock()
	c.mu.Lock()
	c.expired = true
	c.lost = c.Held() != nil
	if c.hasHold() && !c.way.HasHolds() {
		c.record.becomes(c.number, actor.CutOff)
	}
	c.mu.Unlock()
	c.hangUp()
	return c.endSession(server)
}

// crash ends the client without a word to the server, and then its session.
func (c *client) crash(server string) error {
	c.Crash()
	c.tap.Cut()
	c.hangUp()
	go c.session.Close() // for the client's goroutines: the line is cut
	return c.endSession(server)
}

// leave ends a client that has not crashed, whatever it does. Nothing more is said of it.
func (c *client) leave() {
	c.Crash()
	c.mu.Lock()
	pending := c.pending != nil
	c.pending = nil
	let := c.let
	c.mu.Unlock()
	c.GiveUp()
	if pending {
		close(let)
	}
	c.session.Close()
}
