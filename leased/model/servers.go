package model

// What A's server does, if it is not the leader.

// otherServerRuns tells whether A's server is another one than the leader, and does not
// stand still.
func (s *state) otherServerRuns() bool { return s.place != atLeader && !s.followerStands }

func serverGetsRequest(m *model, s state, found func(state)) {
	if !s.otherServerRuns() || s.toServer.first() != counted {
		return
	}
	if !m.isHandshake(s.nextAtServer()) {
		s.nearest().heard = true
	}
	m.serverPassesOn(&s)
	found(s)
}

func serverGetsOther(m *model, s state, found func(state)) {
	if !s.otherServerRuns() || s.toServer.first() != other {
		return
	}
	s.nearest().heard = true
	s.toServer = s.toServer.withoutFirst()
	found(s)
}

// serverForgets: in ZooKeeper one thread takes the list of those of which the follower has
// heard, while another one is about to write into it.
func serverForgets(m *model, s state, found func(state)) {
	mayForget := m.followerForgets && s.place != atLeader
	if !mayForget || s.toServer.first() != counted {
		return
	}
	m.serverPassesOn(&s)
	found(s)
}

// serverPassesOn: a ping or a read the server answers alone.
func (m *model) serverPassesOn(s *state) {
	answersAlone := m.kindOf(s.nextAtServer()) == ping
	s.toServer = s.toServer.withoutFirst()
	if answersAlone {
		s.toClient = s.toClient.with(counted)
	} else {
		s.sendUp(s.place-1, counted)
	}
}

func serverPassesAnswer(_ *model, s state, found func(state)) {
	if !s.otherServerRuns() || s.nearest().down.first() != counted {
		return
	}
	s.nearest().down = s.nearest().down.withoutFirst()
	s.toClient = s.toClient.with(counted)
	found(s)
}

// What goes on between the servers. Number 0 is the follower, number 1 the observer.

func (s *state) sendUp(number place, what message) {
	if number > 0 || !s.cut {
		s.between[number].up = s.between[number].up.with(what)
	}
}

func (s *state) sendDown(number place, what message) {
	if number > 0 || !s.cut {
		s.between[number].down = s.between[number].down.with(what)
	}
}

func leaderAsks(m *model, s state, found func(state)) {
	if !s.stands {
		m.ask(0, s, found)
	}
}

func followerAsks(m *model, s state, found func(state)) { m.ask(1, s, found) }

// ask asks a server for its report.
func (m *model) ask(number place, s state, found func(state)) {
	if number >= s.place || s.between[number].sinceAsked < m.clock.tick/2 {
		return
	}
	s.sendDown(number, question)
	s.between[number].sinceAsked = 0
	found(s)
}

func (m *model) questionIsDue(number place, s *state) bool {
	return s.between[number].sinceAsked == m.clock.longestGap
}

func followerAnswers(_ *model, s state, found func(state)) { s.answerQuestion(0, found) }
func observerAnswers(_ *model, s state, found func(state)) { s.answerQuestion(1, found) }

// answerQuestion sends a report. One without A in it tells nothing, and is left out.
func (s state) answerQuestion(number place, found func(state)) {
	if s.followerStands || s.between[number].down.first() != question {
		return
	}
	s.between[number].down = s.between[number].down.withoutFirst()
	if s.between[number].heard {
		s.sendUp(number, report)
	}
	s.between[number].heard = false
	found(s)
}

func followerGetsReport(_ *model, s state, found func(state)) {
	if s.between[1].up.first() != report {
		return
	}
	s.between[1].up = s.between[1].up.withoutFirst()
	s.between[0].heard = true
	found(s)
}

// followerPassesUp: that the observer's client has sent a write does not count as hearing of it.
func followerPassesUp(_ *model, s state, found func(state)) {
	if s.between[1].up.first() != counted {
		return
	}
	s.between[1].up = s.between[1].up.withoutFirst()
	s.sendUp(0, counted)
	found(s)
}

func followerPassesDown(_ *model, s state, found func(state)) {
	if s.place != atObserver || s.between[0].down.first() != counted {
		return
	}
	s.between[0].down = s.between[0].down.withoutFirst()
	s.sendDown(1, counted)
	found(s)
}

// What the leader does.

func leaderGetsRequest(m *model, s state, found func(state)) {
	if s.stands {
		return
	}
	answers := m.leaderAnswers(&s)
	switch {
	case s.place == atLeader && s.toServer.first() == counted: // it is A's server
		s.leaderHears()
		s.toServer = s.toServer.withoutFirst()
		if answers {
			s.toClient = s.toClient.with(counted)
		}
		found(s)
	case s.between[0].up.first() == counted:
		if m.isHandshake(s.nextAtLeader()) {
			s.leaderHears()
		}
		s.between[0].up = s.between[0].up.withoutFirst()
		if answers {
			s.sendDown(0, counted)
		}
		found(s)
	}
}

// isHandshake: by a handshake the leader itself hears of A, and A's server does not; by a
// write it is the other way round.
func (m *model) isHandshake(number uint8) bool {
	kind := m.kindOf(number)
	return kind == handshake || kind == newSession
}

