// Package wiretap observes the connection between a ZooKeeper client and its
// server. It is the evidence behind every number in this repository: it counts
// requests, replies and notifications as they were on the wire. It can also
// lose, hold, cut or silence them, so that a fault happens because a test
// causes it and not by luck.
//
// A Tap is installed as the client's dialer:
//
//	tap := wiretap.New()
//	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(tap.Dial))
//
// The frames are ZooKeeper's own: length, xid, opcode and body to the server;
// length, xid, zxid, error and body from it. The first frame each way, the
// session's handshake, has none of these but the length.
package wiretap

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Tap taps all connections of one client, one after the other.
// It is safe for use by many goroutines.
type Tap struct {
	mu       sync.Mutex
	frames   []Frame
	passed   int            // frames, without pings
	touched  bool           // a fault was caused
	before   int            // frames before that fault
	armed    map[watch]bool // as the server has them
	traps    []*Trap        // not sprung yet
	holding  []*Trap        // sprung, with a frame on hold
	conns    map[*conn]bool
	line     line
	delay    time.Duration
	gate     *gate     // nil: nothing is held up
	session  []byte    // and its password
	silenced time.Time // when Silence was called last
}

// line is the state of the client's network.
type line int

const (
	up     line = iota
	cut         // connections are closed, new ones refused
	silent      // connections stay, nothing passes
)

// New makes a tap that lets everything pass.
func New() *Tap {
	return &Tap{armed: map[watch]bool{}, conns: map[*conn]bool{}}
}

// errDown is what a dial returns while the connection is cut or silent.
var errDown = errors.New("wiretap: the line is down, as the test asked")

// Dial connects as net.DialTimeout does. Its type is zk.Dialer.
func (t *Tap) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	t.mu.Lock()
	down := t.line != up
	t.mu.Unlock()
	if down {
		return nil, errDown
	}
	real, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: real, tap: t, asked: map[int32]Frame{}, closed: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != up { // it was cut or silenced while we dialled
		real.Close()
		return nil, errDown
	}
	t.conns[c] = true
	if c.gate = t.gate; c.gate != nil {
		c.queueUp()
	}
	return c, nil
}

// Relay leads a connection through the tap to a server, until either side hangs up. It is for a
// client that takes no dialer. Such a client may send several requests at once, and the tap takes
// one for each Write.
func (t *Tap) Relay(client net.Conn, server string) {
	defer client.Close()
	onward, err := t.Dial("tcp", server, 10*time.Second)
	if err != nil {
		return // the line is down
	}
	defer onward.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, onward)
	}()
	for {
		request, err := ReadFrame(client)
		if err != nil {
			return
		}
		if _, err := onward.Write(request); err != nil {
			return
		}
	}
}

// Cut closes the connections and refuses new ones until
// Restore: the client is disconnected and knows it.
func (t *Tap) Cut() {
	t.setLine(cut)
	t.HangUp()
}

// Silence leaves the connections open and lets nothing pass, either way, until Restore. The client
// seems dead to the server, and the server to the client.
func (t *Tap) Silence() {
	t.setLine(silent)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silenced = time.Now()
}

// Silenced is when Silence was called last, or the zero time.
func (t *Tap) Silenced() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.silenced
}

// Restore ends every fault: it removes the traps, lets the frames on hold pass, and lets the client
// connect again. It closes a connection that was silent, because frames are missing from it.
func (t *Tap) Restore() {
	was := t.setLine(up)
	t.mu.Lock()
	traps := append(t.traps, t.holding...)
	t.traps, t.holding = nil, nil
	t.mu.Unlock()
	for _, trap := range traps {
		trap.Let()
	}
	if was == silent {
		t.HangUp()
	}
}

// Passed is the number of frames so far, without pings.
func (t *Tap) Passed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.passed
}

// Session is the present session and its password, as in a handshake.
func (t *Tap) Session() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.session)
}

// IsTouched reports whether a test ever caused a fault. What happens to an untouched connection is
// an accident. A frame on hold is no fault, because the connection stays.
func (t *Tap) IsTouched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.touched
}

// Touch notes that a test causes a fault that the tap does not see, such as the end of the session.
func (t *Tap) Touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch()
}

