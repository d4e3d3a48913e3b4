package page

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
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
	Slots   int      `json:"slots"` // places around the directory

	start time.Time
	lines []lockcheck.Line // the same frames, as they stood on the wire
}

// A Client of the story. Moods are what it believes of itself, in order.
type Client struct {
	Name  string `json:"name"`
	Slot  int    `json:"slot"`
	Moods []Mood `json:"moods"`
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
	setsWatch = 1 << iota
	gotLost
)

// A Phase is a part of the story.
type Phase struct {
	At    int    `json:"at"`
	Over  int    `json:"over"`
	Title string `json:"title"`
	Sum   string `json:"sum"`
}

// trip is a request with its reply, and when the server carried it out. The
// tap stands at the client, so that moment is not seen; but it lies between the
// two, and the zxid of the reply says between which changes at the server.
type trip struct {
	client         int
	request, reply *wiretap.Frame
	served         time.Time
}

// change is a transaction that made or deleted znodes.
type change struct {
	zxid     int64
	lo, hi   time.Time // it happened between these
	at       time.Time
	made     string
	deleted  string // a path; "" with an end of a session
	ended    int    // the client whose session it ends, or -1
	children bool   // of the lock's directory
}

// story works out what there is to see from what was recorded.
func (r *recorder) story() Story {
	d := &deduction{dir: r.dir, node: map[string]int{}}
	for _, a := range r.actors {
		d.frames = append(d.frames, a.Tap.Frames())
	}
	d.ends = r.ends
	s := d.story(r.start, time.Now())
	for i, a := range r.actors {
		frames := slices.DeleteFunc(d.frames[i], func(f wiretap.Frame) bool { return f.At.Before(r.start) })
		s.lines = append(s.lines, lockcheck.Line{Client: a.Name, Frames: frames})
	}
	s.Clients = r.clients(s.us)
	for _, p := range r.phases {
		s.Phases = append(s.Phases, Phase{s.us(p.at), s.us(p.over), p.title, p.sum})
		if !p.window {
			s.trim(&s.Phases[len(s.Phases)-1])
		}
	}
	s.seat(r.dir)
	return s
}

// story is what has passed between start and end, without the clients and the phases.
func (d *deduction) story(start, end time.Time) Story {
	d.deduce()
	s := Story{Nodes: []Node{}, Watches: []Watch{}, Frames: []Flight{}, start: start}
	s.End = s.us(end)
	until := func(t time.Time) int {
		if t.IsZero() {
			return -1
		}
		return s.us(t)
	}
	for _, n := range d.nodes {
		s.Nodes = append(s.Nodes, Node{path.Base(n.path), n.owner, -1, s.us(n.from), until(n.to)})
	}
	for _, w := range d.watches {
		if w.to.IsZero() || w.to.After(start) {
			s.Watches = append(s.Watches, Watch{w.client, d.target(w.path), s.us(w.from), until(w.to)})
		}
	}
	for _, f := range d.flights {
		if f.frame.At.Before(start) {
			continue
		}
		flight := Flight{Client: f.client, Kind: f.frame.Kind, Op: int(f.frame.Op), Node: d.target(f.frame.Path),
			From: s.us(f.from), To: s.us(f.to), At: s.us(f.frame.At),
			Bytes: f.frame.Bytes, Names: f.frame.Names, Err: int(f.frame.Err)}
		if f.frame.Kind == wiretap.Notification {
			flight.Op = int(f.frame.Event)
		}
		if f.frame.Watch {
			flight.Flags |= setsWatch
		}
		if f.frame.Lost {
			flight.Flags |= gotLost
		}
		s.Frames = append(s.Frames, flight)
	}
	slices.SortStableFunc(s.Frames, func(a, b Flight) int { return cmp.Compare(a.At, b.At) })
	return s
}

// us is a moment of the story, in microseconds from its start.
func (s Story) us(t time.Time) int { return max(0, int(t.Sub(s.start).Microseconds())) }

func (r *recorder) clients(us func(time.Time) int) (clients []Client) {
	for _, a := range r.actors {
		c := Client{Name: a.Name, Slot: -1}
		a.mu.Lock()
		for _, m := range a.moods {
			c.Moods = append(c.Moods, Mood{us(m.at), m.is})
		}
		a.mu.Unlock()
		clients = append(clients, c)
	}
	return clients
}

// trim ends a phase with the last thing that happens in it.
func (s *Story) trim(p *Phase) {
	last := p.At
	happens := func(at int) {
		if at <= p.Over {
			last = max(last, at)
		}
	}
	for _, f := range s.Frames {
		happens(f.From)
		happens(f.To)
	}
	for _, n := range s.Nodes {
		happens(n.From)
		happens(n.To)
	}
	for _, c := range s.Clients {
		for _, m := range c.Moods {
			happens(m.At)
		}
	}
	p.Over = last
}

