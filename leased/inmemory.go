package leased

import (
	"context"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/leased/internal/inmemory"
)

// inMemory is what package leasedtest needs of this package. Its locks have a queue in memory, and are for unit
// tests of programs that use leased. All else is the same code: holds, re-entry, errors, Stats.
type inMemory struct{}

func init() { inmemory.Leased = inMemory{} }

// NewSession returns a session without servers. Its lease lasts until LoseHolds or Close.
func (inMemory) NewSession(timeout time.Duration) *Session {
	s := newSession(timeout)
	s.conn = &zk.Conn{} // check wants one; no request is made with it
	s.line = &wire{}    // connected
	s.withoutLease = true
	s.beginEndlessLease()
	return s
}

// beginEndlessLease begins the lease of a session without servers. The caller has s.mu, or only the caller has s.
func (s *Session) beginEndlessLease() {
	s.lease = &lease{users: map[*leaseUser]bool{}, until: time.Unix(math.MaxInt32, 0)}
}

// Take is like the take of a queue, but the call does not wait in ZooKeeper's queue: stand returns when the
// call acquires the lock.
func (inMemory) Take(
	ctx context.Context, s *Session, dir string, reads, shared bool, stand func() (inmemory.Place, error),
) (*Hold, error) {
	q, k := &queue{s: s, dir: dir, kinds: []kind{exclusive}}, exclusive
	if shared {
		q.kinds, k = []kind{read, write}, write
	}
	if reads {
		k = read
	}
	return q.enterOrAcquire(ctx, k, true, func(*try) (*Hold, error) {
		mine, err := stand()
		if err != nil {
			return nil, err
		}
		h := newHold(q, place{kind: k, node: mine.Znode, token: mine.Token, lease: mine.Lease.(*lease)})
		h.release = mine.Release
		h.begin()
		return h, nil
	})
}

// Downgrade is like that of an RWMutex. exchange makes a place a reader's.
func (inMemory) Downgrade(
	ctx context.Context, s *Session, dir string, h *Hold, exchange func(znode string) (inmemory.Place, error),
) (*Hold, error) {
	if err := check(ctx, s, dir); err != nil {
		return nil, err
	}
	q := &queue{s: s, dir: dir, kinds: []kind{read, write}}
	reader, err := q.downgrade(ctx, h, func(writer place) (*Hold, error) {
		mine, err := exchange(writer.node)
		if err != nil {
			return nil, err
		}
		reader := newHold(q, writer)
		reader.place.kind = read
		reader.release = mine.Release
		return reader, nil
	})
	return reader, failed("downgrade", dir, err)
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

// Lease returns the lease for a hold that may begin now.
func (inMemory) Lease(s *Session) any { return s.takeLease() }

// GivenUp returns the error of a call that has waited behind another one until its context ended.
func (inMemory) GivenUp(ctx context.Context, s *Session, behind string) error {
	t := &try{s: s, ctx: ctx}
	t.behind.Store(&behind)
	return t.whyEnded()
}

// LoseHolds notifies all holds of the session that they are lost. Afterwards the session can have others.
func (inMemory) LoseHolds(s *Session, why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	s.endLease(lostInMemory(why))
	s.beginEndlessLease()
}

// Lost returns the error of a hold that was lost for this reason, or nil if there is no such reason.
func (inMemory) Lost(why Reason) error {
	if lost := lostInMemory(why); lost != nil {
		return lost
	}
	return nil
}

func lostInMemory(why Reason) *LostError {
	for _, lost := range []*LostError{errUnanswered, errExpired, errZnodeDeleted, errDisconnected} {
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
