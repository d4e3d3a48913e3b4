package leased

import (
	"log/slog"
	"time"
)

// connection is the session's connection to a server, or the outage while there is none. It is guarded by the
// session's mutex.
type connection struct {
	wire    *wire       // that the session uses; nil: there is none
	lostAt  time.Time   // when the last connection that had lasted was lost; zero: this one has lasted
	warning *time.Timer // warns of the outage
	warned  bool        // it has warned of this outage
}

const lasting = time.Second // a connection that has ended sooner is a try that has failed

// disconnected is called when a connection has failed or is being closed. This does not end the lease.
// If the session has another connection by now, disconnected does nothing.
func (s *Session) disconnected(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.connection
	if c.wire != w {
		return
	}
	c.wire = nil // what may still be read from it does not count as an answer
	if c.lostAt.IsZero() {
		c.lostAt = time.Now()
	}
	if s.closed == nil && !c.warned {
		c.warning = time.AfterFunc(time.Until(c.lostAt.Add(s.leases.timeout/2)), s.warnOfOutage)
	}
}

// connected is called when a session begins or resumes on a connection. The caller has s.mu.
func (s *Session) connected(w *wire, id int64, granted time.Duration) {
	s.connection.wire = w
	if s.connection.warning != nil {
		s.connection.warning.Stop()
	}
	time.AfterFunc(lasting, func() { s.hasLasted(w) })
	isNew, isOther := id != s.leases.id, granted != s.asked.Truncate(time.Millisecond)
	if isNew && isOther {
		s.log.say(slog.LevelWarn,
			"leased: the servers have granted a timeout other than the requested one; theirs applies",
			"asked", s.asked, "granted", granted)
	}
}

// hasLasted is called when a connection should have lasted. If it has, the outage is over. A server may accept the
// session again and again, and hang up each time: then the outage goes on.
func (s *Session) hasLasted(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.connection
	if c.wire != w {
		return
	}
	if c.warned {
		c.warned = false
		s.log.say(slog.LevelInfo, "leased: there is a connection again", "after", time.Since(c.lostAt))
	}
	c.lostAt = time.Time{}
}

// whyNoConnection returns why the session has no connection that has lasted, or "".
func (s *Session) whyNoConnection() string {
	why := s.client.lastWords() // not below: client.mu is locked before s.mu
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.connection.wire == nil:
		return "there is no connection: " + why
	case !s.connection.lostAt.IsZero():
		return "the connection was lost a moment ago: " + why
	}
	return ""
}

// warnOfOutage warns, once in an outage, when a call has waited for half of the timeout without a connection.
func (s *Session) warnOfOutage() {
	why := s.client.lastWords() // not below: client.mu is locked before s.mu
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection.wire != nil || s.closed != nil {
		return
	}
	soon := s.leases.timeout / 2
	if oldest := s.waiting.oldest(); oldest != nil {
		waits := time.Since(oldest.begun)
		withoutConnection := min(waits, time.Since(s.connection.lostAt))
		if withoutConnection >= soon {
			s.connection.warned = true
			s.log.say(slog.LevelWarn, "leased: there is no connection, and calls to Lock wait",
				"calls", len(s.waiting.tries), "longest", waits, "why", why)
			return
		}
		soon -= withoutConnection
	}
	s.connection.warning = time.AfterFunc(soon, s.warnOfOutage)
}
