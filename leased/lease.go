package leased

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	pathpkg "path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// The lease is the time for which the session can be relied on. When it is over,
// all holds that depend on it are lost, whatever a server may answer later.
//
// For leader, follower and majority see docs/servers.md, "Reads at a follower, and sync".
// A handshake is the first request on a connection: it begins a session, or resumes an old
// one.
//
// The leader of the servers ends a session when it has not heard of it for the session
// timeout. Our process must know by itself when that may happen. Which answer
// proves that the leader has heard of us?
//
//   - Not the answer to a ping or a read: a follower gives it alone.
//   - Not the answer to a sync, or to the handshake of an old session: a leader gives
//     it alone, and the others may have elected another leader meanwhile.
//   - The answer to a write proves that no later leader ends our session too early, not even
//     one that our leader does not know of. A write is answered when a majority has agreed to
//     it, and a leader is elected by a majority. Two majorities share a server. When that
//     server has taken part in the election of a new leader, it agrees to no more writes of
//     the old one. It has agreed to our write: so that election ended after the write was sent.
//     And a new leader gives each session a whole timeout, from its election on.
//
// That leaves our present leader. When a follower passes a write on, the leader does not count
// it as a sign of life of our session: only the follower's report counts. The follower
// reports twice a tick which sessions are alive, when the leader asks it. Between two
// servers there is one connection, and messages on it arrive in order. So it takes three writes:
//
//	write 1 is answered   The follower has heard of us: we are in its next report.
//	a tick passes         The leader asks the follower for a report.
//	write 2 is sent       Its answer will reach the follower after that question.
//	write 2 is answered   So the follower has sent the report.
//	write 3 is sent       It will reach the leader after the report.
//	write 3 is answered   So the leader has the report.
//
// The leader counts the timeout from the report, which was made after write 1 was sent. So
// the lease may count from the sending of write 1. The next write renews it: of writes
// a, b, c and d, each sent a tick after the answer to the one before, c is write 3 of a and b,
// and d is write 3 of b and c. All this is also true if we connect to another server in
// between: the model in model/README.md tries it ("A reconnects to another server").
//
// A session that holds nothing makes no writes. If the first Lock had to wait for three,
// it would wait for a tick. So the client library's pings are useful. An answered ping proves no
// lease, but it proves what write 1 proves: the follower has heard of us. So, while no hold
// depends on the lease, one write is enough if it is sent a tick or more after the answer to
// a ping, and the lease counts from the sending of that ping. The ping takes the place of write 1,
// the write that of write 2, and there is no write 3. So this proves that the report was sent,
// but not that it has arrived. A hold that begins then assumes that no connection between two
// servers fails at that moment. When a hold depends on the lease, only three writes renew it.
//
// model/README.md has the whole argument, and a model that tries every interleaving.

// longestTick is a fifth of the timeout. The servers' tick is not longer if the timeout
// is five ticks or more, which Open asks of the caller, and cannot check. The leader asks
// for a report each half tick, sometimes a little late. So in a whole tick it asks at least
// once, unless it pauses. In this file, "a tick" is this fifth of the timeout. What is said above
// about a tick of the servers is also true of this one, since it is not shorter.
func longestTick(timeout time.Duration) time.Duration { return timeout / 5 }

// fullLease is the length of the lease, from the sending of the request from which it counts: the whole
// timeout, less a tenth in which the holder stops.
func fullLease(timeout time.Duration) time.Duration { return timeout * 9 / 10 }

// proof is one piece of evidence: a write to which a majority has agreed, or a ping that a
// server has answered. It takes several to prove a lease, and one of them has to be a write.
type proof struct{ sent, answered time.Time }

// isNone reports whether there is no such write or ping yet.
func (p proof) isNone() bool { return p.sent.IsZero() }

// leases is what is known of ZooKeeper's session: for how long it can be relied on, and what proves that. The session's
// mutex guards it.
type leases struct {
	id      int64         // of ZooKeeper's session; 0 while there is none
	timeout time.Duration // as the servers have granted it

	present *lease
	timer   *time.Timer       // fires when the present lease is over
	taken   uint64            // all holds that have begun
	lost    map[Reason]uint64 // and those that were lost

	// The last write and the last ping that were answered, and the ones before them. A write is kept only if
	// it was sent a tick or more after the answer to the last one that was kept.
	lastWrite, writeBefore proof
	lastPing, pingBefore   proof
}

