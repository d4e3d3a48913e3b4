package model

// state is the model at one moment: A, the servers, and the lines between them. It is small and comparable,
// because there are millions of states.
type state struct {
	// A, the client. Times are in units.
	sent       uint8 // how many of the rule's requests A has sent
	answered   uint8 // how many of them are answered
	sinceFirst uint8 // since A sent the first of them
	sinceLast  uint8 // since A got the last answer or, if the rule says so, sent the last request
	sincePing  uint8 // since A's client sent its last ping

	// The lines between A and its server.
	toServer, toClient line

	// place says which server A's server is.
	place place

	// The servers between A and the leader. The first one is the follower. If A's server is an observer
	// behind the follower, it is the second one.
	between [2]server

	// The leader, which is the one that a majority follows.
	silence   uint8 // since it heard of A
	patience  uint8 // the leader ends A's session when it has not heard of A for so long
	condemned bool  // the leader is about to end the session, whatever it hears
	ended     bool  // the leader has ended A's session: B may get the lock
	stands    bool  // its process is paused

	followerStands bool // the follower's process is paused

	// Faults between the servers.
	cut     bool // no message passes between the follower and its leader any more
	elected bool // there was an election: there is another leader, which was deposed
	deposed bool // A's server follows the deposed leader
}

// server is one server between A and the leader, with the lines to the server above it.
type server struct {
	up, down   line
	heard      bool  // it has heard of A since its last report
	sinceAsked uint8 // since the server above asked it
}

// place is how many servers there are between A and the leader.
type place uint8

const (
	atLeader   place = 0
	atFollower place = 1
	atObserver place = 2 // behind a follower, which has an observerMasterPort
)

// nearest is A's server, if it is not the leader.
func (s *state) nearest() *server { return &s.between[s.place-1] }

// The number of the rule's request that arrives next at A's server, at the follower and at the leader, and of
// the answer that arrives next at A and at each server on the way. They arrive in order.
func (s *state) nextAtServer() uint8       { return s.sent - s.toServer.count() }
func (s *state) nextAtFollower() uint8     { return s.nextAtServer() - s.between[1].up.count() }
func (s *state) nextAtLeader() uint8       { return s.nextAtFollower() - s.between[0].up.count() }
func (s *state) nextToClient() uint8       { return s.answered }
func (s *state) nextDown() uint8           { return s.answered + s.toClient.count() }
func (s *state) nextDownAtFollower() uint8 { return s.nextDown() + s.between[1].down.count() }
