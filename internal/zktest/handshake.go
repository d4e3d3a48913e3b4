package zktest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Handshake is what a line makes of the handshake, in which a client and a
// server agree on a session. The zero value leaves it as it was.
type Handshake struct {
	// Ask is the session time-out that the server hears in place of what the
	// client asks for. A server with a short maxSessionTimeout would grant the
	// same.
	Ask time.Duration
	// Tell is the session time-out that the client hears in place of what the
	// server granted. A server with a long tickTime, too, keeps a session longer
	// than it says.
	Tell time.Duration
	// Expired makes the client hear that its session has expired.
	Expired bool
}

// Through is a dialer whose connections change the handshake.
func (h Handshake) Through(tap zk.Dialer) zk.Dialer { return Over(h.Conn)(tap) }

// Conn is a connection that changes the handshake.
func (h Handshake) Conn(c net.Conn) net.Conn { return &altered{Conn: c, Handshake: h} }

// Over makes each connection of a dialer another one.
func Over(change func(net.Conn) net.Conn) func(zk.Dialer) zk.Dialer {
	return func(tap zk.Dialer) zk.Dialer {
		return func(network, address string, limit time.Duration) (net.Conn, error) {
			conn, err := tap(network, address, limit)
			if err != nil {
				return nil, err
			}
			return change(conn), nil
		}
	}
}

type altered struct {
	net.Conn
	Handshake
	wrote bool
	read  int
}

func (c *altered) Write(b []byte) (int, error) {
	if !c.wrote && c.Ask > 0 { // length, version, last zxid, time-out
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b[16:], uint32(c.Ask.Milliseconds()))
	}
	c.wrote = true
	return c.Conn.Write(b)
}

func (c *altered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	timeout := binary.BigEndian.AppendUint32(nil, uint32(c.Tell.Milliseconds()))
	for i := range b[:n] {
		at := c.read + i - 8 // length, version, time-out, session
		if c.Tell > 0 && at >= 0 && at < 4 {
			b[i] = timeout[at]
		}
		if c.Expired && at >= 0 && at < 12 {
			b[i] = 0
		}
	}
	c.read += n
	return n, err
}

// Impostor listens on a free port until the test ends, and answers each
// connection once it has asked something. With a nil answer it gives the port
// back.
func Impostor(t T, answer func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if answer == nil {
		l.Close()
		return l.Addr().String()
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 100)); err != nil {
					return
				}
				answer(c)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

// Expire returns when the sessions of the clients have expired, all in one moment.
// They crash; and so that nobody has to wait for their time-outs, another
// connection takes each session over, agrees on the shortest time-out that the
// server grants, and is heard of no more.
func (z *Zoo) Expire(clients ...*Client) {
	z.t.Helper()
	for _, c := range clients {
		c.Crash()
	}
	taken := make(chan error)
	for some := range slices.Chunk(clients, 16) { // a server has few places for who is not accepted yet
		for _, c := range some {
			go func() { taken <- z.takeOver(c.Tap.Session()) }()
		}
		for range some {
			if err := <-taken; err != nil {
				z.t.Errorf("take a session over: %v", err)
			}
		}
	}
	z.AwaitExpiry(clients...)
}

// takeOver connects with a session that somebody else has begun, and hangs up.
func (z *Zoo) takeOver(session []byte) error {
	conn, err := net.DialTimeout("tcp", z.Servers()[0], Patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	b := make([]byte, 20) // length, version, last zxid, time-out
	binary.BigEndian.PutUint32(b, uint32(16+len(session)))
	binary.BigEndian.PutUint32(b[16:], 1)
	if _, err = conn.Write(append(b, session...)); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, b)
	if err == nil && binary.BigEndian.Uint64(b[12:]) == 0 {
		err = errors.New("the server says that it has expired")
	}
	return err
}