// touch is Touch for a caller that has locked t.mu.
func (t *Tap) touch() {
	if !t.touched {
		t.touched = true
		t.before = len(t.frames)
	}
}

// MayHold reports whether a frame is on hold, or a trap waits for one to hold: a request could go
// unanswered.
func (t *Tap) MayHold() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds := func(trap *Trap) bool { return trap.hold && !trap.isLet() }
	return slices.ContainsFunc(t.holding, holds) || slices.ContainsFunc(t.traps, holds)
}

func (t *Tap) setLine(state line) (was line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state != up {
		t.touch()
	}
	was, t.line = t.line, state
	return was
}

// HangUp closes the connections. The client reconnects at once.
func (t *Tap) HangUp() {
	t.mu.Lock()
	t.touch()
	conns := slices.Collect(maps.Keys(t.conns))
	t.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// Delay makes each frame from the server take d longer. Frames that are sent together arrive one
// after the other, d apart.
func (t *Tap) Delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = d
}

// A Trap is a fault that waits for its frame.
type Trap struct {
	kind   Kind
	op     Op
	nth    int
	hold   bool // hold the frame until let; otherwise drop it and close the connection
	sprung chan struct{}
	let    chan struct{}
	once   sync.Once
}

// LoseRequest drops the nth request of a kind, counted from now (the next is 1), and closes the
// connection: the server never receives it.
func (t *Tap) LoseRequest(op Op, nth int) *Trap { return t.trap(Request, op, nth, false) }

// LoseReply drops the reply to the nth request of a kind and closes the connection: the server has
// carried out the request, and the client cannot know.
func (t *Tap) LoseReply(op Op, nth int) *Trap { return t.trap(Reply, op, nth, false) }

// HoldRequest stops the nth request of a kind, and all behind it, until Let.
func (t *Tap) HoldRequest(op Op, nth int) *Trap { return t.trap(Request, op, nth, true) }

// HoldReply stops the reply to the nth request of a kind, and all behind it,
// until Let.
func (t *Tap) HoldReply(op Op, nth int) *Trap { return t.trap(Reply, op, nth, true) }

func (t *Tap) trap(kind Kind, op Op, nth int, hold bool) *Trap {
	trap := &Trap{kind: kind, op: op, nth: nth, hold: hold, sprung: make(chan struct{}), let: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !hold {
		t.touch()
	}
	t.traps = append(t.traps, trap)
	return trap
}

// Sprung is closed when the trap has caught its frame. For a reply this proves that the server has
// carried out the request.
func (tr *Trap) Sprung() <-chan struct{} { return tr.sprung }

// IsSprung reports whether the trap has caught its frame.
func (tr *Trap) IsSprung() bool { return isClosed(tr.sprung) }

// isLet reports whether Let was called.
func (tr *Trap) isLet() bool { return isClosed(tr.let) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// waitsFor reports whether the trap counts the frame.
func (tr *Trap) waitsFor(f *Frame) bool {
	if tr.kind != f.Kind {
		return false
	}
	if tr.op == Any {
		return f.Op != Ping && f.Op != Connect
	}
	isDelete := f.Op == Delete || f.Op == Multi // a lock may release by a multi
	return tr.op == f.Op || tr.op == Delete && isDelete
}

// Let lets a held frame pass. If it is called before the frame arrives, the frame is not held. A
// second call does nothing.
func (tr *Trap) Let() { tr.once.Do(func() { close(tr.let) }) }

// conn is one tapped connection. The client writes one whole frame per Write, and reads from one
// goroutine.
type conn struct {
	net.Conn
	tap    *Tap
	asked  map[int32]Frame // with tap.mu, by xid: requests without a reply yet
	closed chan struct{}
	once   sync.Once

	writing bool // the handshake has been written
	reading bool // the handshake has been read
	unread  []byte

	gate     *gate        // nil: frames do not wait
	up, down chan waiting // frames that wait before the gate
	before   int          // with tap.mu: how many frames wait there
	arrived  chan []byte  // frames that have passed the gate
}

// pass records a frame. It returns the trap that the frame springs, or nil, and how long a frame
// from the server is to be delayed.
func (c *conn) pass(f *Frame) (sprung *Trap, late time.Duration) {
	t := c.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	f.At = time.Now()
	f.Lost = t.line == silent
	for i, trap := range t.traps {
		if f.Lost || !trap.waitsFor(f) {
			continue
		}
		if trap.nth--; trap.nth == 0 {
			sprung = trap
			t.traps = slices.Delete(t.traps, i, i+1)
			if f.Lost = !trap.hold; trap.hold {
				t.holding = append(t.holding, trap)
			}
			break
		}
	}
	if f.Op != Ping {
		t.passed++
	}
	if t.gate == nil || !t.gate.isSilent {
		t.frames = append(t.frames, *f)
	}
	c.account(*f)
	if c.queues(*f) {
		c.before++
	}
	return sprung, t.delay
}

// account keeps track of the requests without a reply, and
// of the watches that the server has for the connection.
func (c *conn) account(f Frame) {
	armed := c.tap.armed
	switch f.Kind {
	case Request:
		if f.Op != Ping && f.Op != Connect {
			c.asked[f.Xid] = f
		}
	case Reply:
		delete(c.asked, f.Xid)
		if f.setsWatch() {
			armed[watch{f.Path, f.Op == GetChildren}] = true
		}
	case Notification:
		if f.Event != ChildrenChanged {
			delete(armed, watch{f.Path, false})
		}
		if f.Event == ChildrenChanged || f.Event == NodeDeleted {
			delete(armed, watch{f.Path, true})
		}
	}
}

// request returns the request that a reply answers.
func (c *conn) request(xid int32) Frame {
	if xid == -2 {
		return Frame{Op: Ping}
	}
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	f := c.asked[xid]
	return Frame{Op: f.Op, Path: f.Path, Watch: f.Watch, Asked: f.At}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		t := c.tap
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.conns, c)
		clear(t.armed) // the server drops a connection's watches with it
	})
	return c.Conn.Close()
}

