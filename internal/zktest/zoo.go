// Package zktest is the vocabulary with which tests, and the tour, talk about
// clients of a real ZooKeeper: sessions and what passes on their lines, calls
// that wait, crashes, whole queues.
package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
)

// T is what this package needs of a test. A *testing.T is one; outside of
// tests, Play gives one.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

// Session time-outs. A mortal client is one that a test lets die: its session
// must expire soon, and yet not by accident.
const (
	SessionTimeout = 30 * time.Second
	MortalTimeout  = 2 * time.Second
)

// Zoo is one test's share of a real ZooKeeper: a root of its own, and clients
// that are gone when the test ends.
type Zoo struct {
	*zkserver.Server
	Ctx  context.Context // ends with the test, at the latest when nothing has moved for Patience
	Root string          // the path of a znode that is this test's own

	Untapped bool // new clients' lines are not tapped: for measuring speed

	// Tapped, if it is set, is told of each new client's tap, before the client connects.
	Tapped func(name string, tap *wiretap.Tap)

	t     T
	eye   *Client // looks on from outside the test's story
	clock *clock
	end   context.CancelCauseFunc // of Ctx
}

// New gives a test its share of the test binary's server.
func New(t T) *Zoo {
	t.Helper()
	server, err := Shared()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return NewOn(t, server)
}

// NewOn is New on a server of the caller's choice.
func NewOn(t T, server *zkserver.Server) *Zoo {
	t.Helper()
	ctx, end := context.WithCancelCause(context.Background())
	t.Cleanup(func() { end(errors.New("the test has ended")) })
	z := &Zoo{
		Server: server,
		Ctx:    ctx,
		Root:   fmt.Sprintf("/zklock-%016x", rand.Uint64()),
		t:      t,
		clock:  &clock{patience: Patience},
		end:    end,
	}
	go z.clock.run(ctx, end)
	z.eye = z.Client("the observer")
	context.AfterFunc(ctx, z.eye.end) // what the observer asks, and nobody answers, returns at the deadline, too
	z.clock.forget()                  // the observer moves nothing
	var err error
	isAnswered := func() bool {
		_, err = z.eye.Create(z.Root, nil, 0, zk.WorldACL(zk.PermAll))
		notServing := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) // as in an election
		return !notServing
	}
	noRoot := func() { t.Fatalf("create this test's root %s: %v", z.Root, err) }
	z.await(isAnswered, noRoot)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		noRoot()
	}
	t.Cleanup(func() { z.remove(z.Root) }) // before the observer closes
	return z
}

// Client is one session with a tap on its line.
type Client struct {
	*zk.Conn
	Tap  *wiretap.Tap
	Name string
	ID   int64 // of the session; stays the same after the session has ended

	end        func()
	closed     bool // by Close
	handshakes int  // until the client had its session
}

// Close ends the session: the server deletes its ephemeral znodes at once.
func (c *Client) Close() {
	c.closed = true
	c.end()
}

// Accident says what has befallen the client's line or session that nobody asked for: "" is
// nothing. On a busy machine a short session may expire, and a line may break.
func (c *Client) Accident() string {
	if c.closed || c.Tap.IsTouched() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	err := c.read(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf("%s cannot reach the server: %v", c.Name, err)
	case c.SessionID() != c.ID:
		return fmt.Sprintf("session %#x of %s has ended", c.ID, c.Name)
	case c.Tap.Handshakes() > c.handshakes:
		return fmt.Sprintf("the connection of %s broke", c.Name)
	}
	return ""
}

// read asks whether "/" exists, and waits for the answer until ctx ends.
func (c *Client) read(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.Exists("/")
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Client opens a session that ends with the test.
func (z *Zoo) Client(name string) *Client { return z.Connect(name, SessionTimeout) }

// Connect opens a session with a time-out of the caller's choice.
func (z *Zoo) Connect(name string, timeout time.Duration) *Client {
	z.t.Helper()
	return z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, err := Dial(z.Servers(), timeout, dial)
		return conn, conn.Close, err
	})
}

// Buffer is how many bytes a client keeps to send a request, and as many to read an
// answer: else the client library takes 1.5 MB for each, and a thousand clients 3 GB. A
// longer request is not sent. At a longer answer, such as a list of very many names, the
// client hangs up, and whoever has asked for it gets zk.ErrConnectionClosed.
//
// The longest list of any test fits into this one. Who brings a thousand clients to a lock
// sets another one, by BufferFor, before the first of them comes.
var Buffer = 256 << 10

// BufferFor is a Buffer for the list of a lock's directory that has so many names.
func BufferFor(names int) int {
	const (
		longest = 55      // zk.Lock's names have 51 bytes, and 4 bytes before each tell its length
		other   = 8 << 10 // the head of the answer, a few more names; and all that is no list
	)
	return names*longest + other
}

// Dial begins a session as all of them are begun here: with a Buffer, and without a word
// of the client's own log, for what happened is in the tap's record.
func Dial(servers []string, timeout time.Duration, dial zk.Dialer) (*zk.Conn, error) {
	return dialWith(Buffer, servers, timeout, dial)
}

