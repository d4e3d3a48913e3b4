// Package zktest is the vocabulary in which tests, and the tour, describe clients of a real
// ZooKeeper: sessions and what passes on their connections, calls that wait, crashes, whole queues.
package zktest

import (
	"cmp"
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

// T is what this package needs of a test. A *testing.T is one; outside of tests, Tell gives one.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

// Session timeouts. A mortal client is one that a test lets crash: its session must expire soon,
// but not by accident.
const (
	SessionTimeout = 30 * time.Second
	MortalTimeout  = 2 * time.Second
)

// Zoo is one test's share of a real ZooKeeper: a root of
// its own, and clients whose sessions end with the test.
type Zoo struct {
	*zkserver.Server
	Ctx  context.Context // ends with the test, at the latest when nothing has moved for Patience
	Root string          // the path of a znode that is this test's own

	Untapped bool // new clients' connections are not tapped: for measuring speed

	// Tapped, if not nil, is called with each new client's tap, before the client connects.
	Tapped func(name string, tap *wiretap.Tap)

	t     T
	eye   *Client // observes from outside the test's story
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
	context.AfterFunc(ctx, z.eye.end) // a request of the observer that is not answered also returns at the deadline
	z.clock.forget()                  // the clock ignores the observer
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

// Client is one session with a tap on its connection.
type Client struct {
	*zk.Conn
	Tap  *wiretap.Tap
	Name string
	ID   int64 // of the session; stays the same after the session has ended

	end        func()
	closed     bool  // by Close
	handshakes int   // until the client had its session
	crashedIn  int64 // the session that the client had when it crashed last; 0: it has not crashed
}

// Close ends the session: the server deletes its ephemeral znodes at once.
func (c *Client) Close() {
	c.closed = true
	c.end()
}

// Accident describes what has happened to the client's connection or
// session and was not caused by the test: "" is nothing. On a busy
// machine a short session may expire, and a connection may break. From the
// first fault on that the test causes, nobody knows what it has caused.
func (c *Client) Accident() string {
	if c.Tap.Handshakes() > c.handshakes {
		return fmt.Sprintf("the connection of %s broke", c.Name)
	}
	if c.closed || c.Tap.IsTouched() || c.Tap.MayHold() {
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

// Connect opens a session with a timeout of the caller's choice.
func (z *Zoo) Connect(name string, timeout time.Duration) *Client {
	z.t.Helper()
	return z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, err := Dial(z.Servers(), timeout, dial)
		return conn, conn.Close, err
	})
}

// Buffer is how many bytes a client keeps to send a request, and as many to read an
// answer. By default the client library takes 1.5 MB for each, which is 3 GB for a thousand
// clients. A longer request is not sent. At a longer answer, such as a list of very many
// names, the client closes the connection, and the request returns zk.ErrConnectionClosed.
//
// The longest list of any test fits into this one. A test that brings a thousand clients to
// a lock sets another one, by BufferFor, before the first of them connects.
var Buffer = 256 << 10

// BufferFor is a Buffer for a list of so many names in a lock's directory.
func BufferFor(names int) int {
	const (
		longest = 55      // zk.Lock's names have 51 bytes, and each has its length in 4 bytes before it
		other   = 8 << 10 // the head of the answer, a few more names; and everything that is no list
	)
	return names*longest + other
}

// Dial begins a session as every test does: with a Buffer, and without the client's own log,
// because the tap's record has what happened.
func Dial(servers []string, timeout time.Duration, dial zk.Dialer) (*zk.Conn, error) {
	return dialWith(Buffer, servers, timeout, dial)
}

func dialWith(buffer int, servers []string, timeout time.Duration, dial zk.Dialer) (*zk.Conn, error) {
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(NoLog),
		zk.WithMaxConnBufferSize(buffer), zk.WithMaxBufferSize(buffer))
	return conn, err
}

// ConnectWith is Connect with a connection that open makes over the client's tap. The function that
// open returns closes it.
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

// Crash makes the client go silent without closing its session, like a process that is killed or a
// machine that loses its network. The server keeps the session until it expires.
func (c *Client) Crash() {
	c.Tap.Silence()
	c.crashedIn = c.SessionID()
}

// AwaitExpiry returns when the server has ended the sessions that the clients had when they
// crashed, and with them the sessions' ephemeral znodes.
func (z *Zoo) AwaitExpiry(clients ...*Client) {
	z.t.Helper()
	session := func(c *Client) int64 { return cmp.Or(c.crashedIn, c.ID) }
	z.Await(fmt.Sprintf("the server to expire session %#x of %s", session(clients[0]), clients[0].Name), func() bool {
		sessions, err := z.Sessions()
		return err == nil && !slices.ContainsFunc(clients, func(c *Client) bool {
			_, lives := sessions[session(c)]
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

// Require fails the test if a step of it has failed.
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

// BySequence compares the names of sequential znodes by the numbers at their ends.
func BySequence(a, b string) int {
	return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
}

// Names lists the children of a znode. The observer sends the request, so it counts for no client.
// A znode that does not exist has none.
func (z *Zoo) Names(path string) []string {
	z.t.Helper()
	names, _, err := z.eye.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		z.t.Fatalf("list %s: %v", path, err)
	}
	return names
}

// Owner is the session that owns the ephemeral znode, or 0 if the znode is persistent. It also
// reports whether the znode exists.
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

// Barrier returns when each client has received every notification of what the server did before
// the call: the answer to a read is behind them on the connection. The read is an exists on "/". On
// a busy machine a client may lose its connection meanwhile. Then it reads once more.
func (z *Zoo) Barrier(clients ...*Client) {
	z.t.Helper()
	for _, c := range clients {
		err := c.read(z.Ctx)
		for isOfTheConnection(err) && z.Ctx.Err() == nil {
			err = c.read(z.Ctx)
		}
		if err != nil {
			z.t.Fatalf("%s: a read to flush its notifications: %v", c.Name, err)
		}
	}
}

// isOfTheConnection reports whether a request failed because the connection broke. While the client library writes to a
// connection that has just been closed, its error is the system's.
func isOfTheConnection(err error) bool {
	var ofTheSystem *net.OpError
	return errors.Is(err, zk.ErrConnectionClosed) || errors.As(err, &ofTheSystem)
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
	_ = z.eye.Delete(path, -1) // not empty, if a client was late, which does no harm
}

// NoLog discards the client library's log, because the tap's record has what happened.
var NoLog = log.New(io.Discard, "", 0)
