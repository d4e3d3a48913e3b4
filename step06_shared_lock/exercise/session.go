//lint:file-ignore U1000 given: your lock will use it

package exercise

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

// openPatience is how long Open waits for a server to grant a session.
const openPatience = 10 * time.Second

// maxTimeout is the longest session time-out that the protocol can ask for.
const maxTimeout = math.MaxInt32 * time.Millisecond

// errClosed is what a closed session's locks answer.
var errClosed = errors.New("the session is closed")

// Session is a ZooKeeper client that knows how long it can rely on its
// session. It is safe for use by many goroutines.
//
// The server ends a session when it has heard nothing for the time-out that it
// granted. A client that is cut off is not told; but it knows when it sent the
// last request or ping that was answered, and until that time plus the time-out
// the session lives for certain. This is the session's lease. When it runs out,
// what hangs on the session is given up, whatever the server may say later.
//
// Two things no lease can see: a process that is stopped, and a server of an
// ensemble that has lost its leader and answers pings for syncLimit ticks more.
// Then the word may come late, and the fencing token is what protects.
type Session struct {
	conn *zk.Conn
	ctx  context.Context // ends at Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines of the session's locks

	mu      sync.Mutex
	id      int64         // of ZooKeeper's session; a new one after an expiry
	timeout time.Duration // as the server granted it
	until   time.Time     // the lease
	timer   *time.Timer   // fires when the lease may have run out
	life    *life
	hurdle  error // what last kept the client from a session, for Open's error
}

// life is the time for which a session can be relied on without a break.
type life struct {
	ctx  context.Context // ends with cause ErrLost
	lose context.CancelCauseFunc
	id   int64 // of ZooKeeper's session
}

// Option changes how Open connects.
type Option func(*options)

type options struct {
	dial     zk.Dialer
	patience time.Duration
}

// WithDialer makes the session connect through dial, for TLS or for tests.
func WithDialer(dial zk.Dialer) Option { return func(o *options) { o.dial = dial } }

// Open connects to servers, each host:port, and returns when one of them has
// granted a session. It asks for the given session time-out; the server may
// grant another, and the session goes by what is granted. After ten seconds
// without a session Open returns an error. The caller calls Close in the end.
func Open(servers []string, timeout time.Duration, opts ...Option) (*Session, error) {
	if len(servers) == 0 || timeout < time.Millisecond || timeout > maxTimeout {
		return nil, fmt.Errorf("zklock: open a session with servers %q and time-out %v: want host:port and 1ms to %v", servers, timeout, maxTimeout)
	}
	if len(servers) == 1 { // after the last of its servers the client rests for a second
		servers = []string{servers[0], servers[0]}
	}
	o := options{dial: net.DialTimeout, patience: openPatience}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Session{timeout: timeout, hurdle: errors.New("nobody answers")}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.timer = time.AfterFunc(time.Hour, s.checkLease)
	s.timer.Stop()
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := o.dial(network, address, timeout)
		if err != nil {
			s.hindered(err)
			return nil, err
		}
		return newPulse(conn, s), nil
	}
	conn, events, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(silence{}))
	if err != nil {
		return nil, fmt.Errorf("zklock: connect to %q: %w", servers, err)
	}
	s.conn = conn
	for patience := time.After(o.patience); ; {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return s, nil
			}
		case <-patience:
			s.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			return nil, fmt.Errorf("zklock: no session after %v: does ZooKeeper run at %q? %w", o.patience, servers, s.hurdle)
		}
	}
}

// silence drops the client's log, until somebody calls Conn().SetLogger.
type silence struct{}

func (silence) Printf(string, ...any) {}

// Conn is the session's connection, for other uses of the same session.
func (s *Session) Conn() *zk.Conn { return s.conn }

// Close ends the session: its ephemeral znodes are deleted, every hold is lost,
// and every waiting Lock returns an error. A second Close does nothing.
func (s *Session) Close() {
	s.mu.Lock()
	s.end()
	s.timer.Stop()
	if s.life != nil {
		s.life.lose(ErrLost)
	}
	s.mu.Unlock()
	s.conn.Close()
	s.work.Wait()
}

// background runs f on a goroutine that Close waits for. It returns false, and
// does nothing, when the session is closed.
func (s *Session) background(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// now returns the present life of the session, and the time-out it has.
func (s *Session) now() (*life, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life, s.timeout
}

// greeted is called when a server has answered the handshake sent at the given
// time: id 0 means that the old session has expired.
func (s *Session) greeted(sent time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil && s.id != id {
		s.life.lose(ErrLost)
	}
	s.id = id
	if id != 0 {
		s.timeout = timeout
		s.renew(sent)
	}
}

// hindered notes what keeps the client from a session.
func (s *Session) hindered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurdle = err
}

// heard is called when a server has answered what was sent at the given time.
// An answer to nothing proves nothing.
func (s *Session) heard(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sent.IsZero() {
		s.renew(sent)
	}
}

// renew extends the lease, and begins a new life if the last one was lost. A
// tenth of the time-out is left for the holder to stop in. The caller holds mu.
func (s *Session) renew(sent time.Time) {
	if s.ctx.Err() != nil {
		return
	}
	s.until = sent.Add(s.timeout * 9 / 10)
	if s.life == nil || s.life.ctx.Err() != nil {
		s.timer.Reset(time.Until(s.until))
		ctx, lose := context.WithCancelCause(context.Background())
		s.life = &life{ctx, lose, s.id}
	}
}

// checkLease ends the session's life if the lease has run out, or looks again
// when it would.
func (s *Session) checkLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.until); left > 0 {
		s.timer.Reset(left)
	} else {
		s.life.lose(ErrLost)
	}
}