// lease is one unbroken time for which the session can be relied on. The session's mutex guards it.
type lease struct {
	users    map[*leaseUser]bool // the holds that depend on it
	until    time.Time           // zero when endLease was called
	lost     *LostError          // why it has ended
	renewing bool                // a goroutine renews it
	notified sync.WaitGroup      // ends when all users that have lost it are notified
}

// leaseUser is what the lease knows of a hold, or of the process hold of a Cohort, which has many holds, one
// after another.
type leaseUser struct {
	hold  string    // the znode of a hold, "" for a process hold
	begun time.Time // when the hold began

	lose   func(why *LostError) // is called with the session's mutex locked, and only notes the loss
	notify func()               // if not nil: is called after lose, without a mutex: it may run the caller's code
}

// granted is called when a server has answered the handshake on a connection. The handshake began at begun.
// The id is 0 if the session has expired.
//
// The handshake of a new session is a write, and through it the leader learns that the session exists. So it counts
// in full. The handshake of an old session proves nothing.
//
// It reports whether another session takes the place of an old one. The client library does not notice that, and
// the watches of the old session are lost.
func (s *Session) granted(w *wire, begun time.Time, id int64, timeout time.Duration) (replaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != 0 {
		s.connected(w, id, timeout)
	}
	if id == s.leases.id { // the old session resumes or, with 0, there is still none: this proves nothing
		if id != 0 {
			s.leases.timeout = timeout // for later leases: see "What it does not cover" in model/README.md
		}
		return false
	}
	replaced = id != 0 && s.leases.id != 0
	s.endLease(errExpired)
	s.leases.id = id
	s.leases.lastWrite, s.leases.writeBefore = proof{}, proof{}
	s.leases.lastPing, s.leases.pingBefore = proof{}, proof{}
	if id != 0 {
		s.leases.timeout = timeout
		s.renew(begun.Add(fullLease(timeout)))
	}
	return replaced
}

// write makes a write, and counts it if a majority has agreed to it.
func (s *Session) write(do func() error) error {
	s.mu.Lock()
	id := s.leases.id
	s.mu.Unlock()
	sent := time.Now()
	err := do()
	if err == nil || agreed(err) {
		s.count(id, proof{sent: sent, answered: time.Now()})
	}
	return err
}

// ask makes a write that changes nothing: it deletes a znode that does not exist. When
// it is answered, our server knows of all earlier writes.
//
// In the servers' audit log this is a failure. A multi that checks "/" would be none, but it would be refused where
// this client may not read "/".
func (s *Session) ask() error {
	err := s.write(func() error { return s.conn.Delete(s.nobody, -1) })
	if agreed(err) {
		return nil
	}
	return err
}

// nobodysZnode returns the path of a znode that no program creates: the path has 64 random bits. A program that
// knew the path could create the znode, or forbid the delete.
func nobodysZnode() string { return fmt.Sprintf("/zklock-nobody-%016x/nothing", rand.Uint64()) }

// agreed reports whether err is ErrNoNode, the leader's answer to a delete that a majority
// has agreed to refuse. No other error counts. Some would prove as much, but ErrNoAuth
// would not: a follower can be configured to answer it alone (zookeeper.enableEagerACLCheck).
func agreed(err error) bool { return errors.Is(err, zk.ErrNoNode) }

