package wiretap

import "strings"

// A Class says what a frame belongs to.
type Class int

// The classes of frames.
const (
	OfLock    Class = iota
	OfSession       // the client's own: its handshakes, pings and close, and the watches that it sets again
	OfProof         // leased's: a write that changes nothing, to prove that the session lives
	OfTest          // the read by which a test knows that everything sent before it has arrived
)

// Class returns the class of a frame. A reply has the class of its request.
func (f Frame) Class() Class {
	switch {
	case f.Op == Ping, f.Op == Connect, f.Op == Close, f.Op == SetWatches:
		return OfSession
	case strings.HasPrefix(f.Path, "/zklock-nobody-"):
		return OfProof
	case f.Op == Exists && f.Path == "/":
		return OfTest
	}
	return OfLock
}

// IsShown reports whether a page shows a frame: what a lock does, and how its session begins and
// ends, but not what keeps the session alive, or what a test asks.
func (f Frame) IsShown() bool {
	class := f.Class()
	return class == OfLock || class == OfSession && f.Op != Ping
}

// passesBy reports whether a frame does not wait at a gate. The answer to a test's read waits,
// because it must arrive after what was sent before it.
func (f Frame) passesBy() bool {
	isTestsAnswer := f.Class() == OfTest && f.Kind == Reply
	return f.Class() != OfLock && !isTestsAnswer
}

// setsWatch reports whether a reply shows that a watch is
// set: exists sets one also if the znode does not exist.
func (f Frame) setsWatch() bool {
	isOfNoZnode := f.Op == Exists && f.Err == NoNode
	isAccepted := f.Err == OK || isOfNoZnode
	return f.Watch && isAccepted
}
