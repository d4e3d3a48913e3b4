package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
)

// A Handshake says what a connection changes in the handshake, by which a client and a server agree
// on a session. The zero value changes nothing.
type Handshake struct {
	// Ask is the session timeout that the server receives in place of what the client asks for. A
	// server with a short maxSessionTimeout would grant the same.
	Ask time.Duration
	// Tell is the session timeout that the client receives in place of what the server granted. A
	// server with a long tickTime also keeps a session longer than it says.
	Tell time.Duration
	// Expired tells the client that its session has expired.
	Expired bool
}

// Through is a dialer whose connections change the handshake.
func (h Handshake) Through(tap zk.Dialer) zk.Dialer { return Over(h.Conn)(tap) }

// Conn is a connection over a tap that changes the handshake.
func (h Handshake) Conn(c net.Conn) net.Conn {
	return &handshaking{Altered: Altered{Conn: c, Alter: func(n int, frame []byte) ([]byte, error) {
		if n == 0 && h.Tell > 0 { // length, version, timeout, session
			binary.BigEndian.PutUint32(frame[8:], uint32(h.Tell.Milliseconds()))
		}
		if n == 0 && h.Expired {
			clear(frame[8:20])
		}
		return frame, nil
	}}, ask: h.Ask}
}

type handshaking struct {
	Altered
	ask   time.Duration
	wrote bool
}

func (c *handshaking) Write(b []byte) (int, error) {
	if !c.wrote && c.ask > 0 { // length, version, last zxid, timeout
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b[16:], uint32(c.ask.Milliseconds()))
	}
	c.wrote = true
	return c.Conn.Write(b)
}

// Altered is a connection over a tap. Alter changes the n-th frame from the server, counted from 0.
// If it returns an error, that frame is the last.
type Altered struct {
	net.Conn
	Alter func(n int, frame []byte) ([]byte, error)

	n      int
	unread []byte
	err    error
}

func (c *Altered) Read(b []byte) (int, error) {
	for len(c.unread) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		frame := make([]byte, 64<<10) // the tap gives one at a time
		n, err := c.Conn.Read(frame)
		if err != nil {
			return 0, err
		}
		c.unread, c.err = c.Alter(c.n, frame[:n])
		c.n++
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// Over changes each connection of a dialer.
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

// Impostor listens on a free port until the test ends, and answers each connection once the client
// has sent something. With a nil answer it frees the port again.
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

// Expire returns when the sessions of the clients have expired, all at once. The clients crash. So
// that the test need not wait for their timeouts, another connection takes over each session,
// agrees on the shortest timeout that the server grants, and sends nothing more.
func (z *Zoo) Expire(clients ...*Client) {
	z.t.Helper()
	for _, c := range clients {
		c.Crash()
	}
	taken := make(chan error)
	for some := range slices.Chunk(clients, 16) { // a server keeps few connections waiting that it has not accepted yet
		for _, c := range some {
			go func() {
				conn, err := takeOver(z.Servers()[0], c.Tap.Session(), time.Millisecond)
				if err == nil {
					conn.Close()
				}
				taken <- err
			}()
		}
		for range some {
			err := <-taken
			hasExpired := errors.Is(err, io.EOF) // by itself, on a slow machine: its connection is closed
			if err != nil && !hasExpired {
				z.t.Errorf("take a session over: %v", err)
			}
		}
	}
	z.AwaitExpiry(clients...)
}

// EndSession returns when the server has ended the client's session,
// although the client lives and its connection works. So a session can
// end between two requests of the client, while the tap holds one.
func (z *Zoo) EndSession(c *Client) {
	z.t.Helper()
	id, session := c.SessionID(), c.Tap.Session()
	z.Await(fmt.Sprintf("the server to end session %#x of %s", id, c.Name), func() bool {
		_ = CloseSession(z.Servers()[0], session) // it may have ended, or the client was quicker and has it again
		sessions, err := z.Sessions()
		_, lives := sessions[id]
		return err == nil && !lives
	})
}

// CloseSession closes a session that another client has begun, as Tap.Session returns it: another
// connection takes it over and closes it.
func CloseSession(server string, session []byte) error {
	conn, err := takeOver(server, session, SessionTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	closes := wiretap.Close
	request := binary.BigEndian.AppendUint32(nil, 8) // length, xid, opcode
	request = binary.BigEndian.AppendUint32(request, 1)
	request = binary.BigEndian.AppendUint32(request, uint32(closes))
	if _, err := conn.Write(request); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn) // until the server has ended the session and closes the connection
	return err
}

// takeOver connects to a server with a session that another client has begun, as Tap.Session
// returns it, and agrees on a timeout.
func takeOver(server string, session []byte, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", server, Patience)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(Patience))
	b := make([]byte, 20) // length, version, last zxid, timeout
	binary.BigEndian.PutUint32(b, uint32(16+len(session)))
	binary.BigEndian.PutUint32(b[16:], uint32(timeout.Milliseconds()))
	if _, err = conn.Write(append(b, session...)); err == nil {
		_, err = io.ReadFull(conn, b) // length, version, timeout, session
	}
	if err == nil && binary.BigEndian.Uint64(b[12:]) == 0 {
		err = errors.New("the server says that it has expired")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