// count counts a write that was answered in the session with that id.
func (s *Session) count(id int64, w proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.leases.id {
		return
	}
	holdsNothing := len(s.leases.present.users) == 0
	if holdsNothing {
		if ping, ok := s.leases.pingATickBefore(w.sent); ok {
			s.renew(ping.sent.Add(fullLease(s.leases.timeout)))
		}
	}

	// Is this write 3? Then the two writes that were kept are write 1 and write 2.
	write1, write2 := s.leases.writeBefore, s.leases.lastWrite
	isWrite3 := !write1.isNone() && w.sent.After(write2.answered)
	if isWrite3 {
		s.renew(write1.sent.Add(fullLease(s.leases.timeout)))
	}

	// This write is kept if it was sent a tick or more after the answer to the last one that was kept.
	// If the next write is a write 3, this one is the write 2 before it. If the write after that is a
	// write 3, this one is its write 1. A write that was sent sooner is not kept, since perhaps the leader
	// has not asked for a report in between. It can only be a write 3, as above.
	//
	// For the first write there is no lastWrite yet. Then its time is the zero time, long ago,
	// so aTickLater is true.
	aTickLater := w.sent.Sub(s.leases.lastWrite.answered) >= longestTick(s.leases.timeout)
	if aTickLater {
		s.leases.writeBefore, s.leases.lastWrite = s.leases.lastWrite, w
	}
}

// pingAnswered is called when a server has answered a ping of the client library on a connection.
func (s *Session) pingAnswered(ping proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases.pingBefore, s.leases.lastPing = s.leases.lastPing, ping
}

// pingATickBefore returns a ping that was answered a tick or more before then; ok is false
// if there is none. The client library sends a ping in each third of the timeout, and a tick is
// a fifth: so one of the last two is old enough, unless answers are slow.
func (l *leases) pingATickBefore(then time.Time) (ping proof, ok bool) {
	for _, ping := range []proof{l.lastPing, l.pingBefore} {
		aTickBefore := then.Sub(ping.answered) >= longestTick(l.timeout)
		if !ping.isNone() && aTickBefore {
			return ping, true
		}
	}
	return proof{}, false
}

// renew extends the lease, or begins another one if it is over. The caller has s.mu.
func (s *Session) renew(until time.Time) {
	if s.closed != nil || !until.After(time.Now()) {
		return
	}
	if s.leases.present.isOver() {
		// Perhaps its holds have not been notified yet: the timer may be late.
		s.endLease(errUnanswered)
		s.leases.present = &lease{users: map[*leaseUser]bool{}}
	}
	if !until.After(s.leases.present.until) {
		return
	}
	s.leases.present.until = until
	if s.leases.timer != nil {
		s.leases.timer.Stop()
	}
	s.leases.timer = time.AfterFunc(time.Until(until), s.timeIsUp)
}

// isOver looks at the clock: after a pause of the process the timer may be late. The
// caller has the session's mutex.
func (l *lease) isOver() bool { return !time.Now().Before(l.until) }

// isOver reports whether a lease is over. A lease that is over does not begin again.
func (s *Session) isOver(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.isOver()
}

// timeIsUp ends the lease, unless it has been renewed meanwhile.
func (s *Session) timeIsUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases.present.isOver() {
		s.endLease(errUnanswered)
	}
}

// endLease ends the lease, and all holds that depend on it. Each hold notifies its work on a goroutine of its own:
// so the lease ends in the same time, however much work there is. The caller has s.mu.
func (s *Session) endLease(why *LostError) {
	s.leases.present.until = time.Time{}
	if s.leases.present.lost == nil {
		s.leases.present.lost = why
	}
	if s.leases.timer != nil {
		s.leases.timer.Stop()
	}
	var holds []string
	for user := range s.leases.present.users {
		user.lose(s.leases.present.lost)
		if user.notify != nil {
			s.leases.present.notified.Go(user.notify)
		}
		if user.hold != "" {
			holds = append(holds, user.hold)
		}
	}
	clear(s.leases.present.users)
	s.countLost(s.leases.present.lost, holds)
}

// countLost counts holds that were lost, given by their znodes. The caller has s.mu.
func (s *Session) countLost(why *LostError, holds []string) {
	if len(holds) == 0 || s.closed != nil {
		return
	}
	s.leases.lost[why.Reason] += uint64(len(holds))
	s.log.say(slog.LevelWarn, "leased: locks were lost", "locks", len(holds), "one", holds[0],
		"why", why.detail, "session", fmt.Sprintf("%#x", s.leases.id))
	if s.onLost != nil {
		go func() { // no mutex is locked there, and nothing waits for it
			for _, znode := range holds {
				s.onLost(pathpkg.Dir(znode), why)
			}
		}()
	}
}

