package leased

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is a ZooKeeper client that knows how long its session can be relied on: a process
// needs one, for all its locks. It is safe for use by many goroutines.
//
// When the session expires, the client begins another one: what was held is lost,
// and other locks can be had over the same Session.
type Session struct {
	conn   *zk.Conn
	client client         // what stands between the client library and us: see client.go
	nobody string         // the path that ask deletes
	done   chan struct{}  // closed by Close
	work   sync.WaitGroup // what Close waits for

	// As the options say.
	log          *journal
	label        []byte // the data of our znodes
	acl          []zk.ACL
	logins       []login
	withoutLease bool
	containers   bool

	asked time.Duration // the time-out that the servers were asked for
	taken atomic.Uint64

	mu      sync.Mutex
	id      int64         // of ZooKeeper's session; 0 while there is none
	timeout time.Duration // as the servers granted it
	lease   *lease
	timer   *time.Timer // fires when the lease is over
	line    *wire       // the connection over which the session goes on; nil: there is none
	lost    map[Reason]uint64
	tries   map[*try]bool // calls to Lock that are under way
	asking  chan struct{} // askTogether's write, if one is under way: closed when it is answered
	closed  *LostError    // how it was closed

	// When the last connection was lost, what warns of it, and whether it has.
	disconnectedAt time.Time
	outage         *time.Timer
	warned         bool

	// Writes and pings that were answered: the last one, and the last but one. Of the writes
	// only those are kept that were sent a tick or more after the answer to the last one kept.
	// lease.go says what they prove.
	lastWrite, writeBefore proof
	lastPing, pingBefore   proof
}

const (
	openPatience   = 10 * time.Second
	longestTimeout = math.MaxInt32 * time.Millisecond // that the protocol can ask for
)

// Open connects to servers, each host:port, and asks for a session with the given
// time-out; what counts is the time-out that is granted. It should be five of the
// servers' ticks or more, 10 s at the usual tick of 2 s: with less, a holder may be
// notified of its loss too late. The caller calls Close in the end.
//
// Open returns an error when ctx ends. If ctx has no deadline, it returns one after ten seconds
// without a session. Afterwards ctx is of no effect.
//
// A name is looked up anew each time the session connects, and if it stands for several addresses, each is
// tried in turn (with WithDialer, that is the dialer's affair). Still it is one server: give each
// server a name of its own. The Go client knows no chroot.
func Open(ctx context.Context, servers []string, timeout time.Duration, options ...Option) (*Session, error) {
	if ctx == nil {
		return nil, errors.New("leased: open a session: the context is nil: give context.Background()")
	}
	if len(servers) == 0 || timeout < time.Millisecond || timeout > longestTimeout {
		return nil, fmt.Errorf("leased: open a session with servers %q and time-out %v: want host:port and 1ms to %v",
			servers, timeout, longestTimeout)
	}
	if err := checkServers(servers); err != nil {
		return nil, fmt.Errorf("leased: open a session: %w", err)
	}
	s := newSession(timeout)
	if err := s.apply(options); err != nil {
		return nil, fmt.Errorf("leased: open a session: %w", err)
	}
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		short, stop := context.WithTimeout(ctx, openPatience)
		defer stop()
		ctx = short
	}
	if err := checkLibrary(); err != nil {
		return nil, fmt.Errorf("leased: open a session: %w", err)
	}
	go s.log.keep(s.done)
	conn, events, err := s.client.connect(servers, timeout)
	if err != nil {
		s.markClosed(byClose)
		return nil, fmt.Errorf("leased: connect to %q: %w", servers, err)
	}
	s.conn = conn
	begun := time.Now()
	if err := s.comeUp(ctx, events); err != nil {
		waited := time.Since(begun).Round(time.Second / 10)
		s.Close()
		return nil, fmt.Errorf("leased: no session after %v: does ZooKeeper run at %q? %w", waited, servers, err)
	}
	go func() {
		for range events { // they end when the connection is closed, perhaps by its user
		}
		s.close(byConnection)
	}()
	return s, nil
}

