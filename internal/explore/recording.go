package explore

import (
	"sync"

	"zklock/internal/actor"
)

// A Recording is an interleaving as a list of events, for a page that draws it.
type Recording struct {
	Path    string // of the lock
	Znode   bool   // Path is the lock's one znode, and not a directory
	Clients []string
	Seen    []Seen
	Run     Run // the run that was recorded
}

// A Seen is one event of an interleaving. Exactly one of Frame, State, Choice and Znodes is set.
type Seen struct {
	Client int // of the frame or the state

	Frame  *actor.Frame     // that passes the gate, or is lost
	State  string           // of the client from now on
	Choice string           // the label of the choice that was made
	Znodes map[string]int64 // sessions of the znodes at the server, by path; nil: this event did not look
}

// record builds a Recording. Its methods do nothing if it is nil: only an interleaving that a page
// draws is recorded.
type record struct {
	mu   sync.Mutex
	made Recording
	over bool
}

// begins starts the record of an interleaving.
func (r *record) begins(path string, isZnode bool, clients int) {
	if r == nil {
		return
	}
	r.made = Recording{Path: path, Znode: isZnode}
	for i := range clients {
		r.made.Clients = append(r.made.Clients, nameOf(i))
	}
}

// nameOf returns the name of a client: A, B and so on.
func nameOf(client int) string { return string(rune('A' + client)) }

// notes appends an event, unless the record has ended.
func (r *record) notes(what Seen) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.made.Seen = append(r.made.Seen, what)
	}
}

// passes notes a frame of a client that passes the gate, or is lost.
func (r *record) passes(client int, f actor.Frame) { r.notes(Seen{Client: client, Frame: &f}) }

// becomes notes the state of a client from now on.
func (r *record) becomes(client int, state string) { r.notes(Seen{Client: client, State: state}) }

// chooses notes a choice.
func (r *record) chooses(choice string) { r.notes(Seen{Choice: choice}) }

// looks notes which znodes of the lock exist, after a session has ended.
func (p *player) looks() error {
	if p.record == nil {
		return nil
	}
	znodes, err := actor.Znodes(p.eye, p.lockPath(), p.Znode, func(string) bool { return false })
	if err != nil {
		return err
	}
	p.record.notes(Seen{Znodes: znodes})
	return nil
}

// ends stops the record before the clients leave.
func (r *record) ends() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}
