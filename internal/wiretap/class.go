package wiretap

import "strings"

// A Class is whose doing a frame is.
type Class int

// The classes of frames.
const (
	OfLock    Class = iota
	OfSession       // the client's: its handshake, pings and end, and the watches that it sets again
	OfProof         // leased's: a write that changes nothing, to prove that the session lives
	OfTest          // the read by which a test knows that all has come that was sent before
)

// Class tells whose doing a frame is. That of a reply is its request's.
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

// IsShown tells whether a page shows a frame: what a lock does, and how its session begins and
// ends, but not what keeps the session alive, or what a test asks.
func (f Frame) IsShown() bool {
	class := f.Class()
	return class == OfLock || class == OfSession && f.Op != Ping
}

// passesBy tells whether a frame does not wait at a gate. A test's answer does: it has to come
// behind what was sent before it.
func (f Frame) passesBy() bool {
	isTestsAnswer := f.Class() == OfTest && f.Kind == Reply
	return f.Class() != OfLock && !isTestsAnswer
}

// setsWatch tells whether a reply tells of a watch that is set: exists sets one also where
// no znode is.
func (f Frame) setsWatch() bool {
	isOfNoZnode := f.Op == Exists && f.Err == NoNode
	isAccepted := f.Err == OK || isOfNoZnode
	return f.Watch && isAccepted
}
