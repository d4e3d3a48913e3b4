package leased

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"
)

// The lease is the time for which the session can be relied on. When it is over,
// all holds that depend on it are lost, whatever a server may answer later.
//
// For leader, follower and majority see docs/zookeeper.md, "Reads at a follower, and sync".
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

// lease is one unbroken time for which the session can be relied on. It is guarded by the session's
// mutex.
type lease struct {
	users    map[*leaseUser]bool // the holds that depend on it
	until    time.Time           // zero when endLease was called
	lost     *LostError          // why it has ended
	renewing bool                // a goroutine renews it
}

// leaseUser is what the lease knows of a hold, or of the process hold of a Cohort, which has many holds, one
// after another.
type leaseUser struct {
	hold  string    // the znode of a hold, "" for a process hold
	begun time.Time // when the hold began
	lose  func(why *LostError)
}

// granted is called when a server has answered the handshake on a connection. The handshake began at begun.
// The id is 0 if the session has expired.
//
// The handshake of a new session is a write, and through it the leader learns that the session exists. So it counts
// in full. The
// handshake of an old session proves nothing.
func (s *Session) granted(line *wire, begun time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != 0 {
		s.connected(line, id, timeout)
	}
	if s.withoutLease {
		s.grantedWithoutLease(begun, id, timeout)
		return
	}
	if id == s.id { // the old session resumes or, with 0, there is still none: this proves nothing
		if id != 0 {
			s.timeout = timeout // for later leases: see "What it does not cover" in model/README.md
		}
		return
	}
	s.endLease(errExpired)
	s.id = id
	s.lastWrite, s.writeBefore = proof{}, proof{}
	s.lastPing, s.pingBefore = proof{}, proof{}
	if id != 0 {
		s.timeout = timeout
		s.renew(begun.Add(fullLease(timeout)))
	}
}

// grantedWithoutLease is granted with the rule "no connection, no hold". Then a lease lasts as long as one
// connection, and only while the server answers on it. An answered ping renews the lease, from the
// sending of that ping. A notification does not: the server may send it although it receives nothing
// from us. The caller has s.mu.
func (s *Session) grantedWithoutLease(begun time.Time, id int64, timeout time.Duration) {
	s.endLease(errDisconnected)
	s.id = id
	if id != 0 {
		s.timeout = timeout
		s.renew(begun.Add(fullLease(timeout)))
	}
}

// disconnected is called when a connection has failed or is being closed. This ends the lease only in
// a session WithoutLease. If the session has another connection by now, disconnected does nothing.
func (s *Session) disconnected(line *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != line {
		return
	}
	s.line = nil // what may still be read from it does not count as an answer
	s.disconnectedAt = time.Now()
	if !s.isClosed() {
		s.outage = time.AfterFunc(s.timeout/2, s.warnOfOutage)
	}
	if s.withoutLease {
		s.endLease(errDisconnected)
	}
}

// connected is called when a session begins or resumes on a connection. The caller has s.mu.
func (s *Session) connected(line *wire, id int64, granted time.Duration) {
	s.line = line
	if s.outage != nil {
		s.outage.Stop()
	}
	if s.warned {
		s.warned = false
		s.log.say(slog.LevelInfo, "leased: there is a connection again", "after", time.Since(s.disconnectedAt))
	}
	isNew, isOther := id != s.id, granted != s.asked.Truncate(time.Millisecond)
	if isNew && isOther {
		s.log.say(slog.LevelWarn,
			"leased: the servers have granted a timeout other than the requested one; theirs applies",
			"asked", s.asked, "granted", granted)
	}
}

// warnOfOutage warns, once in an outage, when a call has waited for half of the timeout without a connection.
func (s *Session) warnOfOutage() {
	why := s.client.lastWords() // not below: client.mu is locked before s.mu
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != nil || s.isClosed() {
		return
	}
	soon := s.timeout / 2
	if oldest := s.oldestTry(); oldest != nil {
		waits := time.Since(oldest.begun)
		withoutConnection := min(waits, time.Since(s.disconnectedAt))
		if withoutConnection >= soon {
			s.warned = true
			s.log.say(slog.LevelWarn, "leased: there is no connection, and calls to Lock wait",
				"calls", len(s.tries), "longest", waits, "why", why)
			return
		}
		soon -= withoutConnection
	}
	s.outage = time.AfterFunc(soon, s.warnOfOutage)
}

// oldestTry returns the call to Lock that has waited longest, or nil. The caller has s.mu.
func (s *Session) oldestTry() (oldest *try) {
	for t := range s.tries {
		if oldest == nil || t.begun.Before(oldest.begun) {
			oldest = t
		}
	}
	return oldest
}

// write makes a write, and counts it if a majority has agreed to it.
func (s *Session) write(do func() error) error {
	s.mu.Lock()
	id := s.id
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
	if id != s.id || s.withoutLease {
		return
	}
	holdsNothing := len(s.lease.users) == 0
	if holdsNothing {
		if ping, ok := s.pingATickBefore(w.sent); ok {
			s.renew(ping.sent.Add(fullLease(s.timeout)))
		}
	}

	// Is this write 3? Then the two writes that were kept are write 1 and write 2.
	write1, write2 := s.writeBefore, s.lastWrite
	isWrite3 := !write1.isNone() && w.sent.After(write2.answered)
	if isWrite3 {
		s.renew(write1.sent.Add(fullLease(s.timeout)))
	}

	// This write is kept if it was sent a tick or more after the answer to the last one that was kept.
	// If the next write is a write 3, this one is the write 2 before it. If the write after that is a
	// write 3, this one is its write 1. A write that was sent sooner is not kept, since perhaps the leader
	// has not asked for a report in between. It can only be a write 3, as above.
	//
	// For the first write there is no lastWrite yet. Then its time is the zero time, long ago,
	// so aTickLater is true.
	aTickLater := w.sent.Sub(s.lastWrite.answered) >= longestTick(s.timeout)
	if aTickLater {
		s.writeBefore, s.lastWrite = s.lastWrite, w
	}
}

