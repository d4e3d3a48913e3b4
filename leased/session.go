package leased

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is a ZooKeeper client that knows how long its session can be relied
// on: see lease.go. It is safe for use by many goroutines.
//
// When the session expires, the client begins another one: what was held is lost,
// and other locks can be had over the same Session.
type Session struct {
	conn   *zk.Conn
	client client         // what stands between the client library and us: see client.go
	nobody string         // the path that ask deletes
	done   chan struct{}  // closed by Close
	work   sync.WaitGroup // what Close waits for

	mu      sync.Mutex
	id      int64         // of ZooKeeper's session; 0 while there is none
	timeout time.Duration // as the servers granted it
	lease   *lease
	timer   *time.Timer // fires when the lease is over

	// Writes and pings that were answered: the last one, and the last but one. Of the writes
	// only those are kept that were sent a tick or more after the answer to the last one kept.
	// lease.go says what they prove.
	lastWrite, writeBefore proof
	lastPing, pingBefore   proof
}

// Option changes how Open connects.
type Option func(*Session)

// WithDialer makes the session connect through dial, for TLS or for tests. It is
// given the servers' addresses as they were given to Open.
func WithDialer(dial zk.Dialer) Option {
	return func(s *Session) { s.client.dial = dial }
}

// WithBuffer gives the client library so many bytes to send a request, and as many to
// read an answer, in place of 1.5 MB each: for a process that has very many sessions.
//
// A longer request is not sent. If an answer is longer, the library closes the connection,
// and connects again. If the list of a lock's queue does not fit, or the data of the znode
// before ours, Lock asks for it again and again, and does not return before its context ends.
// One name takes about 40 bytes.
//
// So use it only if you trust whoever may create or write znodes in the lock's directory. If
// somebody makes one there whose path is about as long as the buffer, the library connects
// again and again, as long as the session lives, or it panics, and the process ends.
func WithBuffer(size int) Option {
	return func(s *Session) { s.client.buffer = size }
}

const (
	smallestBuffer = 32 << 10
	largestBuffer  = 1 << 30
	openPatience   = 10 * time.Second
	longestTimeout = math.MaxInt32 * time.Millisecond // that the protocol can ask for
)

// Open connects to servers, each host:port, and asks for a session with the given
// time-out; what counts is the time-out that is granted. It should be five of the
// servers' ticks or more, 10 s at the usual tick of 2 s: with less, a holder may be
// told of its loss too late. After ten seconds without a session Open returns an
// error. The caller calls Close in the end.
//
// A name is looked up anew each time the session connects. A name that stands for
// several addresses is one server: give each server a name of its own.
func Open(servers []string, timeout time.Duration, options ...Option) (*Session, error) {
	if len(servers) == 0 || timeout < time.Millisecond || timeout > longestTimeout {
		return nil, fmt.Errorf("zklock: open a session with servers %q and time-out %v: want host:port and 1ms to %v",
			servers, timeout, longestTimeout)
	}
	s := newSession(timeout)
	for _, option := range options {
		if option == nil {
			return nil, errors.New("zklock: open a session: an option is nil: leave it out")
		}
		option(s)
	}
	if s.client.dial == nil {
		return nil, errors.New("zklock: open a session: the dialer is nil: give one, or leave WithDialer out")
	}
	buffer := s.client.buffer
	badBuffer := buffer < smallestBuffer || buffer > largestBuffer
	if buffer != 0 && badBuffer {
		return nil, fmt.Errorf("zklock: open a session: a buffer of %d bytes: give %d to %d, or leave WithBuffer out",
			buffer, smallestBuffer, largestBuffer)
	}
	conn, events, err := s.client.connect(servers, timeout)
	if err != nil {
		return nil, fmt.Errorf("zklock: connect to %q: %w", servers, err)
	}
	s.conn = conn
	tooLate := time.After(openPatience)
	for conn.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-tooLate:
			s.Close()
			return nil, fmt.Errorf("zklock: no session after %v: does ZooKeeper run at %q? %v",
				openPatience, servers, s.client.lastWords())
		}
	}
	go func() {
		for range events { // they end when the connection is closed, perhaps by its user
		}
		s.Close()
	}()
	return s, nil
}

// newSession is a session that is not connected yet. Its lease is over.
func newSession(timeout time.Duration) *Session {
	s := &Session{nobody: nobodysZnode(), done: make(chan struct{}), timeout: timeout, lease: &lease{}}
	s.client = client{dial: net.DialTimeout, s: s, lostWatches: make(chan struct{})}
	return s
}

// Conn is the session's connection. Closing it closes the session. Do not call its SetLogger:
// the session reads the library's log, and learns there of lost watches.
func (s *Session) Conn() *zk.Conn { return s.conn }

// Timeout is the session time-out that the servers have granted.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Done is closed when the session has been closed, by Close or through its
// connection: then every hold is lost, and no lock can be had over it any more.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session: its ephemeral znodes are deleted, every hold is lost,
// and every waiting Lock returns an error. Without a connection the znodes stay until
// the session times out. A second Close does nothing more.
func (s *Session) Close() {
	s.markClosed()
	s.conn.Close()
	s.client.hangUp()
	s.work.Wait()
}

// markClosed ends the lease for good, and stops what runs in the background.
func (s *Session) markClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	s.endLease() // before done is closed: who sees that finds every hold lost
	close(s.done)
}

func (s *Session) isClosed() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// run runs f on a goroutine that Close waits for. Once closed it returns false.
func (s *Session) run(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return false
	}
	s.work.Go(f)
	return true
}

// giveUpAt calls do, and returns its error. If waiting ends first, giveUpAt returns at
// once, with the reason. do goes on in the background. When it is done, late is called
// with its error, unless the session was closed before giveUpAt returned. On a closed
// session giveUpAt may return zk.ErrClosing without a call of do.
func (s *Session) giveUpAt(waiting context.Context, do func() error, late func(error)) error {
	if waiting.Done() == nil {
		return do() // nobody can give up
	}
	result := make(chan error, 1)
	begun := s.run(func() { result <- do() })
	if !begun {
		return zk.ErrClosing
	}
	select {
	case err := <-result:
		return err
	case <-waiting.Done():
		s.run(func() { late(<-result) })
		return whyEnded(waiting)
	}
}

// canRetry tells whether a request that ended with err is to be made again: it was not
// answered, or the server was too busy, and the session is not closed. With no error there is
// nothing to retry.
func (s *Session) canRetry(err error) bool {
	if s.isClosed() {
		return false
	}
	return unanswered(err) || isThrottled(err)
}

// pause is for a loop that makes a request again. Usually the request itself waits for
// a connection. But when the connection is being closed, each request fails at once.
func pause() { time.Sleep(time.Millisecond) }
