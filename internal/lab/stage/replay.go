package stage

import (
	"cmp"
	"encoding/json"
	"maps"
	pathpkg "path"
	"slices"
	"time"

	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// A Replay is what was recorded, in a form of which any moment can be drawn. It consists of
// intervals, in microseconds from its start. A To of -1 means that the interval has not ended.
type Replay struct {
	ID      string         `json:"id"`
	Step    string         `json:"step"`
	Clients []ReplayClient `json:"clients"`
	Nodes   []Node         `json:"nodes"`
	Watches []Watch        `json:"watches"`
	Frames  []Flight       `json:"frames"`
	Phases  []Phase        `json:"phases"`
	Start   int            `json:"start,omitempty"` // of a time line: when it begins, as the recorder counts
	End     int            `json:"end"`
	Znode   bool           `json:"znode,omitempty"`  // the lock is a single znode, not a queue
	Slots   int            `json:"slots"`            // places around the directory
	Writes  []write        `json:"writes,omitempty"` // the writes to the store, in order
	Session int            `json:"session"`          // how long a session lasts if its client is silent; 0: not shown
}

// A ReplayClient is a client in a replay. States are the states that it was in, in order.
type ReplayClient struct {
	Name   lang.Text `json:"name"`
	Slot   int       `json:"slot"`
	States []State   `json:"states"`
	Beats  []int     `json:"beats"` // when the server heard from its session
	Over   int       `json:"over"`  // when its session ended; -1: it has not
}

// A State is how a client is shown from a moment on.
type State struct {
	At int    `json:"at"`
	Is string `json:"is"`
}

// A Node is a znode of the queue. Slot is -1 when it is the lock itself.
type Node struct {
	Name  string `json:"name"`
	Owner int    `json:"owner"` // a client; -1: none that is shown
	Slot  int    `json:"slot"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

// A Watch is a watch that the server keeps for a client. It is on a node, or, if Node is -1, on the
// directory's children.
type Watch struct {
	Client, Node, From, To int
}

// A Flight is a frame on its way.
type Flight struct {
	Client int
	Kind   wiretap.Kind
	Op     int // the operation, or the event of a notification
	Node   int // -1: the directory, -2: something else
	From   int
	To     int
	Bytes  int
	Names  int
	Err    int
	Flags  int // SetsWatch, GotLost
	At     int // when it is counted: From for a request, To for any other frame

	idle bool // it passed while frames did not matter
}

// Flags of a Flight.
const (
	SetsWatch = 1 << iota
	GotLost
)

// A Phase is a part of the story.
type Phase struct {
	At     int       `json:"at"`
	Over   int       `json:"over"`
	Title  lang.Text `json:"title"`
	Sum    lang.Text `json:"sum"`
	Action *Action   `json:"action,omitempty"` // the user's action, in place of a title

	window bool // it ends at Over, and not with the last thing that happens in it
}

// Watches and flights are rows of numbers in a page's data, because there are thousands of them.

// MarshalJSON encodes the watch as a row of numbers.
func (w Watch) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int{w.Client, w.Node, w.From, w.To})
}

// MarshalJSON encodes the flight as a row of numbers.
func (f Flight) MarshalJSON() ([]byte, error) {
	return json.Marshal(
		[]int{f.Client, int(f.Kind), f.Op, f.Node, f.From, f.To, f.Bytes, f.Names, f.Err, f.Flags, f.At},
	)
}

// Acted reports whether there is a story to replay.
func (r *Recorder) Acted() bool { return len(r.phases) > 0 }

// mostPhases is how many phases a story has at most.
const mostPhases = 30

// Replay returns the last phases of which all frames are kept as a replay.
func (r *Recorder) Replay(now int) Replay { return r.replay(now, r.told(now)) }

// Timeline returns the last phases as a replay, although not all of their frames may be kept: clients
// that poll push out the older ones. The states of the clients and the znodes are there anyway.
func (r *Recorder) Timeline(now int) Replay {
	s := r.replay(now, r.lastPhases())
	s.Start = now - s.End
	return s
}

func (r *Recorder) lastPhases() []Phase {
	return slices.Clone(r.phases[max(0, len(r.phases)-mostPhases):])
}

func (r *Recorder) replay(now int, phases []Phase) Replay {
	start := phases[0].At
	c := cut{start: start, now: now, place: map[int]int{-1: -1}}
	s := Replay{
		Znode:   r.Znode,
		End:     now - start,
		Slots:   2 * len(r.Clients),
		Nodes:   []Node{},
		Watches: []Watch{},
		Frames:  []Flight{},
		Session: int(r.Lasts / time.Microsecond),
	}
	for i, p := range phases {
		if p.Over == 0 {
			p.Over = now
		}
		p.At, p.Over = c.since(p.At), c.since(p.Over)
		if i > 0 {
			s.Phases[i-1].Over = min(s.Phases[i-1].Over, p.At)
		}
		s.Phases = append(s.Phases, p)
	}
	for _, client := range r.Clients {
		told := ReplayClient{Name: client.name(), Slot: 2 * client.Number, States: []State{}, Beats: []int{}, Over: -1}
		for _, at := range client.beats {
			if r.Lasts > 0 {
				told.Beats = append(told.Beats, at-start)
			}
		}
		if client.Over > 0 {
			told.Over = client.Over - start
		}
		for _, m := range client.shown {
			told.States = append(told.States, State{At: c.since(m.At), Is: m.Is})
		}
		s.Clients = append(s.Clients, told)
	}
	for _, w := range slices.Backward(r.Store.Log) {
		if w.At >= start {
			w.At -= start
			s.Writes = append(s.Writes, w)
		}
	}
	c.nodes(r, &s)
	c.watches(r, &s)
	c.frames(r, &s)
	s.trim()
	return s
}

// told returns the last phases of which all frames are kept. If there are none, it returns one
// phase that begins with the oldest frame.
func (r *Recorder) told(now int) []Phase {
	phases := r.lastPhases()
	if r.frames.next == len(r.frames.kept) {
		return phases
	}
	oldest := now
	for _, f := range r.frames.kept {
		oldest = min(oldest, f.From)
	}
	phases = slices.DeleteFunc(phases, func(p Phase) bool { return p.At < oldest })
	if len(phases) == 0 {
		phases = []Phase{{At: oldest, Title: lang.Text{EN: "What is still recorded", ZH: "还保留着的记录"}}}
	}
	return phases
}

// A cut is the part of a recording that a story shows. It begins at start.
type cut struct {
	start, now int
	place      map[int]int // the index of each znode in the story
}

// since converts a moment of the recording to a moment of the story. A negative one stays as it is.
func (c cut) since(at int) int {
	if at < 0 {
		return at
	}
	return max(0, at-c.start)
}

// lasts reports whether something is not over yet at the start. to is the moment when it ends, or
// negative if it has not ended.
func (c cut) lasts(to int) bool { return to < 0 || to > c.start }

func (c cut) nodes(r *Recorder, s *Replay) {
	for _, i := range slices.Sorted(maps.Keys(r.nodes.kept)) {
		if n := r.nodes.kept[i].Node; n.Owner >= 0 && c.lasts(n.To) {
			c.place[i] = len(s.Nodes)
			n.From, n.To = c.since(n.From), c.since(n.To)
			s.Nodes = append(s.Nodes, n)
		}
	}
}

func (c cut) watches(r *Recorder, s *Replay) {
	for _, i := range slices.Sorted(maps.Keys(r.watches.kept)) {
		w := *r.watches.kept[i]
		if node, ok := c.place[w.Node]; ok && c.lasts(w.To) {
			s.Watches = append(s.Watches, Watch{Client: w.Client, Node: node, From: c.since(w.From), To: c.since(w.To)})
		}
	}
}

// leastFlight is how long a frame is shown on its way at least, in microseconds.
const leastFlight = 300

func (c cut) frames(r *Recorder, s *Replay) {
	for _, kept := range r.frames.kept {
		f := *kept
		if f.From < c.start {
			continue
		}
		if f.To < 0 {
			f.To, f.At = c.now, c.now
		}
		node, ok := c.place[f.Node]
		if !ok {
			node = -2
		}
		f.Node, f.From, f.To, f.At = node, c.since(f.From), c.since(f.To), c.since(f.At)
		f.To = max(f.To, f.From+leastFlight)
		s.Frames = append(s.Frames, f)
	}
	slices.SortStableFunc(s.Frames, func(a, b Flight) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.From, b.From))
	})
}

// trim ends each phase, unless it is a window, with the last thing that happens in it.
func (s *Replay) trim() {
	var happens []int
	for _, f := range s.Frames {
		happens = append(happens, f.From, f.To)
	}
	for _, n := range s.Nodes {
		happens = append(happens, n.From, n.To)
	}
	for _, c := range s.Clients {
		happens = append(happens, c.Over)
		for _, m := range c.States {
			happens = append(happens, m.At)
		}
	}
	for _, w := range s.Writes {
		happens = append(happens, w.At)
	}
	for i := range s.Phases {
		p := &s.Phases[i]
		if p.window {
			continue
		}
		last := p.At
		for _, at := range happens {
			if at <= p.Over {
				last = max(last, at)
			}
		}
		p.Over = last
	}
}

// Seat gives each znode a place around the directory, in the order of the queue. It gives each
// client the place of the client's first znode. Without Seat, each client has two places of its
// own.
func (s *Replay) Seat() {
	order := make([]int, len(s.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(sequence(s.Nodes[i].Name), sequence(s.Nodes[j].Name))
	})
	s.Slots = 0
	seated := make([]bool, len(s.Clients))
	for _, i := range order {
		n := &s.Nodes[i]
		if n.Slot < 0 {
			continue // the lock itself
		}
		n.Slot = s.Slots
		if !seated[n.Owner] {
			s.Clients[n.Owner].Slot, seated[n.Owner] = s.Slots, true
		}
		s.Slots++
	}
	for i := range s.Clients {
		if !seated[i] {
			s.Clients[i].Slot = s.Slots
			s.Slots++
		}
	}
}

// name returns the last part of a path, but calls the lock itself lock, and the directory of its
// single znode /.
func (r *Recorder) name(path string) string {
	switch {
	case path == r.Path, path == r.Dir:
		return "lock"
	case r.isDirectory(path):
		return "/"
	}
	return pathpkg.Base(path)
}