// Write takes one whole frame from the client.
func (c *conn) Write(b []byte) (int, error) {
	f := Frame{Kind: Request, Op: Connect, Bytes: len(b)}
	if c.writing && len(b) >= 12 {
		f = readRequest(b)
	}
	c.writing = true
	if f.Op == SetWatches {
		c.tap.mu.Lock()
		for _, w := range readWatches(b) {
			c.tap.armed[w] = true
		}
		c.tap.mu.Unlock()
	}
	trap, _ := c.pass(&f)
	b = bytes.Clone(b) // the client reuses its buffer for the next frame
	return len(b), c.line(c.up, f, func() error {
		err := c.spring(trap)
		if err == nil && !f.Lost {
			_, err = c.Conn.Write(b)
		}
		return err
	})
}

// Read gives the client what the server sent, one frame at a time. An
// error ends the connection, and with it a request on hold: the client
// is still writing that request, and could not close the connection.
func (c *conn) Read(b []byte) (int, error) {
	for len(c.unread) == 0 {
		if err := c.next(); err != nil {
			c.Close()
			return 0, err
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// next gets the next frame for the client.
func (c *conn) next() error {
	if c.gate == nil {
		return c.receive(func(b []byte) { c.unread = b })
	}
	select {
	case c.unread = <-c.arrived:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

// receive reads one frame from the server, and delivers it unless it is lost.
func (c *conn) receive(arrive func(b []byte)) error {
	b, err := ReadFrame(c.Conn)
	if err != nil {
		return err
	}
	f := Frame{Kind: Reply, Op: Connect, Bytes: len(b)}
	if c.reading {
		f = readReply(b, c.request)
	} else if len(b) >= 40 {
		c.tap.mu.Lock()
		c.tap.session = b[12:40]
		c.tap.mu.Unlock()
	}
	c.reading = true
	trap, late := c.pass(&f)
	return c.line(c.down, f, func() error {
		time.Sleep(late)
		err := c.spring(trap)
		if err == nil && !f.Lost {
			arrive(b)
		}
		return err
	})
}

// spring applies the trap, if any, to the frame that sprang it.
func (c *conn) spring(trap *Trap) error {
	if trap == nil {
		return nil
	}
	close(trap.sprung)
	if !trap.hold {
		c.Close()
		return nil // as on a network, the write has succeeded; the next read fails
	}
	select {
	case <-trap.let:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}
