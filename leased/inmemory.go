package leased

import (
	"context"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/leased/internal/inmemory"
)

// inMemory is what package leasedtest needs of this one. Its locks have a queue in memory, and are for unit
// tests of programs that use leased. What is not the queue is the same code: holds, re-entry, errors, Stats.
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

// beginEndlessLease begins the lease of a session without servers. The caller has s.mu, or nobody else has s.
func (s *Session) beginEndlessLease() {
	s.lease = &lease{users: map[*leaseUser]bool{}, until: time.Unix(math.MaxInt32, 0)}
}

// Take is the take of a queue. In place of ZooKeeper's queue the call stands in another one: stand returns
// when it is let in.
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

// Downgrade is that of an RWMutex. The exchange makes a reader of a place.
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

// Campaign is that of an Election over a lock in memory.
func (inMemory) Campaign(
	ctx context.Context, lock func(context.Context) (*Hold, error), lead func(context.Context, int64) error,
) error {
	return campaign(ctx, lock, lead)
}

// MayList is what can be wrong with a call of Queue.
func (inMemory) MayList(ctx context.Context, s *Session, dir string) error {
	q := &queue{s: s, dir: dir}
	err := q.mayList(ctx)
	if err == nil && s.isClosed() {
		err = failed("list the queue of", dir, zk.ErrClosing)
	}
	return err
}

// Lease returns the lease, for a hold that may begin now.
func (inMemory) Lease(s *Session) any { return s.takeLease() }

// GivenUp is the error of a call that has waited behind somebody until its context ended.
func (inMemory) GivenUp(ctx context.Context, s *Session, behind string) error {
	t := &try{s: s, ctx: ctx}
	t.behind.Store(&behind)
	return t.whyEnded()
}

// LoseHolds tells all holds of the session that they are lost. Then others can be had.
func (inMemory) LoseHolds(s *Session, why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	s.endLease(lostInMemory(why))
	s.beginEndlessLease()
}

// Lost is the error of a hold that was lost for this reason. It is nil for a reason that does not exist.
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

// Close is the session's Close.
func (inMemory) Close(s *Session) {
	s.markClosed(byClose)
	s.work.Wait()
}
