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
var errClosed = errors.New("the session is closed: open another one")

// Session is a ZooKeeper client that knows how long it can rely on its
// session. It is safe for use by many goroutines.
//
// The servers end a session when they have heard nothing for the time-out that
// they granted. A client that is cut off is not told; but it knows when it asked
// the last question of which the leader has heard, and until that time plus the
// time-out the session lives for certain. This is the session's lease. When it
// runs out, what hangs on the session is given up, whatever a server may say
// later. While a lock is held, the session asks the leader in time: a sync, which
// changes nothing. (A ping will not do: a follower answers it by itself, for
// syncLimit ticks even when it is cut off from the others.)
//
// What no lease can see is a stop of the process itself. Then the word comes
// late, and the fencing token is what protects.
type Session struct {
	conn *zk.Conn
	ctx  context.Context // ends at Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines of the session's locks

	mu      sync.Mutex
	id      int64         // of ZooKeeper's session; a new one after an expiry
	timeout time.Duration // as the server granted it
	until   time.Time     // the lease
	timer   *time.Timer   // fires when the lease is to be looked at
	life    *life
	holds   int   // how many locks are held
	asking  bool  // the leader, for them
	hurdle  error // what last kept the client from a session, for Open's error
	tries   int   // connections since the last handshake that was answered
}

// life is the time for which a session can be relied on without a break.
type life struct {
	ctx  context.Context // ends with cause ErrLost
	lose context.CancelCauseFunc
	id   int64 // of ZooKeeper's session
}

// Option changes how Open connects.
type Option func(*options)

type options struct{ dial zk.Dialer }

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
	addresses := servers
	if len(servers) == 1 { // after the last of its servers the client rests for a second
		addresses = []string{servers[0], servers[0]}
	}
	o := options{dial: net.DialTimeout}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("zklock: open a session: an option is nil: leave it out")
		}
		opt(&o)
	}
	if o.dial == nil { // the client would panic
		return nil, errors.New("zklock: open a session: the dialer is nil: give one, or leave WithDialer out")
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
	conn, events, err := zk.Connect(addresses, timeout, zk.WithDialer(dial), zk.WithLogger(silence{}))
	if err != nil {
		return nil, fmt.Errorf("zklock: connect to %q: %w", servers, err)
	}
	s.conn = conn
	for patience := time.After(openPatience); ; {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return s, nil
			}
		case <-patience:
			s.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			return nil, fmt.Errorf("zklock: no session after %v: does ZooKeeper run at %q? %w", openPatience, servers, s.hurdle)
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

// renewed is now for a lock that is about to be held: if little is left of the
// lease, it asks the leader first. The answer proves no more than the handshake
// did if that took long; a tenth of the time-out later another one does.
func (s *Session) renewed(ctx context.Context) *life {
	if s.short() {
		_, err := s.conn.Sync("/") // the answer, if there is one, renews the lease
		if err == nil && s.short() {
			_, timeout := s.now()
			select {
			case <-time.After(timeout / 10):
			case <-ctx.Done():
			}
			_, _ = s.conn.Sync("/")
		}
	}
	life, _ := s.now()
	return life
}

// short tells whether less than a third of the time-out is left of the lease.
func (s *Session) short() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.until) < s.timeout/3
}

// rely has the lease renewed from now on, until the returned function is called
// or the life ends, which calls lost. The returned function says whether it came
// before the end.
func (s *Session) rely(l *life, lost func()) (release func() bool) {
	count := func(more int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.holds += more
	}
	count(1)
	stop := context.AfterFunc(l.ctx, func() {
		count(-1)
		lost()
	})
	return func() bool {
		inTime := stop()
		if inTime {
			count(-1)
		}
		return inTime
	}
}

// greeted is called when a server has answered the handshake sent at the given
// time: id 0 means that the old session has expired.
func (s *Session) greeted(sent time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil && s.id != id {
		s.life.lose(ErrLost)
	}
	s.id, s.tries = id, 0
	if id != 0 {
		s.timeout = timeout
		s.renew(sent)
	}
}

// dialled is called when a server has accepted a connection. It returns how long
// the server may take to answer the handshake before another one is tried: more
// from try to try, for a server that is slow, and not dead, would never be heard.
func (s *Session) dialled() (patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	return s.timeout / 3 * time.Duration(min(s.tries, 9))
}

// hindered notes what keeps the client from a session.
func (s *Session) hindered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurdle = err
}

// heard is called when the leader is certain to know of what was sent at the
// given time.
func (s *Session) heard(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(sent)
}

// renew extends the lease, and begins a new life if the last one was lost. A
// tenth of the time-out is left for the holder to stop in. The caller holds mu.
func (s *Session) renew(sent time.Time) {
	if s.ctx.Err() != nil {
		return
	}
	s.until = sent.Add(s.timeout * 9 / 10)
	if s.life == nil || s.life.ctx.Err() != nil {
		s.timer.Reset(min(time.Until(s.until), s.timeout/10))
		ctx, lose := context.WithCancelCause(context.Background())
		s.life = &life{ctx, lose, s.id}
	}
}

// checkLease ends the session's life if the lease has run out. When locks are
// held, it has the lease renewed in time. It looks ten times in a time-out.
func (s *Session) checkLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := time.Until(s.until)
	if left <= 0 {
		s.life.lose(ErrLost)
		return
	}
	if left < s.timeout*6/10 && s.holds > 0 && !s.asking && s.ctx.Err() == nil {
		s.asking = true
		s.work.Go(func() {
			_, _ = s.conn.Sync("/")
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asking = false
		})
	}
	s.timer.Reset(min(left, s.timeout/10))
}
