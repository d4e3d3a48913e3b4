package model

// What A does.

// aSends sends the next request that the rule counts on.
func aSends(m *model, s state, found func(state)) {
	if int(s.sent) == len(m.requests) {
		return
	}
	next := m.requests[s.sent]
	if next.kind == handshake {
		return
	}
	if s.answered < s.sent && !m.fromSending {
		return
	}
	if s.sent > 0 && s.sinceLast < m.clock.units(next.space) {
		return
	}
	s.toServer = s.toServer.with(counted)
	s.sent++
	if m.fromSending {
		s.sinceLast = 0
	}
	found(s)
}

func aHasAnswer(m *model, s state, found func(state)) {
	if s.toClient.first() != counted {
		return
	}
	s.toClient = s.toClient.withoutFirst()
	s.answered++
	if !m.fromSending {
		s.sinceLast = 0
	}
	found(s)
}

func aSendsOther(m *model, s state, found func(state)) {
	if m.sendsOthers {
		s.toServer = s.toServer.with(other)
		found(s)
	}
}

func clientPings(m *model, s state, found func(state)) {
	if m.pingIsDue(&s) {
		s.toServer = s.toServer.with(other)
		s.sincePing = 0
		found(s)
	}
}

func (m *model) pingIsDue(s *state) bool {
	return m.pingsEachThird && s.sincePing == m.clock.aThird()
}

// aComesBack is the whole handshake of an old session. So the leader has heard of A.
func aComesBack(m *model, s state, found func(state)) {
	leaderAccepts := !s.ended && !s.stands
	if m.reconnects && leaderAccepts {
		s.silence = 0
		m.connect(s, false, found)
	}
}

// aComesBackToDeposed is such a handshake with a leader that does not know that it is deposed.
func aComesBackToDeposed(m *model, s state, found func(state)) {
	if m.reconnects && s.elected {
		m.connect(s, true, found)
	}
}

func aComesBackForHalf(m *model, s state, found func(state)) {
	if m.grantsHalf && !s.ended {
		s.silence = 0
		s.patience = m.clock.timeout / 2
		m.connect(s, false, found)
	}
}

// aComesBackWithHandshake is for a rule that counts on the handshake.
func aComesBackWithHandshake(m *model, s state, found func(state)) {
	waitsForAnswer := s.sent > s.answered
	if waitsForAnswer || m.kindOf(s.sent) != handshake {
		return
	}
	begin := func(s state) {
		s.toServer = s.toServer.with(counted)
		s.sent++
		found(s)
	}
	m.connect(s, s.deposed, begin)
	if s.elected {
		m.connect(s, !s.deposed, begin)
	}
}

// connect gives A a new connection, to a server in any place. Messages that were under way are lost. That
// server has not heard of A yet.
func (m *model) connect(s state, toDeposed bool, found func(state)) {
	otherLeader := s.deposed != toDeposed
	s.deposed = toDeposed
	s.cut = false
	s.sent = s.answered
	s.toServer, s.toClient = 0, 0
	s.followerStands = false // it may be another follower
	for i := range s.between {
		s.between[i] = server{sinceAsked: s.between[i].sinceAsked}
	}
	for _, place := range m.places {
		s.place = place
		found(s)
		for since := range m.clock.longestGap + 1 {
			if otherLeader { // the other leader asks at its own times
				s.between[0].sinceAsked = since
				found(s)
			}
		}
	}
}