// pingAnswered is called when a server has answered a ping of the client library on a connection.
func (s *Session) pingAnswered(line *wire, ping proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pingBefore, s.lastPing = s.lastPing, ping
	if s.withoutLease && s.line == line {
		s.renew(ping.sent.Add(fullLease(s.timeout)))
	}
}

// pingATickBefore returns a ping that was answered a tick or more before then; ok is false
// if there is none. The client library sends a ping in each third of the timeout, and a tick is
// a fifth: so one of the last two is old enough, unless answers are slow. The caller has s.mu.
func (s *Session) pingATickBefore(then time.Time) (ping proof, ok bool) {
	for _, ping := range []proof{s.lastPing, s.pingBefore} {
		aTickBefore := then.Sub(ping.answered) >= longestTick(s.timeout)
		if !ping.isNone() && aTickBefore {
			return ping, true
		}
	}
	return proof{}, false
}

// renew extends the lease, or begins another one if it is over. The caller has s.mu.
func (s *Session) renew(until time.Time) {
	if s.isClosed() || !until.After(time.Now()) {
		return
	}
	if s.lease.isOver() {
		// Perhaps its holds have not been notified yet: the timer may be late.
		s.endLease(s.whyOver())
		s.lease = &lease{users: map[*leaseUser]bool{}}
	}
	if !until.After(s.lease.until) {
		return
	}
	s.lease.until = until
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(time.Until(until), s.timeIsUp)
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
	if s.lease.isOver() {
		s.endLease(s.whyOver())
	}
}

// whyOver returns the reason of a lease whose time is up.
func (s *Session) whyOver() *LostError {
	if s.withoutLease {
		return errDisconnected
	}
	return errUnanswered
}

// endLease notifies all holds that depend on the lease of their loss. The caller has s.mu.
func (s *Session) endLease(why *LostError) {
	s.lease.until = time.Time{}
	if s.lease.lost == nil {
		s.lease.lost = why
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	var holds []string
	for user := range s.lease.users {
		user.lose(s.lease.lost)
		if user.hold != "" {
			holds = append(holds, user.hold)
		}
	}
	clear(s.lease.users)
	s.countLost(s.lease.lost, holds)
}

// countLost counts holds that were lost, given by their znodes. The caller has s.mu.
func (s *Session) countLost(why *LostError, holds []string) {
	if len(holds) == 0 || s.isClosed() {
		return
	}
	s.lost[why.Reason] += uint64(len(holds))
	s.log.say(slog.LevelWarn, "leased: locks were lost", "locks", len(holds), "one", holds[0],
		"why", why.detail, "session", fmt.Sprintf("%#x", s.id))
}

// takeLease returns the lease for a hold that may begin now. In two cases it makes a write before:
//
//   - Little of the lease is left. When the hold has begun, only three writes renew the
//     lease. That takes a tick or more, and the lease could be over before.
//   - The last write was answered more than a tick ago. Then renewWhileUsed would make one as
//     soon as the hold begins. The same write is more useful before: while no hold depends on
//     the lease, one write after an answered ping is enough to renew it.
func (s *Session) takeLease() *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	tick := longestTick(s.timeout)
	littleLeft := time.Until(s.lease.until) < tick
	lastIsOld := time.Since(s.lastWrite.answered) > tick
	if !s.withoutLease && (littleLeft || lastIsOld) {
		s.mu.Unlock()
		s.askTogether()
		s.mu.Lock()
	}
	return s.lease
}

// askTogether is ask, for many calls at once: when a process ends, all its locks change hands at the same time, and
// one write is enough for all calls that waited for them. A call that finds a write under way waits for its
// answer. A write that is not answered does not renew the lease: when the lease is over, the caller sees that.
func (s *Session) askTogether() {
	s.mu.Lock()
	answered := s.asking
	if answered != nil {
		s.mu.Unlock()
		<-answered
		return
	}
	answered = make(chan struct{})
	s.asking = answered
	s.mu.Unlock()
	_ = s.ask()
	s.mu.Lock()
	s.asking = nil
	s.mu.Unlock()
	close(answered)
}

// waitHalfATick is for a loop that waits until a write is answered again, or until the
// session has a lease again. A lease takes a tick or more, so it is enough to look twice a tick.
func (s *Session) waitHalfATick() {
	select {
	case <-time.After(longestTick(s.Timeout()) / 2):
	case <-s.done:
	}
}

// useLease renews the lease until stop is called. If the lease is over before that, it
// calls user.lose once, with s.mu locked: lose must not call methods of the session.
func (s *Session) useLease(l *lease, user *leaseUser) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.isOver() {
		why := l.lost
		if why == nil { // its timer is late
			why = s.whyOver()
		}
		user.lose(why)
		if user.hold != "" {
			s.countLost(why, []string{user.hold})
		}
		return func() {}
	}
	l.users[user] = true
	if !l.renewing && !s.withoutLease {
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
			s.waitHalfATick()
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
		wait := time.Until(s.lastWrite.answered.Add(longestTick(s.timeout)))
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
	return time.Until(l.until) < 2*longestTick(s.timeout)
}
