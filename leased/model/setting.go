package model

// Setting says what the servers and A are like, and what can happen. An event that it does not name cannot
// happen.
type Setting struct {
	name   string
	clock  clock
	places []place // the places that A's server may have

	// If a line stalls, a message can be under way for any time. Otherwise it arrives at once.
	clientLineStalls bool // between A and its server
	serverLinesStall bool // between the servers
	followerIsCutOff bool // no message passes any more between the follower and its leader

	sendsOthers    bool // A also sends other requests, at any time
	pingsEachThird bool // A's client sends a ping each third of the timeout, as it should
	reconnects     bool // A's connection breaks, and A reconnects to any server
	elections      bool // the others elect a new leader, and the old one does not know

	followerStands      bool // the follower's process is paused for a time
	leaderStands        bool // the leader's process is paused for a time
	leaderStandsAndAsks bool // the same, and it asks first when it resumes
	clientStands        bool // A's process is paused for a time, and so does its clock
	followerForgets     bool // the follower forgets that it has heard of A
	leaderEndsInSteps   bool // the leader decides to end A's session, and ends it later
	grantsHalf          bool // another server grants half the timeout
}

// clock says how long each thing takes, in units.
type clock struct {
	unit    string
	tick    uint8
	timeout uint8 // the leader ends a session that it has not heard of for so long

	// The leader waits for half a tick before it asks again, and then does its work. So its questions are at
	// least half a tick apart, and at most this.
	longestGap uint8
}

var (
	halves   = clock{unit: "½ tick", tick: 2, timeout: 10, longestGap: 1}
	quarters = clock{unit: "¼ tick", tick: 4, timeout: 20, longestGap: 3}
	eighths  = clock{unit: "⅛ tick", tick: 8, timeout: 40, longestGap: 7}
)

// model is a rule in a setting.
type model struct {
	Rule
	Setting
}

// units returns a part of the timeout in units, rounded up.
func (c clock) units(part percent) uint8 {
	return uint8((int(part)*int(c.timeout) + 99) / 100)
}

// aThird returns a third of the timeout, the pause between two pings, rounded up.
func (c clock) aThird() uint8 { return (c.timeout + 2) / 3 }

// leaseInUnits returns how long A relies on its session, from the sending of the first request: in units,
// rounded down.
func (m *model) leaseInUnits() uint8 { return uint8(int(m.lease) * int(m.clock.timeout) / 100) }

// relies reports whether A has a lease.
func (m *model) relies(s *state) bool {
	hasAllAnswers := int(s.answered) == len(m.requests)
	return hasAllAnswers && s.sinceFirst < m.leaseInUnits()
}

// overlap returns how long A still relies on its session although B may already get the lock.
func (m *model) overlap(s *state) uint8 {
	if s.ended && m.relies(s) {
		return m.leaseInUnits() - s.sinceFirst
	}
	return 0
}

// isOver reports whether the lease is over, or would be over by the time A has it. No bad state can follow.
func (m *model) isOver(s *state) bool { return s.sent > 0 && s.sinceFirst >= m.leaseInUnits() }

// normal drops details that make no difference any more.
func (m *model) normal(s state) state {
	if s.sent == 0 || int(s.sent) == len(m.requests) {
		s.sinceLast = 0 // the rule has no next request that would have to wait
	} else {
		s.sinceLast = min(s.sinceLast, m.clock.units(m.requests[s.sent].space))
	}
	if s.ended {
		s.silence = 0
	}
	if m.relies(&s) { // messages still on their way to the leader can only make it wait longer
		s.toServer, s.toClient = 0, 0
		for i := range s.between {
			s.between[i].up, s.between[i].down, s.between[i].heard = 0, 0, false
		}
	}
	return s
}
