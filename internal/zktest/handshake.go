package zktest

import (
	"encoding/binary"
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
