package reentrant

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A party is one process of a story: a session of its own with a tap on its
// line, and the lock at <the test's root>/lock.
type party struct {
	*zktest.Client
	s    *Session
	lock mutex
	t    *testing.T
	z    *zktest.Zoo
}

// mutex is what a Lock and a Cohort have in common.
type mutex interface {
	Lock(ctx context.Context) (held context.Context, err error)
	TryLock(ctx context.Context, wait time.Duration) (held context.Context, err error)
	Unlock(held context.Context) error
}

func join(t *testing.T, z *zktest.Zoo, name string) *party {
	return joinOver(t, z, name, zktest.SessionTimeout, nil)
}

// joinMortal brings a party whose session expires soon after a crash.
func joinMortal(t *testing.T, z *zktest.Zoo, name string) *party {
	return joinOver(t, z, name, zktest.MortalTimeout, nil)
}

// joinOver brings a party that asks for the given session time-out, over a line
// that changes the handshake, if over is not nil.
func joinOver(t *testing.T, z *zktest.Zoo, name string, timeout time.Duration, over func(net.Conn) net.Conn) *party {
	t.Helper()
	return joinThrough(t, z, name, timeout, func(dial zk.Dialer) zk.Dialer {
		return func(network, address string, limit time.Duration) (net.Conn, error) {
			conn, err := dial(network, address, limit)
			if err == nil && over != nil {
				conn = over(conn)
			}
			return conn, err
		}
	})
}

// joinThrough brings a party that connects through what a test makes of its
// tap's dialer.
func joinThrough(t *testing.T, z *zktest.Zoo, name string, timeout time.Duration, through func(zk.Dialer) zk.Dialer) *party {
	t.Helper()
	p := &party{t: t, z: z}
	p.Client = z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		session, err := Open(z.Servers(), timeout, WithDialer(through(dial)))
		if err != nil {
			return nil, nil, err
		}
		p.s = session
		return session.Conn(), session.Close, nil
	})
	p.lock = New(p.s, p.path())
	return p
}

// asking makes the server hear another session time-out than the client asks
// for. A server with a short maxSessionTimeout would grant the same.
func asking(d time.Duration) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn { return &altered{Conn: c, ask: d} }
}

// told makes the client hear another session time-out than the server granted.
// A server with a long tickTime, too, keeps a session longer than it says.
func told(d time.Duration) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn { return &altered{Conn: c, tell: d} }
}

// altered is a line that changes the handshake.
type altered struct {
	net.Conn
	ask, tell time.Duration // 0: as it was
	expired   bool          // the client hears that its session has expired
	wrote     bool
	read      int
}

func (c *altered) Write(b []byte) (int, error) {
	if !c.wrote && c.ask > 0 { // length, version, last zxid, time-out
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b[16:], uint32(c.ask.Milliseconds()))
	}
	c.wrote = true
	return c.Conn.Write(b)
}

func (c *altered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	timeout := binary.BigEndian.AppendUint32(nil, uint32(c.tell.Milliseconds()))
	for i := range b[:n] {
		at := c.read + i - 8 // length, version, time-out, session
		if c.tell > 0 && at >= 0 && at < 4 {
			b[i] = timeout[at]
		}
		if c.expired && at >= 0 && at < 12 {
			b[i] = 0
		}
	}
	c.read += n
	return n, err
}

// A call is a call to Lock or TryLock, on a goroutine of its own.
type call struct {
	*zktest.Attempt
	held context.Context
}

func (p *party) call(lock func(context.Context) (context.Context, error)) *call {
	c := &call{}
	c.Attempt = p.z.Go(p.Client, func(ctx context.Context) (err error) {
		c.held, err = lock(ctx)
		return err
	})
	return c
}

// start calls Lock.
func (p *party) start() *call { return p.call(p.lock.Lock) }

// acquire calls Lock and returns the hold.
func (p *party) acquire() context.Context {
	p.t.Helper()
	return p.start().in()
}

// in returns the hold, once the call has come back with it.
func (c *call) in() context.Context {
	c.Acquired()
	return c.held
}

// waits fails the test unless the call has settled down to wait at ZooKeeper.
func (p *party) waits(c *call, why string) {
	p.t.Helper()
	require.Equal(p.t, zktest.Silently, c.Waits(), "%s; the queue: %v", why, p.queue())
}

// release calls Unlock, which must succeed.
func (p *party) release(held context.Context) {
	p.t.Helper()
	require.NoError(p.t, p.lock.Unlock(held))
}

// path is the lock's directory.
func (p *party) path() string { return p.z.Root + "/lock" }

// queue lists the names in it.
func (p *party) queue() []string { return p.z.Names(p.path()) }

// permit gives the lock's directory an ACL with these permissions, for everybody.
func (p *party) permit(permissions int32) {
	p.t.Helper()
	_, err := p.z.Observer().SetACL(p.path(), zk.WorldACL(permissions), -1)
	require.NoError(p.t, err)
}

// requests counts what the party has asked for since the mark.
func (p *party) requests(mark int) map[wiretap.Op]int {
	return wiretap.Count(p.Tap.Since(mark)).Requests
}

// holds fails the test unless held hangs on a znode of the party's present
// session, and on the only one that this session has.
func (p *party) holds(held context.Context) {
	p.t.Helper()
	node := held.Value(holdOf{p.lock}).(*hold).node
	owner, there := p.z.Owner(node)
	require.True(p.t, there, "%s holds the lock with %s, which is not there", p.Name, node)
	require.Equal(p.t, p.SessionID(), owner, "%s holds the lock with %s, a znode of another session", p.Name, node)
	owned, err := p.z.Ephemerals()
	require.NoError(p.t, err)
	require.Equal(p.t, []string{node}, owned[p.SessionID()], "znodes of %s's session", p.Name)
}

// An outage begins when a frame is lost, and lasts until it is ended: the
// client connects again, but its handshake does not arrive.
type outage struct {
	*party
	lost, hello *wiretap.Trap
}

func (p *party) outageAt(lost *wiretap.Trap) outage {
	return outage{p, lost, p.Tap.HoldRequest(wiretap.Connect, 1)}
}

// begun returns when the client is cut off.
func (o outage) begun() {
	o.t.Helper()
	zktest.AwaitChan(o.z, "the frame to be lost", o.lost.Sprung())
	zktest.AwaitChan(o.z, o.Name+" to connect again", o.hello.Sprung())
}

func (o outage) end() { o.hello.Let() }

// asked returns the path of the last create that the party has asked for: the
// guid is in it, but not the number.
func (p *party) asked() string {
	return p.last(wiretap.Request)
}

// made returns the path of the last znode that the server has made for it.
func (p *party) made() string {
	return p.last(wiretap.Reply)
}

func (p *party) last(kind wiretap.Kind) (path string) {
	for _, f := range p.Tap.Frames() {
		if f.Kind == kind && f.Op == wiretap.Create && f.Err == wiretap.OK && strings.Contains(f.Path, "-lock-") {
			path = f.Path
		}
	}
	return path
}