// leaderAnswers: a deposed leader finds no majority for a write; the rest it answers alone.
// The real one has closed A's connection if it has ended its session.
func (m *model) leaderAnswers(s *state) bool {
	if s.deposed {
		kind := m.kindOf(s.nextAtLeader())
		return kind != write && kind != newSession
	}
	return !s.ended
}

// kindOf is the kind of a request, if there is such a one.
func (m *model) kindOf(number uint8) kind {
	if int(number) < len(m.requests) {
		return m.requests[number].kind
	}
	return none
}

// leaderHears: what a deposed leader hears, the real one does not.
func (s *state) leaderHears() {
	if !s.deposed {
		s.silence = 0
	}
}

func leaderGetsOther(_ *model, s state, found func(state)) {
	otherComes := s.place == atLeader && s.toServer.first() == other
	if s.stands || !otherComes {
		return
	}
	s.leaderHears()
	s.toServer = s.toServer.withoutFirst()
	found(s)
}

func leaderGetsReport(_ *model, s state, found func(state)) {
	reportComes := s.place != atLeader && s.between[0].up.first() == report
	if s.stands || !reportComes {
		return
	}
	s.leaderHears()
	s.between[0].up = s.between[0].up.withoutFirst()
	found(s)
}

func leaderEnds(m *model, s state, found func(state)) {
	if s.ended || s.stands {
		return
	}
	hasToDecideFirst := m.leaderEndsInSteps && !s.condemned
	isPatient := s.silence < s.patience && !s.condemned
	if isPatient || hasToDecideFirst {
		return
	}
	s.ended = true
	found(s)
}

// leaderDecides: in ZooKeeper one thread takes all the sessions that are due from the list,
// and then ends one after another. What it hears of one of them in the meantime comes too late.
func leaderDecides(m *model, s state, found func(state)) {
	hasToDecide := m.leaderEndsInSteps && !s.condemned
	if s.stands || !hasToDecide {
		return
	}
	if s.silence >= s.patience {
		s.condemned = true
		found(s)
	}
}

// followerStands: what comes to it waits, and it sends nothing. It is A's server.
func followerStands(m *model, s state, found func(state)) {
	followerRuns := s.place == atFollower && !s.followerStands
	if m.followerStands && followerRuns {
		s.followerStands = true
		found(s)
	}
}

func followerGoesOn(_ *model, s state, found func(state)) {
	if s.followerStands {
		s.followerStands = false
		found(s)
	}
}

func leaderStands(m *model, s state, found func(state)) {
	mayStand := m.leaderStands || m.leaderStandsAndAsks
	if mayStand && !s.stands {
		s.stands = true
		found(s)
	}
}

func leaderGoesOn(m *model, s state, found func(state)) {
	if !s.stands {
		return
	}
	s.stands = false
	asksFirst := m.leaderStandsAndAsks && s.place != atLeader
	if asksFirst && m.questionIsDue(0, &s) {
		s.sendDown(0, question)
		s.between[0].sinceAsked = 0
	}
	found(s)
}

// What goes wrong between the servers.

func followerIsCutOff(m *model, s state, found func(state)) {
	followerHasLeader := s.place != atLeader && !s.cut
	if !m.followerIsCutOff || !followerHasLeader {
		return
	}
	s.cut = true
	s.between[0].up, s.between[0].down = 0, 0
	found(s)
}

// othersElect: the leader of A's server is deposed, and does not know. There may be any
// number of elections: one more makes no difference to a server of a deposed leader.
func othersElect(m *model, s state, found func(state)) {
	mayElect := m.elections && !s.ended
	if !mayElect || s.deposed {
		return
	}
	s.elected = true
	s.deposed = true
	s.silence = 0
	found(s)
}

// What time does.

func timePasses(m *model, s state, found func(state)) {
	if m.somethingIsDue(&s) {
		return
	}
	m.clientAges(&s)
	m.serversAge(&s)
	found(s)
}

func timePassesWithoutA(m *model, s state, found func(state)) {
	if m.clientStands && !m.somethingIsDue(&s) {
		m.serversAge(&s)
		found(s)
	}
}

// somethingIsDue tells whether anything has to happen before time passes.
func (m *model) somethingIsDue(s *state) bool {
	if m.pingIsDue(s) {
		return true
	}
	toServer := s.toServer != 0 && !s.followerStands
	underWay := toServer || s.toClient != 0
	if underWay && !m.clientLineStalls {
		return true
	}
	for number := range s.place {
		down := s.between[number].down != 0 && !s.followerStands
		betweenThem := down || s.between[number].up != 0
		if betweenThem && !m.serverLinesStall {
			return true
		}
		asksLater := number == 0 && s.stands
		if m.questionIsDue(number, s) && !asksLater {
			return true
		}
	}
	return false
}

func (m *model) clientAges(s *state) {
	if s.sent > 0 {
		s.sinceFirst++
		s.sinceLast++
	}
	if m.pingsEachThird {
		s.sincePing++
	}
}

func (m *model) serversAge(s *state) {
	s.silence = min(s.silence+1, m.clock.timeout)
	for number := range s.place {
		s.between[number].sinceAsked = min(s.between[number].sinceAsked+1, m.clock.longestGap)
	}
}
