package page

import (
	"cmp"
	"path"
	"slices"
	"time"

	"zklock/internal/check/lockcheck"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// A Story is a recorded run, made ready to be shown at any moment of it: all is
// told as intervals, in microseconds from its start. A To of -1 has not come.
type Story struct {
	ID      string   `json:"id"`
	Step    string   `json:"step"`
	Clients []Client `json:"clients"`
	Nodes   []Node   `json:"nodes"`
	Watches []Watch  `json:"watches"`
	Frames  []Flight `json:"frames"`
	Phases  []Phase  `json:"phases"`
	End     int      `json:"end"`
	Znode   bool     `json:"znode,omitempty"` // the lock is one znode, and no queue, though its step's key does not say so
	Slots   int      `json:"slots"`           // places around the directory

	start time.Time
	lines []lockcheck.Line // the clients' frames, as they stood on the wire
}

// A Client of the story. Moods are what it believes of itself, in order.
type Client struct {
	Name  words.Text `json:"name"`
	Slot  int        `json:"slot"`
	Moods []Mood     `json:"moods"`
}

// Mood is what a client believes of itself from a moment on.
type Mood struct {
	At int    `json:"at"`
	Is string `json:"is"`
}

// A Node is a znode of the queue. Slot is -1 when it is the lock itself.
type Node struct {
	Name  string `json:"name"`
	Owner int    `json:"owner"` // a client
	Slot  int    `json:"slot"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

// A Watch is kept by the server, for a client, on a node or, if that is -1, on
// the directory's children.
type Watch struct {
	Client, Node, From, To int
}

// A Flight is a frame on its way.
type Flight struct {
	Client int
	Kind   wiretap.Kind
	Op     int // of a notification, its event
	Node   int // -1: the directory, -2: something else
	From   int
	To     int
	Bytes  int
	Names  int
	Err    int
	Flags  int // 1: sets a watch, 2: got lost
	At     int // when it passed the tap: one of From and To
}

// Flags of a Flight.
const (
	SetsWatch = 1 << iota
	GotLost
)

// A Phase is a part of the story.
type Phase struct {
	At    int        `json:"at"`
	Over  int        `json:"over"`
	Title words.Text `json:"title"`
	Sum   words.Text `json:"sum"`

	window bool // it ends with the clock, and else with the last thing that happens in it
}

// story works out what there is to see from what was recorded in the phases. Who
// has left is not shown, though others may have been told of it.
func (r *recorder) story() Story {
	d := &deduction{dir: r.dir, start: r.start}
	all := slices.Concat(r.members, r.left)
	for _, m := range all {
		d.lines = append(d.lines, lockcheck.Line{Client: m.Name, Frames: m.Tap.Frames(), Moods: m.Moods()})
	}
	for _, e := range r.ends {
		d.changes = append(
			d.changes,
			&change{e.zxid, slices.Index(all, e.member), wiretap.Close, "", true, d.us(e.after), d.us(e.seen), 0},
		)
	}
	s := d.deduce(len(r.members), time.Now())
	s.Phases = slices.Clone(r.phases)
	s.trim()
	s.Frames = slices.DeleteFunc(s.Frames, func(f Flight) bool {
		return !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.At <= f.At && f.At <= p.Over })
	})
	return s
}

// trim ends each phase with the last thing that happens in it.
func (s *Story) trim() {
	var happens []int
	for _, f := range s.Frames {
		happens = append(happens, f.From, f.To)
	}
	for _, n := range s.Nodes {
		happens = append(happens, n.From, n.To)
	}
	for _, c := range s.Clients {
		for _, m := range c.Moods {
			happens = append(happens, m.At)
		}
	}
	for i, p := range s.Phases {
		if !p.window {
			s.Phases[i].Over = slices.Max(
				append(slices.DeleteFunc(slices.Clone(happens), func(at int) bool { return at > p.Over }), p.At),
			)
		}
	}
}

// A deduction finds out what happened at the server from what passed at the clients.
// The taps stand there, so the moment is not seen in which the server carries a request
// out; but it lies between the request and its reply, and the zxid of the reply says
// between which changes at the server.
type deduction struct {
	dir     string
	start   time.Time        // of the story
	lines   []lockcheck.Line // of each client, those that are shown first
	changes []*change        // in the order of their zxid
	causes  map[*wiretap.Frame]*change
	node    map[string]int // by path
	story   Story
}

// change is a transaction that made or deleted a znode, or, if it is a Close, ended a
// client's session and deleted what belonged to it.
type change struct {
	zxid       int64
	client     int
	op         wiretap.Op
	path       string
	children   bool // the children of the lock's directory have changed
	lo, hi, at int  // it happened between lo and hi; at is taken to be its moment
}

// us is a moment, in microseconds from the story's start. What was before the start is
// told as of the start.
func (d *deduction) us(t time.Time) int { return int(t.Sub(d.start).Microseconds()) }

// target is the index of the path's znode, -1 for the directory.
func (d *deduction) target(path string) int {
	if i, ok := d.node[path]; ok {
		return i
	}
	if path == d.dir {
		return -1
	}
	return -2
}

// deduce tells all that has passed at so many of the clients until the end, but for the
// phases.
func (d *deduction) deduce(shown int, end time.Time) Story {
	s := &d.story
	*s = Story{
		Nodes:   []Node{},
		Watches: []Watch{},
		Frames:  []Flight{},
		End:     d.us(end),
		start:   d.start,
		lines:   d.lines[:shown],
	}
	for _, line := range s.lines {
		c := Client{Name: words.Whole(line.Client), Slot: -1, Moods: []Mood{}}
		for _, m := range line.Moods {
			c.Moods = append(c.Moods, Mood{max(0, d.us(m.At)), m.Is})
		}
		s.Clients = append(s.Clients, c)
	}
	d.findChanges()
	d.timeChanges()
	d.followNodes()
	for client, line := range s.lines {
		d.follow(client, line.Frames)
	}
	slices.SortStableFunc(s.Frames, func(a, b Flight) int { return cmp.Compare(a.At, b.At) })
	d.seat()
	return *s
}

// seat gives each znode a place around the directory, in the queue's order, and
// each client the place of its first znode.
func (d *deduction) seat() {
	s := &d.story
	for i, n := range s.Nodes {
		if n.Name == path.Base(d.dir) {
			continue // the lock itself
		}
		s.Nodes[i].Slot = s.Slots
		if s.Clients[n.Owner].Slot < 0 {
			s.Clients[n.Owner].Slot = s.Slots
		}
		s.Slots++
	}
	for i := range s.Clients {
		if s.Clients[i].Slot < 0 {
			s.Clients[i].Slot = s.Slots
			s.Slots++
		}
	}
}

// aside tells whether a frame is no part of the story.
func aside(f wiretap.Frame) bool {
	return f.Op == wiretap.Ping || f.Op == wiretap.Exists && f.Path == "/"
}

func (d *deduction) findChanges() {
	for client, line := range d.lines {
		for _, f := range line.Frames {
			if f.Kind == wiretap.Reply && f.Err == wiretap.OK && (f.Op == wiretap.Create || f.Op == wiretap.Delete) {
				d.changes = append(
					d.changes,
					&change{f.Zxid, client, f.Op, f.Path, path.Dir(f.Path) == d.dir, d.us(f.Asked), d.us(f.At), 0},
				)
			}
		}
	}
	slices.SortStableFunc(d.changes, func(a, b *change) int { return cmp.Compare(a.zxid, b.zxid) })
}

// timeChanges finds a moment for each change that agrees with all that was
// seen: after its request, before its reply and all that was told of it, and in
// the order of the zxids.
func (d *deduction) timeChanges() {
	d.causes = map[*wiretap.Frame]*change{}
	for _, line := range d.lines {
		set := map[string]int64{} // by path: the zxid of the read that has set the watch
		for i := range line.Frames {
			f := &line.Frames[i]
			switch since, ok := set[f.Path]; {
			case f.Kind == wiretap.Reply && f.Watch && f.Err == wiretap.OK:
				set[f.Path] = f.Zxid
			case f.Kind == wiretap.Notification && ok:
				if c := d.cause(f, since); c != nil {
					d.causes[f] = c
					c.hi = min(c.hi, d.us(f.At))
				}
			}
		}
	}
	for i := len(d.changes) - 2; i >= 0; i-- {
		d.changes[i].hi = min(d.changes[i].hi, d.changes[i+1].hi)
	}
	for i, c := range d.changes {
		if i > 0 {
			c.lo = max(c.lo, d.changes[i-1].at)
		}
		c.at = between(c.lo, c.hi)
	}
}

// between is a moment in the middle; an end of a session is seen late.
func between(lo, hi int) int {
	if hi-lo > 2000 {
		return hi - 1000
	}
	return lo + (hi-lo)/2
}

// cause is the change that a notification tells of: the first one since the read that
// set the watch.
func (d *deduction) cause(f *wiretap.Frame, since int64) *change {
	i := slices.IndexFunc(d.changes, func(c *change) bool {
		return c.zxid > since && (f.Event == wiretap.ChildrenChanged && c.children ||
			f.Event == wiretap.NodeDeleted && (c.op == wiretap.Delete && c.path == f.Path || c.op == wiretap.Close && d.made(f.Path, c.client)))
	})
	if i < 0 {
		return nil
	}
	return d.changes[i]
}

// made tells whether a client has made a znode.
func (d *deduction) made(path string, client int) bool {
	return slices.ContainsFunc(
		d.changes,
		func(c *change) bool { return c.client == client && c.op == wiretap.Create && c.path == path },
	)
}

// servedAt is when the server carried out what a reply answers: for a change, the
// moment of the change; else between the changes that the reply's zxid stands between.
func (d *deduction) servedAt(reply *wiretap.Frame) int {
	asked, answered := d.us(reply.Asked), d.us(reply.At)
	if reply.Asked.IsZero() {
		return answered - onItsWay
	}
	lo, hi := asked, answered
	i, found := slices.BinarySearchFunc(
		d.changes,
		reply.Zxid,
		func(c *change, zxid int64) int { return cmp.Compare(c.zxid, zxid) },
	)
	if found {
		if c := d.changes[i]; reply.Err == wiretap.OK && c.op == reply.Op && c.path == reply.Path {
			return c.at
		}
		i++
	}
	if i > 0 {
		lo = max(lo, d.changes[i-1].at)
	}
	if i < len(d.changes) {
		hi = min(hi, d.changes[i].at)
	}
	if hi < lo { // another client has learned of the change before
		lo, hi = asked, answered
	}
	return lo + (hi-lo)/2
}

// onItsWay is how long a frame is taken to be that has no reply, or no request.
const onItsWay = 300

// followNodes tells from when to when each znode was there.
func (d *deduction) followNodes() {
	var nodes []Node
	var paths []string
	last := map[string]int{}
	for _, c := range d.changes {
		switch c.op {
		case wiretap.Create:
			if c.children || c.path == d.dir {
				last[c.path] = len(nodes)
				nodes, paths = append(
					nodes,
					Node{path.Base(c.path), c.client, -1, max(0, c.at), -1},
				), append(
					paths,
					c.path,
				)
			}
		case wiretap.Delete:
			if i, ok := last[c.path]; ok {
				nodes[i].To = max(0, c.at)
			}
		case wiretap.Close:
			for i, n := range nodes {
				if n.Owner == c.client && n.To < 0 && paths[i] != d.dir {
					nodes[i].To = max(0, c.at)
				}
			}
		}
	}
	d.node = map[string]int{}
	for i, n := range nodes {
		if n.Owner < len(d.story.Clients) && n.To != 0 { // else it was gone before the start
			d.node[paths[i]] = len(d.story.Nodes)
			d.story.Nodes = append(d.story.Nodes, n)
		}
	}
}

// follow tells of each frame of a client when it was on its way, and of each
// watch from when to when it was set.
func (d *deduction) follow(client int, frames []wiretap.Frame) {
	var watches []Watch
	armed, answered := map[string]int{}, map[int32]int{}
	disarm := func(path string, at int) {
		if i, ok := armed[path]; ok {
			watches[i].To = max(0, at)
			delete(armed, path)
		}
	}
	for i := range frames {
		if f := &frames[i]; f.Kind == wiretap.Reply && !f.Asked.IsZero() {
			answered[f.Xid] = d.servedAt(f)
		}
	}
	for i := range frames {
		f := &frames[i]
		if aside(*f) {
			continue
		}
		at := d.us(f.At)
		from, to := at, at
		switch f.Kind {
		case wiretap.Request:
			if f.Op == wiretap.Connect {
				for path := range armed { // a new connection: the old one's watches are gone
					disarm(path, at)
				}
			}
			var ok bool
			if to, ok = answered[f.Xid]; !ok {
				to = at + onItsWay
			}
		case wiretap.Notification:
			if c := d.causes[f]; c != nil {
				from = c.at
			}
			disarm(f.Path, from)
		case wiretap.Reply:
			from = d.servedAt(f)
			if f.Watch && f.Err == wiretap.OK {
				armed[f.Path] = len(watches)
				watches = append(watches, Watch{client, d.target(f.Path), max(0, from), -1})
			}
		}
		if at >= 0 {
			d.story.Frames = append(d.story.Frames, d.flight(client, f, max(0, from), to))
		}
	}
	for _, c := range d.changes {
		for path := range armed {
			if c.op == wiretap.Close && c.client == client {
				disarm(path, c.at)
			}
		}
	}
	gone := func(w Watch) bool { return w.To == 0 } // before the start
	d.story.Watches = append(d.story.Watches, slices.DeleteFunc(watches, gone)...)
}

func (d *deduction) flight(client int, f *wiretap.Frame, from, to int) Flight {
	flight := Flight{Client: client, Kind: f.Kind, Op: int(f.Op), Node: d.target(f.Path),
		From: from, To: to, At: d.us(f.At), Bytes: f.Bytes, Names: f.Names, Err: int(f.Err)}
	if f.Kind == wiretap.Notification {
		flight.Op = int(f.Event)
	}
	if f.Watch {
		flight.Flags |= SetsWatch
	}
	if f.Lost {
		flight.Flags |= GotLost
	}
	return flight
}

// counts sums up what passed in a phase and after it.
func (s Story) counts(phase int) wiretap.Counts {
	var frames []wiretap.Frame
	for _, line := range s.since(phase) {
		frames = append(frames, line.Frames...)
	}
	return wiretap.Count(frames)
}

// since is what passed on the wire in a phase and after it.
func (s Story) since(phase int) (lines []lockcheck.Line) {
	begin := s.start.Add(time.Duration(s.Phases[phase].At) * time.Microsecond)
	for _, line := range s.lines {
		line.Frames = slices.DeleteFunc(
			slices.Clone(line.Frames),
			func(f wiretap.Frame) bool { return f.At.Before(begin) },
		)
		lines = append(lines, line)
	}
	return lines
}
