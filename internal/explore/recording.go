package explore

import (
	"sync"

	"zklock/internal/actor"
)

// A Recording is an order, one thing after the other, for a page that draws it.
type Recording struct {
	Path    string // of the lock
	Znode   bool   // it is that of the lock's one znode, and not of a directory
	Clients []string
	Seen    []Seen
	Run     Run // as it was played for the recording
}

// A Seen is one thing that has happened in an order. It is one of these.
type Seen struct {
	Client int // whose frame or state it is

	Frame  *actor.Frame     // it goes on, or is lost
	State  string           // of the client from now on
	Choice string           // what comes next was chosen
	Znodes map[string]int64 // what there is at the server: paths, with their sessions; nil: nobody has looked
}

// record makes a Recording. Only an order that is to be drawn is recorded: its methods do
// nothing for nil.
type record struct {
	mu   sync.Mutex
	made Recording
	over bool
}

// begins begins the record of an order.
func (r *record) begins(path string, isZnode bool, clients int) {
	if r == nil {
		return
	}
	r.made = Recording{Path: path, Znode: isZnode}
	for i := range clients {
		r.made.Clients = append(r.made.Clients, nameOf(i))
	}
}

// nameOf is what a client is called: A, B and so on.
func nameOf(client int) string { return string(rune('A' + client)) }

// notes adds to the record.
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

// passes notes a frame of a client, which now goes on, or is lost.
func (r *record) passes(client int, f actor.Frame) { r.notes(Seen{Client: client, Frame: &f}) }

// becomes notes the state of a client from now on.
func (r *record) becomes(client int, state string) { r.notes(Seen{Client: client, State: state}) }

// chooses notes a choice.
func (r *record) chooses(choice string) { r.notes(Seen{Choice: choice}) }

// looks notes what there is at the server, after a session has ended.
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

// ends ends the record: how the clients leave is no part of it.
func (r *record) ends() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}
