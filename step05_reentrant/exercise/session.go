package reentrant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is one client of ZooKeeper. It is safe for use by many goroutines.
//
// TODO 3: Unlock must know the session timeout.
// 待办 3：Unlock 要知道会话超时是多长。
// TODO 6: give zk.WithEventCallback a function: the client library calls it at each change of the
// connection's state. Make a context of each connection, which ends with it.
// 待办 6：用 zk.WithEventCallback 设置一个函数，连接状态每次变化，客户端库都会调用它。给每条连接做一个 context，连接断了，它就结束。
//
// When ZooKeeper ends the session, the client library begins another one by itself: all
// holds are lost, and locks can be acquired again over the same Session.
type Session struct {
	conn *zk.Conn

	open  context.Context // ends with Close
	close context.CancelCauseFunc
}

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
	s := &Session{}
	s.open, s.close = context.WithCancelCause(context.Background())

	allOptions := func(conn *zk.Conn) {
		zk.WithLogInfo(false)(conn)
		for _, option := range options {
			option(conn)
		}
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

func (s *Session) isClosed() bool { return s.open.Err() != nil }

// mustRetry reports whether to retry a request that ended with err: it got no answer, and the
// Session is open.
func (s *Session) mustRetry(err error) bool {
	return unanswered(err) && !s.isClosed()
}

// pause comes before a retry: while a connection is being closed, each request fails at once.
func pause() { time.Sleep(time.Millisecond) }
