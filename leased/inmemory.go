package leased

import (
	"context"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/leased/internal/inmemory"
)

// InMemory is for package leasedtest, and no other package can call it. The locks of leasedtest have a queue in
// memory. All else is the code of this package: holds, re-entry, errors, Stats. The linker leaves this out of a
// program that does not import leasedtest.
func InMemory(inmemory.Key) inMemory { return inMemory{} }

// inMemory has the functions that leasedtest needs.
type inMemory struct{}

// NewSession returns a session without servers. Its lease lasts until LoseHolds or Close.
func (inMemory) NewSession(timeout time.Duration) *Session {
	s := newSession(timeout)
	s.conn = &zk.Conn{}         // check wants one; no request is made with it
	s.connection.wire = &wire{} // connected
	s.leases.present = endlessLease()
	return s
}

// endlessLease returns a lease that no write has to renew.
func endlessLease() *lease {
	return &lease{users: map[*leaseUser]bool{}, until: time.Unix(math.MaxInt32, 0), renewing: true}
}

// Take is like the take of a queue, but the call does not wait in ZooKeeper's queue: stand calls letIn when the
// call acquires the lock, or returns an error.
func (inMemory) Take(
	ctx context.Context, s *Session, dir string, reads, shared bool, stand func(letIn func(inmemory.Place)) error,
) (*Hold, error) {
	q, k := &queue{s: s, dir: dir, kinds: []kind{exclusive}}, exclusive
	if shared {
		q.kinds, k = []kind{read, write}, write
	}
	if reads {
		k = read
	}
	return q.enterOrAcquire(ctx, k, true, func(*try) (h *Hold, err error) {
		err = stand(func(mine inmemory.Place) {
			s.mu.Lock()
			current := s.leases.present
			s.mu.Unlock()
			h = newHold(q, place{kind: k, node: mine.Znode, token: mine.Token, lease: current})
			h.release = mine.Release
			h.begin()
		})
		return h, err
	})
}

// Do is like that of a Mutex, with a lock in memory.
func (inMemory) Do(
	ctx context.Context, lock func(context.Context) (*Hold, error), work func(context.Context, *Hold) error,
) error {
	return do(ctx, lock, work)
}

// Campaign is like that of an Election, with a lock in memory.
func (inMemory) Campaign(
	ctx context.Context, lock func(context.Context) (*Hold, error), lead func(context.Context, int64) error,
) error {
	return campaign(ctx, lock, lead)
}

// MayList refuses a call of Queue that cannot be answered.
func (inMemory) MayList(ctx context.Context, s *Session, dir string) error {
	q := &queue{s: s, dir: dir}
	err := q.mayList(ctx)
	if err == nil && s.isClosed() {
		err = failed("list the queue of", dir, zk.ErrClosing)
	}
	return err
}

// GivenUp returns the error of a call that has waited behind another one until its context ended.
func (inMemory) GivenUp(ctx context.Context, s *Session, behind *LockedError) error {
	t := &try{s: s, ctx: ctx}
	t.behind.Store(behind)
	return t.whyEnded()
}

// LoseHolds notifies all holds of the session that they are lost. Afterwards the session can have others.
func (inMemory) LoseHolds(s *Session, why Reason) {
	s.mu.Lock()
	lost := s.leases.present
	if s.closed == nil {
		s.endLease(lostInMemory(why))
		s.leases.present = endlessLease()
	}
	s.mu.Unlock()
	lost.notified.Wait()
}

// Lost returns the error of a hold that was lost for this reason, or nil if there is no such reason.
func (inMemory) Lost(why Reason) error {
	if lost := lostInMemory(why); lost != nil {
		return lost
	}
	return nil
}

func lostInMemory(why Reason) *LostError {
	for _, lost := range []*LostError{errUnanswered, errExpired, errZnodeDeleted} {
		if lost.Reason == why {
			return lost
		}
	}
	return nil
}

// Close is like the session's Close.
func (inMemory) Close(s *Session) {
	s.markClosed(byClose)
	s.work.Wait()
}
