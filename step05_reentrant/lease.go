package reentrant

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// The lease is the time for which the session can be relied on. When it runs out,
// what hangs on it is lost, whatever a server may say later.
//
// The leader ends a session of which it has not heard for the session time-out. A
// client must know that from the answers it got: which of them prove that the
// leader had heard of it? Not one to a ping or a read: a follower gives it alone.
// Not one to a sync or to the handshake of an old session: a leader gives it alone,
// and may have been deposed without knowing. But a majority has to agree to a write,
// even to one in vain; and a later leader gives each session a whole time-out.
//
// The present leader may have heard less: a follower passes a write on at once, and
// reports only twice a tick which sessions are alive. So it takes three writes.
// After the first, we are in the follower's next report. The second is sent half a
// tick after the first was answered: its answer comes behind the leader's request
// for that report. The third comes to the leader behind the report. Its answer makes
// the lease count from the sending of the first, for 0.9 of the time-out.
//
// A new session's handshake is a write, and counts in full. In a session that holds
// nothing, one write counts for two fifths: docs/lease.md says what this assumes.
type lease struct {
	id      int64         // of ZooKeeper's session; 0: it has expired
	timeout time.Duration // as the server granted it
	holds   atomic.Int32  // locks that hang on it
	proofs  []proof       // the last two
	until   time.Time
	over    *time.Timer     // fires then
	life    context.Context // ends then
	lose    context.CancelCauseFunc
}

type proof struct{ sent, answered time.Time } // of a write

// granted is told what a server answered to a handshake that began at that time.
func (s *Session) granted(begun time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != 0 {
		s.timeout = timeout
	}
	if id != s.id { // else an old session's handshake: no proof
		s.lose(ErrLost)
		s.id, s.proofs, s.until = id, nil, time.Time{}
		s.renew(begun.Add(timeout * 9 / 10)) // not if it has expired: the time-out is 0
	}
}

// Prove makes a write, whose answer is a proof.
func (s *Session) Prove(write func() error) error {
	s.mu.Lock()
	id, sent := s.id, time.Now()
	s.mu.Unlock()
	err := write()
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.id || err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if s.holds.Load() == 0 {
		s.renew(sent.Add(s.timeout * 2 / 5))
	}
	n := len(s.proofs)
	if n == 2 && sent.After(s.proofs[1].answered) {
		s.renew(s.proofs[0].sent.Add(s.timeout * 9 / 10))
	}
	if n == 0 || sent.Sub(s.proofs[n-1].answered) >= s.timeout/10 { // half a tick, or more
		s.proofs = append(s.proofs[max(0, n-1):], proof{sent, time.Now()})
	}
	return err
}

// Ask makes a write in vain. Its answer comes behind all that was decided before.
func (s *Session) Ask() error {
	if err := s.Prove(func() error { return s.conn.Delete("/zklock-nobody/nothing", -1) }); !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// renew makes the lease longer, or begins another one if it was lost.
func (s *Session) renew(until time.Time) {
	if !until.After(s.until) || !until.After(time.Now()) || s.Closed() {
		return
	}
	s.until = until
	s.over.Reset(time.Until(until))
	if s.life.Err() != nil {
		s.life, s.lose = context.WithCancelCause(context.Background())
	}
}

// expire ends the lease, unless it has become longer.
func (s *Session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Until(s.until) <= 0 {
		s.lose(ErrLost)
	}
}

// left is how much is left of the lease, and whether it was proved just now.
func (s *Session) left() (part float64, fresh bool, lease context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.proofs)
	fresh = n > 0 && time.Since(s.proofs[n-1].answered) < s.timeout/10
	return time.Until(s.until).Seconds() / s.timeout.Seconds(), fresh, s.life
}

// Lease is the lease as a context. If little is left, Lease asks first.
func (s *Session) Lease() context.Context {
	part, fresh, lease := s.left()
	if part <= 0 || part < 0.6 && !fresh {
		_ = s.Ask()
		_, _, lease = s.left()
	}
	return lease
}

// Keep renews the lease by five writes a time-out, until rest is called or it ends.
func (s *Session) Keep(lease context.Context) (rest func()) {
	kept, rest := context.WithCancel(lease)
	s.holds.Add(1)
	s.Go(func() {
		defer s.holds.Add(-1)
		for {
			pause := s.Timeout() / 5
			if part, _, _ := s.left(); part < 0.4 {
				pause /= 2
			}
			select {
			case <-kept.Done():
				return
			case <-time.After(pause):
			}
			if _, fresh, _ := s.left(); !fresh { // else another hold has asked
				_ = s.Ask()
				if part, _, _ := s.left(); part < 0.4 { // the third write may follow at once
					_ = s.Ask()
				}
			}
		}
	})
	return rest
}
