package model

// What A's server does, if it is not the leader.

// otherServerRuns reports whether A's server is not the leader, and is not paused.
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

// serverForgets models a race in ZooKeeper: one thread takes the list of the sessions that the follower has
// heard of, while another one is about to write into it.
func serverForgets(m *model, s state, found func(state)) {
	mayForget := m.followerForgets && s.place != atLeader
	if !mayForget || s.toServer.first() != counted {
		return
	}
	m.serverPassesOn(&s)
	found(s)
}

// serverPassesOn passes a request on. The server answers a ping or a read alone.
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

// What happens between the servers. Number 0 is the follower, number 1 the observer.

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

// answerQuestion sends a report. A report without A has no effect, and is left out.
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

// followerPassesUp passes a write of the observer's client on. The follower does not count that as hearing of
// the client.
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

// isHandshake reports whether the leader itself hears of A by a request, and A's server does not. With a
// write it is the opposite.
func (m *model) isHandshake(number uint8) bool {
	kind := m.kindOf(number)
	return kind == handshake || kind == newSession
}

// leaderAnswers reports whether the leader answers. A deposed leader finds no majority for a write, and
// answers all other requests alone. The real leader closes A's connection when it has ended A's session.
func (m *model) leaderAnswers(s *state) bool {
	if s.deposed {
		kind := m.kindOf(s.nextAtLeader())
		return kind != write && kind != newSession
	}
	return !s.ended
}

// kindOf returns the kind of a request, or none if there is no such request.
func (m *model) kindOf(number uint8) kind {
	if int(number) < len(m.requests) {
		return m.requests[number].kind
	}
	return none
}

// leaderHears records that the leader has heard of A. The real leader does not hear what a deposed one hears.
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

// leaderDecides models another race in ZooKeeper: one thread takes all sessions that are due from the list,
// and then ends them one after another. If the leader hears of one of them in between, that is too late.
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

// followerStands pauses A's server. Messages to it wait, and it sends none.
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

// Faults between the servers.

func followerIsCutOff(m *model, s state, found func(state)) {
	followerHasLeader := s.place != atLeader && !s.cut
	if !m.followerIsCutOff || !followerHasLeader {
		return
	}
	s.cut = true
	s.between[0].up, s.between[0].down = 0, 0
	found(s)
}

// othersElect deposes the leader of A's server, which does not know it. There may be any number of elections:
// one more makes no difference to a server of a deposed leader.
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

// The passing of time.

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

// somethingIsDue reports whether an action has to happen before time passes.
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
