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
	pathpkg "path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session connects a process to ZooKeeper, and knows how long ZooKeeper's session can be relied on. A process
// needs one Session, for all its locks. It is safe for use by many goroutines.
//
// When ZooKeeper's session expires, all its holds are lost, and the Session begins a new one: the
// same Session can be used for further locks.
type Session struct {
	conn   *zk.Conn
	client client         // the layer between the client library and the session: see client.go
	nobody string         // the path that ask deletes
	done   chan struct{}  // closed by Close
	work   sync.WaitGroup // what Close waits for

	// As the options say.
	log    *journal
	label  []byte // the data of our znodes
	acl    []zk.ACL
	logins []login

	onLost func(path string, why *LostError) // see WithOnLost; may be nil

	noContainers atomic.Bool // as WithoutContainers says, or since a server has said that it knows none

	asked time.Duration // the timeout that the servers were asked for

	warnedOf sync.Map // directories with znodes of another kind of lock, of which there was a warning

	mu         sync.Mutex // guards what follows
	connection connection
	leases     leases
	waiting    waiting
	closed     *LostError // how it was closed; nil: it is open
}

const (
	openPatience   = 10 * time.Second
	longestTimeout = math.MaxInt32 * time.Millisecond // that the protocol can ask for
)

// Open connects to servers, each host:port, and asks for a session with the given timeout. The
// servers may grant another one, which applies: see Timeout. It should be five of the servers' ticks or
// more, 10 s at the usual tick of 2 s: with less, a holder may be notified of a loss too late. Call Close
// when the Session is not needed any more.
//
// If ctx ends before there is a session, Open returns an error. If ctx has no deadline, Open gives up after ten
// seconds. When Open has returned, ctx has no effect.
//
// Each time the session connects, it looks the server's name up again. If a name has several addresses, each is
// tried in turn, unless WithDialer gives a dialer. All of them count as one server: give each
// server a name of its own. The Go client library supports no chroot.
func Open(ctx context.Context, servers []string, timeout time.Duration, options ...Option) (*Session, error) {
	if ctx == nil {
		return nil, errors.New("leased: open a session: the context is nil: give context.Background()")
	}
	if len(servers) == 0 || timeout < time.Millisecond || timeout > longestTimeout {
		return nil, fmt.Errorf("leased: open a session with servers %q and timeout %v: "+
			"want at least one host:port, and a timeout from 1ms to %v",
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
		for range events { // until the connection is closed, perhaps by its user
		}
		s.close(byConnection)
	}()
	return s, nil
}

// newSession returns a session that is not connected yet. Its lease is over.
func newSession(timeout time.Duration) *Session {
	s := &Session{
		nobody:  nobodysZnode(),
		done:    make(chan struct{}),
		log:     newJournal(slog.New(slog.DiscardHandler)),
		asked:   timeout,
		label:   hostAndPid(),
		acl:     zk.WorldACL(zk.PermAll),
		leases:  leases{timeout: timeout, present: &lease{}, lost: map[Reason]uint64{}},
		waiting: waiting{tries: map[*try]bool{}},
	}
	s.client = client{
		dial:        dialEach(net.DefaultResolver.LookupHost),
		s:           s,
		lostWatches: make(chan struct{}),
		watches:     map[string]<-chan zk.Event{},
	}
	return s
}

// hostAndPid returns the label of a session without WithLabel.
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

// Conn returns the session's connection. Closing it closes the session. Do not call its SetLogger:
// the session reads the library's log, and learns of lost watches there. Use WithLogger.
func (s *Session) Conn() *zk.Conn { return s.conn }

// Timeout returns the session timeout that the servers have granted.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases.timeout
}

// Done returns a channel that is closed when the session is closed, by Close or through its
// connection. Then every hold is lost, and no lock can be acquired with the session any more.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session: its ephemeral znodes are deleted, every hold is lost,
// and every Lock that waits returns an error. Without a connection the znodes stay until
// the session times out. A second Close does nothing.
func (s *Session) Close() { s.close(byClose) }

func (s *Session) close(how string) {
	s.markClosed(how)
	s.conn.Close()
	s.client.hangUp()
	s.work.Wait()
}

// markClosed ends the lease for good, and stops what runs in the background. When it returns, all holds are notified.
func (s *Session) markClosed(how string) {
	if l := s.endLastLease(lostClosed(how)); l != nil {
		l.notified.Wait() // before done is closed: a caller that sees this finds every hold lost
		close(s.done)
	}
	<-s.done
}

// endLastLease returns nil if the session was closed before.
func (s *Session) endLastLease(why *LostError) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil
	}
	s.endLease(why)
	s.closed = why
	return s.leases.present
}

func (s *Session) isClosed() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// whyClosed returns the error of a hold in a closed session.
func (s *Session) whyClosed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Stats are numbers about a session, for people and for metrics.
type Stats struct {
	// Whether the session has a connection now, on which a server has confirmed it.
	Connected bool

	// The calls to Lock, RLock, TryLock and TryRLock that have not returned yet, and how long the oldest of them
	// has waited.
	Waiting int
	Longest time.Duration

	// The present holds, all holds since Open, and those that were lost, also by closing the session.
	// If a program has deleted a znode, Lost does not count it: the holder learns of it only at Unlock.
	Holds int
	Taken uint64
	Lost  map[Reason]uint64

	// How long the oldest of Holds has been held, and the path of its lock. If it is long, the work may hang.
	LongestHold time.Duration
	OldestLock  string

	// How long the session can be relied on from now on.
	LeaseLeft time.Duration
}

// Stats returns the present numbers. Without a hold the lease is not renewed, and LeaseLeft
// falls to 0, which is no problem.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := 0
	var longestHold time.Duration
	oldestLock := ""
	for user := range s.leases.present.users {
		if user.hold != "" {
			holds++
			if held := time.Since(user.begun); held > longestHold {
				longestHold, oldestLock = held, pathpkg.Dir(user.hold)
			}
		}
	}
	var longest time.Duration
	if oldest := s.waiting.oldest(); oldest != nil {
		longest = time.Since(oldest.begun)
	}
	return Stats{
		Connected:   s.connection.wire != nil,
		Waiting:     len(s.waiting.tries),
		Longest:     longest,
		Holds:       holds,
		Taken:       s.leases.taken,
		Lost:        maps.Clone(s.leases.lost),
		LongestHold: longestHold,
		OldestLock:  oldestLock,
		LeaseLeft:   max(time.Until(s.leases.present.until), 0),
	}
}

// run runs f on a goroutine that Close waits for. Once closed it returns false.
func (s *Session) run(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// canRetry reports whether a request that has returned err should be made again: it was not
// answered, or the server was too busy, and the session is not closed. Without an error there is
// nothing to retry.
func (s *Session) canRetry(err error) bool {
	if s.isClosed() {
		return false
	}
	return unanswered(err) || isThrottled(err)
}

// pause is for a loop that retries a request. Usually the request itself waits for
// a connection. But while the connection is being closed, each request fails at once.
func pause() { time.Sleep(time.Millisecond) }
