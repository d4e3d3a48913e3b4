package zkserver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// A link is one direction between two servers: all that the one sends to the
// other, on whatever connections, and whichever of them has opened these.
type link struct {
	ctx context.Context // its end closes all connections

	mu      sync.Mutex
	changed *sync.Cond
	holds   int
	passed  int64
}

func newLink(ctx context.Context) *link {
	l := &link{ctx: ctx}
	l.changed = sync.NewCond(&l.mu)
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	return l
}

// hold stops the link until release. Once hold has returned, nothing passes;
// what is sent meanwhile is late, as in a network, and not lost.
func (l *link) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.holds--
		l.changed.Broadcast()
	})
}

// pass waits until nobody holds the link, and writes to dst. What is for a
// connection that has been closed is lost.
func (l *link) pass(dst net.Conn, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.holds > 0 && l.ctx.Err() == nil {
		l.changed.Wait()
	}
	if dst != nil && l.ctx.Err() == nil {
		n, _ := dst.Write(data)
		l.passed += int64(n)
	}
}

// copy passes on what comes from src, until src is closed and that, too, may
// pass.
func (l *link) copy(dst, src net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		l.pass(dst, buffer[:n])
		if err != nil {
			return
		}
	}
}

// proxies are ports of this process that lead to the servers, over the links
// between them.
type proxies struct {
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

func newProxies() *proxies {
	p := &proxies{}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends all proxies and their connections.
func (p *proxies) close() {
	p.end()
	p.running.Wait()
}

// open makes a port whose connections lead on to target. there is the link
// for what is sent to target, back the one for the answers.
func (p *proxies) open(target string, there, back *link) (port int, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("a port between two servers: %w", err)
	}
	context.AfterFunc(p.ctx, func() { listener.Close() })
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.connect(conn, target, there, back) })
		}
	})
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// dial waits a moment for the server if it does not listen yet. A follower is
// often faster than its new leader, and tries again when it is refused, but
// the proxy cannot refuse a connection that it has accepted.
func (p *proxies) dial(target string) (net.Conn, error) {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(p.ctx, "tcp", target)
		if err == nil || p.ctx.Err() != nil || time.Now().After(deadline) {
			return conn, err
		}
	}
}

func (p *proxies) connect(near net.Conn, target string, there, back *link) {
	defer context.AfterFunc(p.ctx, func() { near.Close() })()
	defer near.Close()
	there.pass(nil, nil) // a new connection has to wait, too
	far, err := p.dial(target)
	if err != nil {
		return
	}
	defer context.AfterFunc(p.ctx, func() { far.Close() })()
	defer far.Close()

	// The first side to close its end closes the connection.
	closed := make(chan bool, 2)
	for _, way := range []struct {
		*link
		dst, src net.Conn
	}{{there, far, near}, {back, near, far}} {
		p.running.Go(func() {
			way.copy(way.dst, way.src)
			closed <- true
		})
	}
	<-closed
}
