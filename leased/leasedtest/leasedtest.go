// Package leasedtest has the locks of package leased in memory, for unit tests. It proves nothing about ZooKeeper.
//
// With it you test a program that uses leased. Does the program unlock? What does it do when it
// does not get the lock, and when it loses the lock during its work? These tests need no
// server, and they can make the program lose a hold, for each reason.
//
// A test opens a Session for each process, on the same Servers:
//
//	var servers leasedtest.Servers
//	a, b := servers.Open("a"), servers.Open("b")
//
// A Mutex, an RWMutex and an Election have the methods of those in leased, and the locks return
// *leased.Hold. So a program can accept either with a small interface of its own, which has the methods that it
// calls:
//
//	type locker interface {
//		Lock(context.Context) (*leased.Hold, error)
//	}
//
// The package leaves out what needs servers: the network, timeouts, ACLs, other programs on the path. Only a
// test with a real server shows whether a program works with ZooKeeper.
package leasedtest

import (
	"context"
	"fmt"
	"time"

	"zklock/leased"
	"zklock/leased/internal/inmemory"
)

// door opens what leased does not export.
var door = leased.InMemory(inmemory.Key{})

// Timeout is what Session.Timeout returns. Nothing takes so long here.
const Timeout = 10 * time.Second

// Session stands for the session of one process. It has Lose, and the methods of a leased.Session, except Conn.
type Session struct {
	servers *Servers
	session *leased.Session
	label   string
	closed  bool // the mutex of servers guards it
}

// Open opens the session of one more process, with this label: see leased.WithLabel.
func (z *Servers) Open(label string) *Session {
	return &Session{servers: z, session: door.NewSession(Timeout), label: label}
}

// Lose makes the session lose its holds for this reason:
//
//   - leased.ReasonLeaseOver: the contexts of the holds end. No other client acquires the lock before Unlock.
//   - leased.ReasonExpired: the contexts of the holds end, and then the next clients acquire the locks. Calls of
//     this session that wait start again at the end of the queue.
//   - leased.ReasonDeleted: the next clients acquire the locks. The holders learn of it only at Unlock.
//   - leased.ReasonClosed: the same as Close.
//
// Afterwards the session can acquire locks again, unless it is closed.
func (s *Session) Lose(why leased.Reason) {
	switch why {
	case leased.ReasonLeaseOver:
		door.LoseHolds(s.session, why)
	case leased.ReasonExpired:
		s.servers.expire(s)
	case leased.ReasonDeleted:
		s.servers.deleteHolders(s)
	case leased.ReasonClosed:
		s.Close()
	default:
		panic(fmt.Sprintf("leasedtest: %q is no reason of leased", why))
	}
}

// Close ends the session: every hold is lost, every Lock that waits returns an error, and the next clients acquire
// the locks.
func (s *Session) Close() {
	door.Close(s.session)
	s.servers.close(s)
}

// Done returns a channel that is closed when the session is closed.
func (s *Session) Done() <-chan struct{} { return s.session.Done() }

// Timeout returns the constant Timeout.
func (s *Session) Timeout() time.Duration { return s.session.Timeout() }

// Stats returns the present numbers, counted as those of a leased.Session. LeaseLeft is Timeout, until Close.
func (s *Session) Stats() leased.Stats {
	stats := s.session.Stats()
	stats.LeaseLeft = min(stats.LeaseLeft, Timeout)
	return stats
}

// Locks is like that of a leased.Session.
func (s *Session) Locks() []leased.LockState { return s.session.Locks() }

// Mutex stands for a leased.Mutex, and for a leased.Cohort.
type Mutex struct{ q queue }

// NewMutex returns the lock at path.
func NewMutex(s *Session, path string) *Mutex {
	return &Mutex{queue{s: s, at: lineName{path: path}}}
}

// Lock is like that of a leased.Mutex.
func (m *Mutex) Lock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, false, true) }

// TryLock is like that of a leased.Mutex.
func (m *Mutex) TryLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, false, false)
}

// Do is like that of a leased.Mutex.
func (m *Mutex) Do(ctx context.Context, work func(ctx context.Context, hold *leased.Hold) error) error {
	return door.Do(ctx, m.Lock, work)
}

// Queue is like that of a leased.Mutex.
func (m *Mutex) Queue(ctx context.Context) ([]leased.Participant, error) {
	return m.q.participants(ctx)
}

// RWMutex stands for a leased.RWMutex.
type RWMutex struct{ q queue }

// NewRWMutex returns the lock at path. A Mutex on the same path does not exclude it.
func NewRWMutex(s *Session, path string) *RWMutex {
	return &RWMutex{queue{s: s, at: lineName{path: path, shared: true}}}
}

// Lock is like that of a leased.RWMutex.
func (m *RWMutex) Lock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, false, true) }

// TryLock is like that of a leased.RWMutex.
func (m *RWMutex) TryLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, false, false)
}

// RLock is like that of a leased.RWMutex.
func (m *RWMutex) RLock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, true, true) }

// TryRLock is like that of a leased.RWMutex.
func (m *RWMutex) TryRLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, true, false)
}

// Do is like that of a leased.RWMutex.
func (m *RWMutex) Do(ctx context.Context, work func(ctx context.Context, hold *leased.Hold) error) error {
	return door.Do(ctx, m.Lock, work)
}

// RDo is like that of a leased.RWMutex.
func (m *RWMutex) RDo(ctx context.Context, work func(ctx context.Context, hold *leased.Hold) error) error {
	return door.Do(ctx, m.RLock, work)
}

// Queue is like that of a leased.RWMutex.
func (m *RWMutex) Queue(ctx context.Context) ([]leased.Participant, error) {
	return m.q.participants(ctx)
}

// Election stands for a leased.Election.
type Election struct{ lock Mutex }

// NewElection returns the election at path. A Mutex on the same path excludes it.
func NewElection(s *Session, path string) *Election {
	return &Election{*NewMutex(s, path)}
}

// Campaign is like that of a leased.Election.
func (e *Election) Campaign(ctx context.Context, lead func(ctx context.Context, token int64) error) error {
	return door.Campaign(ctx, e.lock.Lock, lead)
}

// Leader is like that of a leased.Election.
func (e *Election) Leader(ctx context.Context) (label string, err error) {
	queue, err := e.lock.Queue(ctx)
	if err != nil || len(queue) == 0 {
		return "", err
	}
	return queue[0].Label, nil
}

// Observe is like that of a leased.Election.
func (e *Election) Observe(ctx context.Context, changed func(leader string)) error {
	last := int64(-1)
	for {
		if err := door.MayList(ctx, e.lock.q.session(), e.lock.q.at.path); err != nil {
			return err
		}
		first, label, next := e.lock.q.first()
		if first != last {
			changed(label)
			last = first
		}
		select {
		case <-next:
		case <-ctx.Done():
		case <-e.lock.q.session().Done():
		}
	}
}
