package sharedlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is one client of ZooKeeper. When its connection breaks, all holds of its locks end.
// It is safe for use by many goroutines.
//
// When ZooKeeper ends the session, the client library begins another one by itself: all
// holds are lost, and locks can be acquired again over the same Session.
type Session struct {
	conn    *zk.Conn
	timeout time.Duration // of the session, as Open was asked for

	open  context.Context // ends with Close
	close context.CancelCauseFunc

	mu         sync.Mutex
	current    context.Context // ends when the present connection ends: see connection
	disconnect context.CancelCauseFunc
}

// hear is called by the client library at each change of the connection's state. It must
// not block.
//
// The rule is: no connection, no hold. Without a connection the client cannot know whether the
// servers keep its session or have ended it. The chapter says what the rule assumes and costs.
func (s *Session) hear(event zk.Event) {
	if event.Type != zk.EventSession { // the event is that of a watch
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event.State {
	case zk.StateHasSession: // connected, with the old session or a new one
		s.current, s.disconnect = context.WithCancelCause(s.open)
	case zk.StateDisconnected, zk.StateExpired:
		s.disconnect(ErrLost)
	}
}

// connection returns a context that ends, with the cause ErrLost, when the present connection
// is lost. Until then the session is the same. If there is no connection now, the context has
// ended already.
func (s *Session) connection() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// mustRetry reports whether to retry a request that ended with err: it got no answer, and the
// Session is open. The client library answers a request after Close as if the connection had broken.
func (s *Session) mustRetry(err error) bool {
	return unanswered(err) && !s.isClosed()
}

func (s *Session) isClosed() bool { return s.open.Err() != nil }

// pause comes before a retry: while a connection is being closed, each request fails at once.
func pause() { time.Sleep(time.Millisecond) }

// Option is an option of the client library, such as zk.WithDialer.
type Option = func(*zk.Conn)

// openPatience is how long Open waits for a session.
const openPatience = 10 * time.Second

// Open connects to servers, each host:port, and asks for a session with the given
// timeout. Without a session after ten seconds it returns an error. The caller must call
// Close at the end.
func Open(servers []string, timeout time.Duration, options ...Option) (*Session, error) {
	for _, server := range servers {
		if err := checkAddress(server); err != nil {
			return nil, err
		}
	}
	if len(servers) == 0 {
		return nil, errors.New("zklock: open a session: no servers: pass host:port of each")
	}
	s := &Session{timeout: timeout}
	s.open, s.close = context.WithCancelCause(context.Background())
	s.current, s.disconnect = context.WithCancelCause(s.open)
	s.disconnect(ErrLost) // there is no connection yet

	allOptions := func(conn *zk.Conn) {
		zk.WithLogInfo(false)(conn)
		for _, option := range options {
			option(conn)
		}
		zk.WithEventCallback(s.hear)(conn)
	}
	several := slices.Repeat(servers, 2) // with a single address, the library pauses for 1 s before it reconnects
	conn, events, err := zk.Connect(several, timeout, allOptions)
	if err != nil {
		return nil, fmt.Errorf("zklock: connect to %q: %w", servers, err)
	}
	s.conn = conn
	tooLate := time.After(openPatience)
	for conn.State() != zk.StateHasSession {
		select {
		case <-events: // the state has changed: check it again
		case <-tooLate:
			s.Close()
			return nil, fmt.Errorf("zklock: no session after %v: does ZooKeeper run at %q?", openPatience, servers)
		}
	}
	go func() {
		for range events { // they end when the connection is closed, perhaps by its user
		}
		s.Close()
	}()
	return s, nil
}

// Conn is the session's connection. Do not close it: if you did, the servers would delete the
// znodes before the holders learn of it. Call Close of the Session.
func (s *Session) Conn() *zk.Conn { return s.conn }

// Close ends the session. Every hold is lost, and every waiting Lock returns an error. The
// next clients get their locks at once, so stop the work first. A second Close does nothing
// more.
func (s *Session) Close() {
	s.close(ErrLost) // before the servers delete the znodes of our holds
	s.conn.Close()
}
