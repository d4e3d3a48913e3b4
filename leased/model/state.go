package model

// state is all that there is at one moment: A, the servers, and the lines between them. It
// is small, and can be compared, for there are millions.
type state struct {
	// A, the client. Times are in units.
	sent       uint8 // so many of the rule's requests A has sent
	answered   uint8 // to so many A has the answer
	sinceFirst uint8 // since A sent the first of them
	sinceLast  uint8 // since A had the last answer; if the rule says so, since A sent the last request
	sincePing  uint8 // since A's client sent its last ping

	// The lines between A and its server.
	toServer, toClient line

	// place is where A's server stands.
	place place

	// The servers between A and the leader: the follower is the first. If A's server is an
	// observer behind the follower, that is the second.
	between [2]server

	// The leader, which is the one that a majority follows.
	silence   uint8 // since it heard of A
	patience  uint8 // after so long a silence it ends A's session
	condemned bool  // it is about to end it, whatever it hears
	ended     bool  // it has ended A's session: B may get the lock
	stands    bool  // its process is paused

	followerStands bool // the follower's process is paused

	// What has gone wrong between the servers.
	cut     bool // nothing passes between the follower and its leader any more
	elected bool // there was an election: there is another leader, which was deposed
	deposed bool // that is the one which A's server follows
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

// Which of the rule's requests is the next to come to A's server, to the follower, to the
// leader; and to which one the next answer is that comes to a server, or to A. They come in
// their order.
func (s *state) nextAtServer() uint8       { return s.sent - s.toServer.count() }
func (s *state) nextAtFollower() uint8     { return s.nextAtServer() - s.between[1].up.count() }
func (s *state) nextAtLeader() uint8       { return s.nextAtFollower() - s.between[0].up.count() }
func (s *state) nextToClient() uint8       { return s.answered }
func (s *state) nextDown() uint8           { return s.answered + s.toClient.count() }
func (s *state) nextDownAtFollower() uint8 { return s.nextDown() + s.between[1].down.count() }