// takeLease returns the lease for a hold that may begin now. In two cases it makes a write before:
//
//   - Little of the lease is left. When the hold has begun, only three writes renew the
//     lease. That takes a tick or more, and the lease could be over before.
//   - The last write was answered more than a tick ago. Then renewWhileUsed would make one as
//     soon as the hold begins. The same write is more useful before: while no hold depends on
//     the lease, one write after an answered ping is enough to renew it.
//
// If ctx ends, takeLease waits for no other call's write any more.
func (s *Session) takeLease(ctx context.Context) *lease {
	if s.needsAWrite() {
		s.askTogether(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases.present
}

// needsAWrite reports whether takeLease makes a write.
func (s *Session) needsAWrite() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tick := longestTick(s.leases.timeout)
	littleLeft := time.Until(s.leases.present.until) < tick
	lastIsOld := time.Since(s.leases.lastWrite.answered) > tick
	return littleLeft || lastIsOld
}

// askTogether is ask, for many calls at once: when a process ends, all its locks change hands at the same time, and
// one write is enough for all calls that waited for them. A call that finds a write under way waits for its
// answer. A write that is not answered does not renew the lease: when the lease is over, the caller sees that.
func (s *Session) askTogether(ctx context.Context) {
	s.mu.Lock()
	answered := s.waiting.asking
	if answered != nil {
		s.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
		}
		return
	}
	answered = make(chan struct{})
	s.waiting.asking = answered
	s.mu.Unlock()
	_ = s.ask()
	s.mu.Lock()
	s.waiting.asking = nil
	s.mu.Unlock()
	close(answered)
}

// waitHalfATick is for a loop that waits until a write is answered again, or until the
// session has a lease again. A lease takes a tick or more, so it is enough to look twice a tick.
func (s *Session) waitHalfATick(ctx context.Context) {
	select {
	case <-time.After(longestTick(s.Timeout()) / 2):
	case <-ctx.Done():
	case <-s.done:
	}
}

// useLease counts the user's hold, and renews the lease until stop is called. If the lease is over before that, it
// calls user.lose once, with s.mu locked: lose must not call methods of the session. Then it calls user.notify, unless
// the lease was over before the user began: then nobody has been given a context yet.
func (s *Session) useLease(l *lease, user *leaseUser) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user.hold != "" {
		s.leases.taken++
	}
	if l.isOver() {
		why := l.lost
		if why == nil { // its timer is late
			why = errUnanswered
		}
		user.lose(why)
		if user.hold != "" {
			s.countLost(why, []string{user.hold})
		}
		return func() {}
	}
	l.users[user] = true
	if !l.renewing {
		l.renewing = true
		// Not by run, which locks s.mu. The session is open: Close would have ended this lease.
		s.work.Go(func() { s.renewWhileUsed(l) })
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(l.users, user)
	}
}

// renewWhileUsed makes a write a tick after the session's last one, for all its holds
// together. At first the last one is usually the create of the hold. So a hold that
// is shorter than a tick usually needs no writes except its create and its delete.
func (s *Session) renewWhileUsed(l *lease) {
	for s.isUsedWhenAWriteIsDue(l) {
		if err := s.ask(); err != nil {
			s.waitHalfATick(context.Background())
			continue
		}
		if s.runsShort(l) {
			_ = s.ask() // write 3 can follow write 2 at once
		}
	}
}

// isUsedWhenAWriteIsDue waits until the next write is due. It returns false when nothing depends
// on the lease any more.
func (s *Session) isUsedWhenAWriteIsDue(l *lease) bool {
	for {
		s.mu.Lock()
		isUsed := !l.isOver() && len(l.users) > 0
		l.renewing = isUsed
		wait := time.Until(s.leases.lastWrite.answered.Add(longestTick(s.leases.timeout)))
		s.mu.Unlock()
		if !isUsed || wait <= 0 {
			return isUsed
		}
		select {
		case <-time.After(wait):
		case <-s.done:
		}
	}
}

// runsShort reports whether less than two ticks of the lease are left. If there is one write in each tick, and
// the answers arrive soon, more than two ticks are left.
func (s *Session) runsShort(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(l.until) < 2*longestTick(s.leases.timeout)
}
