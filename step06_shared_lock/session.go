package sharedlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is a ZooKeeper client that knows how long its session can be relied
// on: see lease.go. It is safe for use by many goroutines.
type Session struct {
	conn *zk.Conn
	dial zk.Dialer
	ctx  context.Context // ends at Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines that Close waits for

	mu sync.Mutex
	lease
}

// Option changes how Open connects.
type Option func(*Session)

// WithDialer makes the session connect through dial, for TLS or for tests.
func WithDialer(dial zk.Dialer) Option { return func(s *Session) { s.dial = dial } }

// Open connects to servers, each host:port, and asks for a session with the given
// time-out; what counts is the time-out that is granted. It should be five of the
// servers' ticks or more, 10 s at the usual tick of 2 s: with less, a holder may be
// told of its loss too late. After ten seconds without a session Open returns an
// error. The caller calls Close in the end.
func Open(servers []string, timeout time.Duration, options ...Option) (*Session, error) {
	const patience, most = 10 * time.Second, math.MaxInt32 * time.Millisecond // most: that the protocol can ask for
	if len(servers) == 0 || timeout < time.Millisecond || timeout > most {
		return nil, fmt.Errorf("zklock: open a session with servers %q and time-out %v: want host:port and 1ms to %v", servers, timeout, most)
	}
	s := &Session{dial: net.DialTimeout, lease: lease{timeout: timeout}}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("zklock: open a session: an option is nil: leave it out")
		}
		option(s)
	}
	if s.dial == nil {
		return nil, errors.New("zklock: open a session: the dialer is nil: give one, or leave WithDialer out")
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.over = time.AfterFunc(time.Hour, s.expire)
	s.life, s.lose = context.WithCancelCause(context.Background())
	s.lose(ErrLost) // until a server has granted a session
	var said lastLine
	twice := slices.Repeat(servers, 2) // after the last one the client rests for a second
	conn, events, err := zk.Connect(twice, timeout, zk.WithDialer(s.connect), zk.WithLogger(&said))
	if err != nil {
		return nil, fmt.Errorf("zklock: connect to %q: %w", servers, err)
	}
	s.conn = conn
	for late := time.After(patience); conn.State() != zk.StateHasSession; {
		select {
		case <-events:
		case <-late:
			s.Close()
			return nil, fmt.Errorf("zklock: no session after %v: does ZooKeeper run at %q? %v", patience, servers, said.Load())
		}
	}
	go func() {
		for range events { // they end when the connection is closed, perhaps by its user
		}
		s.Close()
	}()
	return s, nil
}

type lastLine struct{ atomic.Value } // of the client's log, for Open's error

func (l *lastLine) Printf(format string, a ...any) { l.Store(fmt.Sprintf(format, a...)) }

func (s *Session) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := s.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &handshake{Conn: conn, in: bufio.NewReader(conn), s: s, begun: time.Now()}, nil
}

// Conn is the session's connection. Closing it closes the session.
func (s *Session) Conn() *zk.Conn { return s.conn }

// Timeout is the session time-out that the servers have granted.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Close ends the session: its ephemeral znodes are deleted, every hold is lost,
// and every waiting Lock returns an error. A second Close does nothing.
func (s *Session) Close() {
	s.mu.Lock()
	s.end()
	s.over.Stop()
	s.lose(ErrLost)
	s.mu.Unlock()
	s.conn.Close()
	s.work.Wait()
}

// Closed tells whether the session has been closed.
func (s *Session) Closed() bool { return s.ctx.Err() != nil }

// Go runs f on a goroutine that Close waits for. Once closed it returns false.
func (s *Session) Go(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Closed() {
		return false
	}
	s.work.Go(f)
	return true
}