func dialWith(buffer int, servers []string, timeout time.Duration, dial zk.Dialer) (*zk.Conn, error) {
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(NoLog),
		zk.WithMaxConnBufferSize(buffer), zk.WithMaxBufferSize(buffer))
	return conn, err
}

// ConnectWith is Connect with a connection that open makes in its own way, over
// the client's tap, and that is closed by the function that open returns.
func (z *Zoo) ConnectWith(name string, open func(zk.Dialer) (*zk.Conn, func(), error)) *Client {
	z.t.Helper()
	tap := wiretap.New()
	z.clock.watch(name, tap)
	dial := tap.Dial
	if z.Tapped != nil {
		z.Tapped(name, tap)
	}
	if z.Untapped {
		dial = net.DialTimeout
	}
	conn, closeIt, err := open(dial)
	if err != nil {
		z.t.Fatalf("%s: connect to %v: %v", name, z.Servers(), err)
	}
	z.t.Cleanup(closeIt)
	z.Await(fmt.Sprintf("%v to have a session", name), func() bool { return conn.State() == zk.StateHasSession })
	return &Client{
		Conn: conn, Tap: tap, Name: name, ID: conn.SessionID(),
		end: closeIt, handshakes: tap.Handshakes(),
	}
}

// Crash makes the client go silent without a goodbye, as a process does that
// is killed or a machine that loses its network: the server keeps the session
// until it expires.
func (c *Client) Crash() { c.Tap.Silence() }

// AwaitExpiry returns when the server has ended the clients' sessions, and with
// them the sessions' ephemeral znodes.
func (z *Zoo) AwaitExpiry(clients ...*Client) {
	z.t.Helper()
	z.Await(fmt.Sprintf("the server to expire session %#x of %s", clients[0].ID, clients[0].Name), func() bool {
		sessions, err := z.Sessions()
		return err == nil && !slices.ContainsFunc(clients, func(c *Client) bool {
			_, lives := sessions[c.ID]
			return lives
		})
	})
}

// Await returns when cond is true, and fails the test at its deadline with
// what it was waiting for.
func (z *Zoo) Await(what any, cond func() bool) {
	z.t.Helper()
	z.await(cond, func() { z.t.Fatalf("timed out waiting for %s: %v", what, context.Cause(z.Ctx)) })
}

// await is Await that calls inVain at the deadline, which fails the test.
func (z *Zoo) await(cond func() bool, inVain func()) {
	z.t.Helper()
	for !cond() {
		select {
		case <-z.Ctx.Done():
			inVain()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Require fails the test if something that was to be done has failed.
func (z *Zoo) Require(err error, what string) {
	z.t.Helper()
	if err != nil {
		z.t.Fatalf("%s: %v", what, err)
	}
}

// AwaitChan returns when ch is closed or has a value.
func AwaitChan[V any](z *Zoo, what any, ch <-chan V) V {
	z.t.Helper()
	select {
	case v := <-ch:
		return v
	case <-z.Ctx.Done():
		z.t.Fatalf("timed out waiting for %s: %v", what, context.Cause(z.Ctx))
		panic("unreachable")
	}
}

// BySequence compares the names of sequential znodes by the numbers that end them.
func BySequence(a, b string) int {
	return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
}

// Names lists the children of a znode, asked by an observer and so on nobody's
// account. A znode that is not there has none.
func (z *Zoo) Names(path string) []string {
	z.t.Helper()
	names, _, err := z.eye.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		z.t.Fatalf("list %s: %v", path, err)
	}
	return names
}

// Owner is the session that the ephemeral znode belongs to: 0 when it is
// persistent. It tells whether the znode is there at all.
func (z *Zoo) Owner(path string) (session int64, there bool) {
	z.t.Helper()
	there, stat, err := z.eye.Exists(path)
	if err != nil {
		z.t.Fatalf("look at %s: %v", path, err)
	}
	return stat.EphemeralOwner, there
}

// Observer is a session outside of the test's story, to arrange things with.
func (z *Zoo) Observer() *Client { return z.eye }

// Barrier returns when each client has received every notification of what the
// server did before the call: the answer to a read stands behind them on the
// line. The read is an exists on "/". On a busy machine a client may lose its
// connection meanwhile: then it reads once more.
func (z *Zoo) Barrier(clients ...*Client) {
	z.t.Helper()
	for _, c := range clients {
		err := c.read(z.Ctx)
		for errors.Is(err, zk.ErrConnectionClosed) && z.Ctx.Err() == nil {
			err = c.read(z.Ctx)
		}
		if err != nil {
			z.t.Fatalf("%s: a read to flush its notifications: %v", c.Name, err)
		}
	}
}

// remove deletes a znode and all below it, as far as that is allowed.
func (z *Zoo) remove(path string) {
	names, _, err := z.eye.Children(path)
	if err != nil {
		return
	}
	for _, name := range names {
		z.remove(path + "/" + name)
	}
	_ = z.eye.Delete(path, -1) // not empty, if a client was late: nobody minds
}

// NoLog takes what the client library says in its log: what happened is in the tap's record.
var NoLog = log.New(io.Discard, "", 0)