// seat gives each znode a place around the directory, in the queue's order, and
// each client the place of its first znode.
func (s *Story) seat(dir string) {
	for i, n := range s.Nodes {
		if n.Name == path.Base(dir) {
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

// A deduction finds out what happened at the server from what passed at the
// clients.
type deduction struct {
	dir    string
	frames [][]wiretap.Frame // of each client
	ends   []sessionEnd

	trips   []*trip
	changes []*change // in the order of their zxid
	node    map[string]int
	nodes   []deducedNode
	watches []deducedWatch
	flights []deducedFlight
}

type deducedNode struct {
	path     string
	owner    int
	from, to time.Time
}

type deducedWatch struct {
	client   int
	path     string
	from, to time.Time
}

type deducedFlight struct {
	client   int
	frame    wiretap.Frame
	from, to time.Time
}

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

func (d *deduction) deduce() {
	for client, frames := range d.frames {
		d.pair(client, frames)
	}
	d.findChanges()
	d.timeChanges()
	for _, t := range d.trips {
		t.served = d.servedAt(t)
	}
	d.followNodes()
	for client, frames := range d.frames {
		d.follow(client, frames)
	}
}

// pair finds the reply to each request.
func (d *deduction) pair(client int, frames []wiretap.Frame) {
	open := map[int32]*trip{}
	for i := range frames {
		f := &frames[i]
		if aside(*f) {
			continue
		}
		switch f.Kind {
		case wiretap.Request:
			t := &trip{client: client, request: f}
			d.trips = append(d.trips, t)
			open[f.Xid] = t
		case wiretap.Reply:
			if t := open[f.Xid]; t != nil && t.request.Op == f.Op {
				t.reply = f
				delete(open, f.Xid)
			}
		}
	}
}

// aside tells whether a frame is no part of the story.
func aside(f wiretap.Frame) bool {
	return f.Op == wiretap.Ping || f.Op == wiretap.Exists && f.Path == "/"
}

func (d *deduction) findChanges() {
	for _, t := range d.trips {
		if t.reply == nil || t.reply.Err != wiretap.OK {
			continue
		}
		c := &change{zxid: t.reply.Zxid, lo: t.request.At, hi: t.reply.At, ended: -1}
		switch t.reply.Op {
		case wiretap.Create:
			c.made = t.reply.Path
		case wiretap.Delete:
			c.deleted = t.reply.Path
		default:
			continue
		}
		c.children = path.Dir(c.made+c.deleted) == d.dir
		d.changes = append(d.changes, c)
	}
	for _, e := range d.ends {
		d.changes = append(d.changes, &change{zxid: e.zxid, lo: e.after, hi: e.seen, ended: e.actor, children: true})
	}
	slices.SortStableFunc(d.changes, func(a, b *change) int { return cmp.Compare(a.zxid, b.zxid) })
}

// timeChanges finds a moment for each change that agrees with all that was
// seen: after its request, before its reply and all that was told of it, and in
// the order of the zxids.
func (d *deduction) timeChanges() {
	for client, frames := range d.frames {
		var reads []*wiretap.Frame // replies that have set a watch
		for i := range frames {
			f := &frames[i]
			switch {
			case f.Kind == wiretap.Reply && f.Watch && f.Err == wiretap.OK:
				reads = append(reads, f)
			case f.Kind == wiretap.Notification:
				if c := d.cause(client, f, reads); c != nil && f.At.Before(c.hi) {
					c.hi = f.At
				}
			}
		}
	}
	for i := len(d.changes) - 2; i >= 0; i-- {
		if next := d.changes[i+1]; next.hi.Before(d.changes[i].hi) {
			d.changes[i].hi = next.hi
		}
	}
	for i, c := range d.changes {
		if i > 0 && d.changes[i-1].at.After(c.lo) {
			c.lo = d.changes[i-1].at
		}
		c.at = between(c.lo, c.hi)
	}
}

// between is a moment in the middle; an end of a session is seen late.
func between(lo, hi time.Time) time.Time {
	if gap := hi.Sub(lo); gap > 2*time.Millisecond {
		return hi.Add(-time.Millisecond)
	}
	return lo.Add(hi.Sub(lo) / 2)
}

// cause is the change that a notification tells of: the first one after the
// read that set the watch.
func (d *deduction) cause(client int, f *wiretap.Frame, reads []*wiretap.Frame) *change {
	var since int64 = math.MaxInt64
	for _, r := range slices.Backward(reads) {
		if r.Path == f.Path {
			since = r.Zxid
			break
		}
	}
	for _, c := range d.changes {
		if c.zxid <= since {
			continue
		}
		switch {
		case f.Event == wiretap.ChildrenChanged && c.children,
			f.Event == wiretap.NodeDeleted && c.deleted == f.Path,
			f.Event == wiretap.NodeDeleted && c.ended >= 0 && d.ownedBy(f.Path, c.ended):
			return c
		}
	}
	return nil
}

func (d *deduction) ownedBy(path string, client int) bool {
	return slices.ContainsFunc(d.trips, func(t *trip) bool {
		return t.client == client && t.reply != nil && t.reply.Op == wiretap.Create && t.reply.Path == path
	})
}

// servedAt is when the server carried out a request: for a change, the moment
// of the change; else between the changes that the reply's zxid stands between.
func (d *deduction) servedAt(t *trip) time.Time {
	if t.reply == nil {
		return t.request.At.Add(300 * time.Microsecond)
	}
	lo, hi := t.request.At, t.reply.At
	i, found := slices.BinarySearchFunc(d.changes, t.reply.Zxid, func(c *change, zxid int64) int { return cmp.Compare(c.zxid, zxid) })
	if found {
		if c := d.changes[i]; t.reply.Err == wiretap.OK && (c.made+c.deleted) == t.reply.Path && (t.reply.Op == wiretap.Create || t.reply.Op == wiretap.Delete) {
			return c.at
		}
		i++
	}
	if i > 0 && d.changes[i-1].at.After(lo) {
		lo = d.changes[i-1].at
	}
	if i < len(d.changes) && d.changes[i].at.Before(hi) {
		hi = d.changes[i].at
	}
	if hi.Before(lo) { // the connect's zxid says nothing
		return t.request.At.Add(t.reply.At.Sub(t.request.At) / 2)
	}
	return lo.Add(hi.Sub(lo) / 2)
}

// followNodes tells from when to when each znode was there.
func (d *deduction) followNodes() {
	for _, c := range d.changes {
		switch {
		case c.made != "" && (path.Dir(c.made) == d.dir || c.made == d.dir):
			owner := slices.IndexFunc(d.trips, func(t *trip) bool { return t.reply != nil && t.reply.Zxid == c.zxid && t.reply.Path == c.made })
			d.node[c.made] = len(d.nodes)
			d.nodes = append(d.nodes, deducedNode{path: c.made, owner: d.trips[owner].client, from: c.at})
		case c.deleted != "":
			if i, ok := d.node[c.deleted]; ok {
				d.nodes[i].to = c.at
			}
		case c.ended >= 0:
			for i, n := range d.nodes {
				if n.owner == c.ended && n.to.IsZero() && strings.HasPrefix(n.path, d.dir+"/") {
					d.nodes[i].to = c.at
				}
			}
		}
	}
}

// follow tells of each frame of a client when it was on its way, and of each
// watch from when to when it was set.
func (d *deduction) follow(client int, frames []wiretap.Frame) {
	served := map[*wiretap.Frame]time.Time{}
	for _, t := range d.trips {
		if t.client == client {
			served[t.request] = t.served
			if t.reply != nil {
				served[t.reply] = t.served
			}
		}
	}
	armed := map[string]int{}
	var reads []*wiretap.Frame
	disarm := func(path string, at time.Time) {
		if i, ok := armed[path]; ok {
			d.watches[i].to = at
			delete(armed, path)
		}
	}
	for i := range frames {
		f := &frames[i]
		if aside(*f) {
			continue
		}
		flight := deducedFlight{client, *f, f.At, f.At}
		at := served[f]
		switch {
		case f.Kind == wiretap.Request && f.Op == wiretap.Connect:
			for path := range armed { // a new connection: the old one's watches are gone
				disarm(path, f.At)
			}
			flight.to = at
		case f.Kind == wiretap.Request:
			flight.to = at
		case f.Kind == wiretap.Notification:
			if c := d.cause(client, f, reads); c != nil {
				flight.from = c.at
			}
			disarm(f.Path, flight.from)
		case at.IsZero():
			flight.from = f.At.Add(-300 * time.Microsecond)
		default:
			flight.from = at
			if f.Watch && f.Err == wiretap.OK {
				armed[f.Path] = len(d.watches)
				d.watches = append(d.watches, deducedWatch{client: client, path: f.Path, from: at})
				reads = append(reads, f)
			}
		}
		d.flights = append(d.flights, flight)
	}
	for _, c := range d.changes {
		for path := range armed {
			if c.ended == client {
				disarm(path, c.at)
			}
		}
	}
}
