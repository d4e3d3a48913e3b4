// Package leasedtest proves nothing about ZooKeeper: its locks are in the memory of one process.
//
// It is for the unit tests of a program that uses leased: does the program unlock, what does it do when it
// does not get the lock, and what when it loses the lock in the midst of its work? These tests need no
// server, and a hold can be lost on command, for each reason there is.
//
// A Mutex, an RWMutex and an Election have the methods of those in leased, and a lock returns the same
// *leased.Hold. So a program accepts either with a small interface of its own, which names the methods that it
// calls:
//
//	type locker interface {
//		Lock(context.Context) (*leased.Hold, error)
//	}
//
// What it leaves out is what only servers do: the network, time-outs, ACLs, other clients on the path. That a
// program runs over a real ZooKeeper, a test has to show with a real ZooKeeper.
package leasedtest

import (
	"context"
	"fmt"
	"time"

	"zklock/leased"
	"zklock/leased/internal/inmemory"
)

// The other side of inmemory.Leased: what these methods do is said there.
var door = inmemory.Leased.(interface {
	NewSession(timeout time.Duration) *leased.Session
	Take(ctx context.Context, s *leased.Session, dir string, reads, shared bool,
		stand func() (inmemory.Place, error)) (*leased.Hold, error)
	Downgrade(ctx context.Context, s *leased.Session, dir string, h *leased.Hold,
		exchange func(znode string) (inmemory.Place, error)) (*leased.Hold, error)
	Campaign(ctx context.Context, lock func(context.Context) (*leased.Hold, error),
		lead func(ctx context.Context, token int64) error) error
	MayList(ctx context.Context, s *leased.Session, dir string) error
	Lease(s *leased.Session) any
	GivenUp(ctx context.Context, s *leased.Session, behind string) error
	LoseHolds(s *leased.Session, why leased.Reason)
	Lost(why leased.Reason) error
	Close(s *leased.Session)
})

// Timeout is what Session.Timeout says. Nothing takes so long here.
const Timeout = 10 * time.Second

// Session stands for the session of one process. Its methods are those of a leased.Session, and Lose. What
// needs a connection is missing.
type Session struct {
	servers *Servers
	session *leased.Session
	label   string
}

// Open begins the session of one more process. The label says who it is, as leased.WithLabel does.
func (z *Servers) Open(label string) *Session {
	return &Session{servers: z, session: door.NewSession(Timeout), label: label}
}

// Lose takes from the session what it holds, as if this reason had come to pass:
//
//   - leased.ReasonLeaseOver, leased.ReasonDisconnected: the contexts of the holds end. Nobody else is let in before
//     Unlock.
//   - leased.ReasonExpired: the contexts of the holds end, and then the next ones are let in. Calls of this session
//     that wait do so at the end of the queue.
//   - leased.ReasonDeleted: the next ones are let in. The holders learn of it from Unlock alone.
//   - leased.ReasonClosed: as Close.
//
// Afterwards the session can have locks again, unless it is closed.
func (s *Session) Lose(why leased.Reason) {
	switch why {
	case leased.ReasonLeaseOver, leased.ReasonDisconnected:
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

// Close ends the session: every hold is lost, every waiting Lock returns an error, and others are let in.
func (s *Session) Close() {
	door.Close(s.session)
	s.servers.close(s)
}

// Done is closed when the session has been closed.
func (s *Session) Done() <-chan struct{} { return s.session.Done() }

// Timeout returns the constant Timeout.
func (s *Session) Timeout() time.Duration { return s.session.Timeout() }

// Stats returns the numbers of this moment, counted as those of a leased.Session.
func (s *Session) Stats() leased.Stats { return s.session.Stats() }

// Mutex stands for a leased.Mutex, and for a leased.Cohort.
type Mutex struct{ q queue }

// NewMutex returns the lock at path.
func NewMutex(s *Session, path string) *Mutex {
	return &Mutex{queue{s: s, at: lineName{path: path}}}
}

// Lock is as that of a leased.Mutex.
func (m *Mutex) Lock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, false, true) }

// TryLock is as that of a leased.Mutex.
func (m *Mutex) TryLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, false, false)
}

// Queue is as that of a leased.Mutex.
func (m *Mutex) Queue(ctx context.Context) ([]leased.Participant, error) {
	return m.q.participants(ctx)
}

// RWMutex stands for a leased.RWMutex.
type RWMutex struct{ q queue }

// NewRWMutex returns the lock at path. A Mutex on the same path does not exclude it.
func NewRWMutex(s *Session, path string) *RWMutex {
	return &RWMutex{queue{s: s, at: lineName{path: path, shared: true}}}
}

// Lock is as that of a leased.RWMutex.
func (m *RWMutex) Lock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, false, true) }

// TryLock is as that of a leased.RWMutex.
func (m *RWMutex) TryLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, false, false)
}

// RLock is as that of a leased.RWMutex.
func (m *RWMutex) RLock(ctx context.Context) (*leased.Hold, error) { return m.q.take(ctx, true, true) }

// TryRLock is as that of a leased.RWMutex.
func (m *RWMutex) TryRLock(ctx context.Context) (*leased.Hold, error) {
	return m.q.take(ctx, true, false)
}

// Queue is as that of a leased.RWMutex.
func (m *RWMutex) Queue(ctx context.Context) ([]leased.Participant, error) {
	return m.q.participants(ctx)
}

// Downgrade is as that of a leased.RWMutex.
func (m *RWMutex) Downgrade(ctx context.Context, h *leased.Hold) (*leased.Hold, error) {
	return door.Downgrade(ctx, m.q.session(), m.q.at.path, h, m.q.exchange)
}

// Election stands for a leased.Election.
type Election struct{ lock Mutex }

// NewElection returns the election at path. A Mutex on the same path excludes it.
func NewElection(s *Session, path string) *Election {
	return &Election{*NewMutex(s, path)}
}

// Campaign is as that of a leased.Election.
func (e *Election) Campaign(ctx context.Context, lead func(ctx context.Context, token int64) error) error {
	return door.Campaign(ctx, e.lock.Lock, lead)
}

// Leader is as that of a leased.Election.
func (e *Election) Leader(ctx context.Context) (label string, err error) {
	queue, err := e.lock.Queue(ctx)
	if err != nil || len(queue) == 0 {
		return "", err
	}
	return queue[0].Label, nil
}
