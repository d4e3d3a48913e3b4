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

// timeout is the session timeout, so long that it has no effect on an interleaving.
const timeout = 30 * time.Second

// patience is how long the explorer waits for anything before it reports an error.
const patience = 20 * time.Second

// A client takes the lock once. Its connection has a gate, at which its requests wait.
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
	isCut      bool           // the connection is broken, and there is no new one yet
	atServer   int            // requests that the server has not answered
	pending    *wiretap.Frame // the request that waits at the gate
	let        chan struct{}  // closed to let the pending request pass
	told       int            // notifications received
	connects   sync.Mutex     // locked while the client must not connect

	counted bool   // its token has been checked
	calling string // Lock or Unlock, until it returns
	err     error  // that the last call returned
	gaveUp  bool
	expired bool // its session has ended, and it did not crash
	lost    bool // its session ended after Lock had returned a hold
	faulty  bool // a request or a reply of it was lost

	lostWrite bool // it had sent a write behind the request whose reply was lost, and that was lost as well
}

// newClient opens a session for a client.
func newClient(number int, lock property.Subject, servers []string, story *account, record *record) (*client, error) {
	c := &client{name: nameOf(number), number: number, tap: wiretap.New(), story: story, record: record}
	c.Client = actor.NewClient(func(is actor.State) { record.becomes(number, is.Name) })
	address := servers[0]
	// With a single address, the client library pauses before it connects again.
	several := []string{address, address, address, address}
	session, err := lock.Open(several, timeout, c.dial)
	if err != nil {
		return nil, fmt.Errorf("open a session for %s: %w", c.name, err)
	}
	c.session = session
	return c, nil
}

// dial gives each connection its own gate, so that pass can ignore frames that arrive late at the
// gate of an old connection.
func (c *client) dial(network, address string, limit time.Duration) (net.Conn, error) {
	c.connects.Lock()
	defer c.connects.Unlock()
	c.mu.Lock()
	c.connection++
	connection := c.connection
	c.isCut = false
	c.atServer = 0
	if c.pending != nil { // it waited behind the request whose reply was lost
		c.lostWrite = c.lostWrite || !isRead(c.pending.Op)
		c.pending.Lost = true
		c.passes(*c.pending)
		c.pending = nil
		close(c.let)
	}
	c.mu.Unlock()
	c.tap.Gate(func(f wiretap.Frame) { c.pass(connection, f) })
	return c.tap.Dial(network, address, limit)
}

// pass returns when a frame may pass the gate.
func (c *client) pass(connection int, f wiretap.Frame) {
	if f.Op == wiretap.Ping || f.Op == wiretap.Connect || f.Op == wiretap.Close {
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
		c.passes(f)
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

// letGo lets the pending request pass the gate.
func (c *client) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes(*c.pending)
	c.atServer++
	c.pending = nil
	close(c.let)
}

// hangUp closes the connection. A pending request never reaches the server.
func (c *client) hangUp() {
	c.mu.Lock()
	c.connection++ // from now on, pass ignores frames of the old connection
	c.isCut = true
	c.atServer = 0
	let := c.let
	if c.pending == nil {
		let = nil
	} else {
		c.pending.Lost = true
		c.passes(*c.pending)
	}
	c.pending = nil
	c.mu.Unlock()
	c.tap.HangUp()
	if let != nil {
		close(let)
	}
}

// isSettled reports whether the client has crashed, or is connected with a session and has a reply
// to each request that passed the gate.
func (c *client) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCrashed() {
		return true
	}
	hasSession := c.session.Conn().State() == zk.StateHasSession // the client may not yet know of a broken connection
	isConnected := hasSession && !c.isCut
	return isConnected && c.atServer == 0
}

// flush returns when the client has received all notifications that the server has sent so far: the
// reply to a read arrives after them.
func (c *client) flush() error {
	_, _, err := c.session.Conn().Exists("/")
	return err
}

// lock makes the client's lock, and calls its Lock in the background. It returns when the lock has
// been made, or when a request of the client waits at the gate, because making the lock may send
// one. So the locks of several clients are made one after the other.
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
	c.calls("Lock")
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

// asks reports whether a request of the client waits at the gate.
func (c *client) asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil
}

// unlock calls Unlock in the background.
func (c *client) unlock() {
	held := c.Held()
	call := c.Unlock(func() error { return guarded(held.Unlock) })
	c.calls("Unlock")
	go func() { c.returned("Unlock", call()) }()
}

func (c *client) calls(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calling = what
}

func (c *client) isCalling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calling != ""
}

// returned notes the result of a call. The story has it unless the client has crashed.
func (c *client) returned(call string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.calling = err, ""
	if !c.hasCrashed() {
		c.story.returned(c.name, call, err)
	}
}

// guarded calls do, and returns a panic as an error.
func guarded(do func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return do()
}

func (c *client) hasCrashed() bool { return c.State() == actor.Crashed }

// hasHold reports whether the client has a hold to release. It may have learned that this hold is
// lost.
func (c *client) hasHold() bool { return actor.IsInside(c.State()) || c.State() == actor.Told }

// isDone reports whether the client has no call under way, and will make none.
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

// crash stops the client without a request to the server, and then ends its session.
func (c *client) crash(server string) error {
	c.Crash()
	c.tap.Cut()
	c.hangUp()
	go c.session.Close() // ends the client's goroutines; the cut connection lets nothing reach the server
	return c.endSession(server)
}

// leave ends a client that has not crashed, whatever it is doing. From then on, neither the story
// nor a point has what the client does.
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
