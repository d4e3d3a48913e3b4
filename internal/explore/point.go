package explore

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"zklock/internal/actor"
	"zklock/internal/wiretap"
)

// A Point is what is true between two choices of an interleaving, when all clients are at rest.
type Point struct {
	Clients []Standing
	Znodes  []Znode  // of the lock, at the server, sorted by their numbers
	Came    []Event  // what has happened since the last choice, one client after the other
	Asleep  []string // the labels of the choices that are left out here, because other interleavings have them
}

// A Standing is how a client stands at a point.
type Standing struct {
	State   string
	Op, On  string // its request at the gate, and the path; "": there is none
	Sets    bool   // the request sets a watch
	GaveUp  bool
	Expired bool
	Watches []string // the paths that the server watches for it
}

// A Znode is a znode of the lock.
type Znode struct {
	Path  string
	Owner int // the client whose session has created it; -1: no client's session
}

// An Event is a frame of a client that has passed or was lost, or a new state of the client.
type Event struct {
	Client int
	State  string // "": it is a frame
	Kind   wiretap.Kind
	Op     string // of a notification: created, deleted, changed or children
	On     string
	Err    int32
	Names  int // in the reply to a list
	Lost   bool
}

// record has the events of an interleaving. Its methods do nothing if it is nil: only a page needs
// them.
type record struct {
	mu   sync.Mutex
	came []Event // since the last point
}

func (r *record) notes(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.came = append(r.came, e)
}

// becomes notes the state of a client from now on.
func (r *record) becomes(client int, state string) { r.notes(Event{Client: client, State: state}) }

// passes notes a frame of the client that passes the gate, or is lost.
func (c *client) passes(f wiretap.Frame) {
	if f.Class() != wiretap.OfLock {
		return
	}
	op := f.Op.String()
	if f.Kind == wiretap.Notification {
		op = changes[f.Event]
	}
	c.record.notes(Event{
		Client: c.number, Kind: f.Kind, Op: op, On: c.story.short(f.Path), Err: f.Err, Names: f.Names, Lost: f.Lost,
	})
}

var changes = map[int32]string{
	wiretap.NodeCreated: "created", wiretap.NodeDeleted: "deleted",
	wiretap.NodeDataChanged: "changed", wiretap.ChildrenChanged: "children",
}

// nameOf returns the name of a client: A, B and so on.
func nameOf(client int) string { return string(rune('A' + client)) }

// look returns what is true now.
func (p *player) look() (at Point, err error) {
	for i, c := range p.clients {
		p.owners[c.session.Conn().SessionID()] = i
		c.mu.Lock()
		s := Standing{State: c.State(), GaveUp: c.gaveUp, Expired: c.expired}
		if c.pending != nil {
			s.Op, s.On, s.Sets = c.pending.Op.String(), p.story.short(c.pending.Path), c.pending.Watch
		}
		c.mu.Unlock()
		for _, path := range c.tap.Watched() {
			s.Watches = append(s.Watches, p.story.short(path))
		}
		at.Clients = append(at.Clients, s)
	}
	sessions, err := actor.Znodes(p.eye, p.lockPath(), p.Znode, func(string) bool { return false })
	if err != nil {
		return at, fmt.Errorf("look at the znodes: %w", err)
	}
	for path, session := range sessions {
		owner, known := p.owners[session]
		if !known {
			owner = -1
		}
		at.Znodes = append(at.Znodes, Znode{p.story.short(path), owner})
	}
	byNumber := func(z Znode) string { return z.Path[max(0, len(z.Path)-numberLength):] + z.Path }
	slices.SortFunc(at.Znodes, func(a, b Znode) int { return cmp.Compare(byNumber(a), byNumber(b)) })
	for _, c := range p.asleep {
		at.Asleep = append(at.Asleep, c.label)
	}
	p.record.mu.Lock()
	defer p.record.mu.Unlock()
	at.Came, p.record.came = p.record.came, nil
	slices.SortStableFunc(at.Came, func(a, b Event) int { return cmp.Compare(a.Client, b.Client) })
	return at, nil
}

// numberLength is how many digits the server puts at the end of a sequential znode's name.
const numberLength = 10
