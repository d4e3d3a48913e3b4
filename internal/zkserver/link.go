package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// A link carries everything that one server sends to another one, on all connections, whichever of
// the two has opened them.
type link struct {
	holds int
	hear  func([]byte) // nil: nothing listens
	cond  *sync.Cond   // its lock guards the fields, and keeps the order of what passes
}

// hold stops the link until release is called. After hold has returned, nothing passes. What is
// sent meanwhile is late, as in a network, and not lost.
func (l *link) hold() (release func()) {
	l.cond.L.Lock()
	defer l.cond.L.Unlock()
	l.holds++
	return sync.OnceFunc(func() {
		l.cond.L.Lock()
		defer l.cond.L.Unlock()
		l.holds--
		l.cond.Broadcast()
	})
}

// pass waits until no hold stops the link, and calls send.
func (l *link) pass(send func()) {
	l.cond.L.Lock()
	defer l.cond.L.Unlock()
	for l.holds > 0 {
		l.cond.Wait()
	}
	send()
}

// far is the end of a connection that is reached over a link. What is sent to an end that has been
// closed is lost.
type far struct {
	*link
	net.Conn
}

func (f far) Write(b []byte) (int, error) {
	f.pass(func() {
		if f.hear != nil {
			f.hear(b)
		}
		_, _ = f.Conn.Write(b)
	})
	return len(b), nil
}

// A network connects the servers of an ensemble: it has ports in this process that lead to the
// servers, over links.
type network struct {
	place
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	links   map[[2]int]*link // from, to
}

func newNetwork(servers int, at place) *network {
	n := &network{place: at, links: make(map[[2]int]*link)}
	n.ctx, n.end = context.WithCancel(context.Background())
	for i := range servers * servers {
		n.links[[2]int{1 + i/servers, 1 + i%servers}] = &link{cond: sync.NewCond(&sync.Mutex{})}
	}
	return n
}

// close ends all ports and connections.
func (n *network) close() {
	n.end()
	for _, l := range n.links {
		l.cond.L.Lock()
		l.holds = 0
		l.cond.Broadcast()
		l.cond.L.Unlock()
	}
	n.running.Wait()
}

// lead opens a port at which one server reaches a port of another.
func (n *network) lead(from, to, target int) (port int, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(n.listen, "0"))
	if err != nil {
		return 0, err
	}
	context.AfterFunc(n.ctx, func() { listener.Close() })
	n.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n.running.Go(func() { n.connect(conn, target, n.links[[2]int{from, to}], n.links[[2]int{to, from}]) })
		}
	})
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (n *network) connect(caller net.Conn, target int, there, back *link) {
	defer caller.Close()
	there.pass(func() {}) // a new connection also waits for the link
	called, err := n.dial(target)
	if err != nil {
		return
	}
	defer called.Close()
	defer context.AfterFunc(n.ctx, func() { caller.Close(); called.Close() })()

	// When one side has closed its end, the connection is closed, as soon as the link lets that
	// pass.
	ends := make(chan bool, 2)
	forward := func(l *link, dst, src net.Conn) {
		_, _ = io.Copy(far{l, dst}, src)
		l.pass(func() { ends <- true })
	}
	n.running.Go(func() { forward(there, called, caller) })
	n.running.Go(func() { forward(back, caller, called) })
	<-ends
}

// dial waits a moment for a server that does not listen yet. A follower often calls before its new
// leader listens, and would retry if it were refused. But this process has already accepted the
// connection, and can no longer refuse it.
func (n *network) dial(target int) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	err = poll(ctx, func() error {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(n.host, strconv.Itoa(target)))
		if err == nil {
			err = staysOpen(conn)
		}
		return err
	})
	return conn, err
}

// staysOpen returns an error if the other side closes the connection at once, as Docker does for a
// server that does not listen yet. A server does not send anything first.
func staysOpen(conn net.Conn) error {
	conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	defer conn.SetReadDeadline(time.Time{})
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		conn.Close()
		return fmt.Errorf("%v has hung up: %v", conn.RemoteAddr(), err)
	}
	return nil
}