// newSession is a session that is not connected yet. Its lease is over.
func newSession(timeout time.Duration) *Session {
	s := &Session{
		nobody:  nobodysZnode(),
		done:    make(chan struct{}),
		log:     newJournal(slog.New(slog.DiscardHandler)),
		asked:   timeout,
		tries:   map[*try]bool{},
		label:   hostAndPid(),
		acl:     zk.WorldACL(zk.PermAll),
		timeout: timeout,
		lease:   &lease{},
		lost:    map[Reason]uint64{},
	}
	s.client = client{dial: dialEach(net.DefaultResolver.LookupHost), s: s, lostWatches: make(chan struct{})}
	return s
}

// hostAndPid is what a znode says of its holder, if WithLabel says nothing else.
func hostAndPid() []byte {
	host, _ := os.Hostname()
	return fmt.Appendf(nil, "%s %d", host, os.Getpid())
}

// comeUp waits for the session, and logs in.
func (s *Session) comeUp(ctx context.Context, events <-chan zk.Event) error {
	for s.conn.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-ctx.Done():
			return fmt.Errorf("%w: %v", whyEnded(ctx), s.client.lastWords())
		}
	}
	for _, login := range s.logins {
		if err := s.logIn(ctx, login); err != nil {
			return fmt.Errorf("log in with the scheme %q: %w", login.scheme, err)
		}
	}
	return nil
}

// logIn logs in once. The client library repeats it on each new connection.
func (s *Session) logIn(ctx context.Context, l login) error {
	t := &try{s: s, ctx: ctx}
	logIn := func() (bool, error) {
		return true, s.untilAnswered(t, func() error { return s.conn.AddAuth(l.scheme, l.auth) })
	}
	_, err := doOrGiveUp(t, logIn, func(bool) {})
	return err
}

// Conn is the session's connection. Closing it closes the session. Do not call its SetLogger:
// the session reads the library's log, and learns there of lost watches. See WithLogger.
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
func (s *Session) Close() { s.close(byClose) }

func (s *Session) close(how string) {
	s.markClosed(how)
	s.conn.Close()
	s.client.hangUp()
	s.work.Wait()
}

// markClosed ends the lease for good, and stops what runs in the background.
func (s *Session) markClosed(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	s.closed = lostClosed(how)
	s.endLease(s.closed) // before done is closed: who sees that finds every hold lost
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

// whyClosed is the error of a hold in a closed session.
func (s *Session) whyClosed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Stats are numbers about a session, to look at or to give to a library for metrics.
type Stats struct {
	// Whether there is a connection now, over which a server has confirmed the session.
	Connected bool

	// Calls to Lock, RLock, TryLock and TryRLock that are under way, and for how long the oldest of them
	// has waited.
	Waiting int
	Longest time.Duration

	// Holds that go on, holds since Open, and holds that were lost, also by closing the session.
	// A znode that another client has deleted is not counted as lost: the holder learns of it only at Unlock.
	Holds int
	Taken uint64
	Lost  map[Reason]uint64

	// For how long the oldest of Holds has been held: a great value may be work that hangs.
	LongestHold time.Duration

	// For how long the session can be relied on from now on. With WithoutLease it is 0 without a
	// connection.
	LeaseLeft time.Duration
}

// Stats returns the numbers of this moment. With no hold the lease is not renewed, and LeaseLeft
// goes to 0: that means nothing bad.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := 0
	var longestHold time.Duration
	for user := range s.lease.users {
		if user.hold != "" {
			holds++
			longestHold = max(longestHold, time.Since(user.begun))
		}
	}
	var longest time.Duration
	if oldest := s.oldestTry(); oldest != nil {
		longest = time.Since(oldest.begun)
	}
	return Stats{
		Connected:   s.line != nil,
		Waiting:     len(s.tries),
		Longest:     longest,
		Holds:       holds,
		Taken:       s.taken.Load(),
		Lost:        maps.Clone(s.lost),
		LongestHold: longestHold,
		LeaseLeft:   max(time.Until(s.lease.until), 0),
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
