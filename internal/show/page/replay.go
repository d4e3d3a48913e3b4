package page

import (
	"cmp"
	"path"
	"slices"
	"sort"
	"time"

	"zklock/internal/property"
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

	// The lock is one znode, and no queue, though its step's key does not say so.
	Znode bool `json:"znode,omitempty"`
	Slots int  `json:"slots"` // places around the directory

	start time.Time
	lines []property.Line // the clients' frames, as they stood on the wire
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
		d.lines = append(d.lines, property.Line{Client: m.Name, Frames: m.Tap.Frames(), Moods: m.Moods()})
	}
	for _, e := range r.ends {
		d.changes = append(d.changes, &change{
			zxid:     e.zxid,
			client:   slices.Index(all, e.member),
			op:       wiretap.Close,
			children: true,
			lo:       d.us(e.after),
			hi:       d.us(e.seen),
		})
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

// A deduction finds out what happened at the server from what passed at the clients.
// The taps stand there, so the moment is not seen in which the server carries a request
// out; but it lies between the request and its reply, and the zxid of the reply says
// between which changes at the server.
type deduction struct {
	dir     string
	start   time.Time       // of the story
	lines   []property.Line // of each client, those that are shown first
	changes []*change       // in the order of their zxid
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

// isDrawn tells whether a frame is part of the story.
func isDrawn(f wiretap.Frame) bool { return f.Op != wiretap.Ping && !f.IsBarrier() }

// findChanges finds the changes that the replies to creates and deletes tell of.
func (d *deduction) findChanges() {
	for client, line := range d.lines {
		for _, f := range line.Frames {
			isDone := f.Kind == wiretap.Reply && f.Err == wiretap.OK
			isChange := f.Op == wiretap.Create || f.Op == wiretap.Delete
			if !isDone || !isChange {
				continue
			}
			d.changes = append(d.changes, &change{
				zxid:     f.Zxid,
				client:   client,
				op:       f.Op,
				path:     f.Path,
				children: path.Dir(f.Path) == d.dir,
				lo:       d.us(f.Asked),
				hi:       d.us(f.At),
			})
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
		d.findCauses(line.Frames)
	}
	for notification, c := range d.causes {
		c.hi = min(c.hi, d.us(notification.At))
	}
	for i := len(d.changes) - 2; i >= 0; i-- {
		next := d.changes[i+1]
		d.changes[i].hi = min(d.changes[i].hi, next.hi)
	}
	for i, c := range d.changes {
		if i > 0 {
			last := d.changes[i-1]
			c.lo = max(c.lo, last.at)
		}
		c.at = between(c.lo, c.hi)
	}
}

// findCauses finds, for each notification among a client's frames, the change that it
// tells of.
func (d *deduction) findCauses(frames []wiretap.Frame) {
	reads := map[string]int64{} // by path: the zxid of the read that has set the watch
	for i := range frames {
		f := &frames[i]
		if setsWatch(f) {
			reads[f.Path] = f.Zxid
		}
		read, isWatched := reads[f.Path]
		if f.Kind != wiretap.Notification || !isWatched {
			continue
		}
		if c := d.cause(f, read); c != nil {
			d.causes[f] = c
		}
	}
}

// setsWatch tells whether a frame is the reply to a read that has set a watch.
func setsWatch(f *wiretap.Frame) bool {
	succeeded := f.Kind == wiretap.Reply && f.Err == wiretap.OK
	return succeeded && f.Watch
}

// A change that may have happened in more than longTime, as a session's end, is taken to
// have happened late in it. In microseconds.
const (
	longTime = 2000
	late     = 1000
)

// between is the moment that is taken for a change between lo and hi.
func between(lo, hi int) int {
	if hi-lo > longTime {
		return hi - late
	}
	return middle(lo, hi)
}

func middle(lo, hi int) int { return lo + (hi-lo)/2 }

// cause is the change that a notification tells of: the first one since the read that
// set the watch.
func (d *deduction) cause(notification *wiretap.Frame, read int64) *change {
	for _, c := range d.changes {
		if c.zxid > read && d.tellsOf(notification, c) {
			return c
		}
	}
	return nil
}

// tellsOf tells whether a notification is one that such a change causes.
func (d *deduction) tellsOf(notification *wiretap.Frame, c *change) bool {
	switch notification.Event {
	case wiretap.ChildrenChanged:
		return c.children
	case wiretap.NodeDeleted:
		isDeleted := c.op == wiretap.Delete && c.path == notification.Path
		hasEnded := c.op == wiretap.Close && d.made(notification.Path, c.client)
		return isDeleted || hasEnded
	}
	return false
}

// made tells whether a client has made a znode.
func (d *deduction) made(path string, client int) bool {
	return slices.ContainsFunc(d.changes, func(c *change) bool {
		makesIt := c.op == wiretap.Create && c.path == path
		return makesIt && c.client == client
	})
}

// servedAt is when the server carried out what a reply answers: for a change, the
// moment of the change; else between the changes that the reply's zxid stands between.
func (d *deduction) servedAt(reply *wiretap.Frame) int {
	asked, answered := d.us(reply.Asked), d.us(reply.At)
	if reply.Asked.IsZero() {
		return answered - onItsWay
	}
	last, next := d.around(reply.Zxid)
	if last != nil && last.isAnsweredBy(reply) {
		return last.at
	}
	lo, hi := asked, answered
	if last != nil {
		lo = max(lo, last.at)
	}
	if next != nil {
		hi = min(hi, next.at)
	}
	if hi < lo { // another client has learned of the change before
		return middle(asked, answered)
	}
	return middle(lo, hi)
}

// around finds the last change that a reply with this zxid has seen, and the next one,
// which it has not. Each is nil if there is none. Of two with this zxid the first is the
// last that was seen: it is a session's end, and the second is how that was noticed.
func (d *deduction) around(zxid int64) (last, next *change) {
	unseen := sort.Search(len(d.changes), func(i int) bool { return d.changes[i].zxid >= zxid })
	if unseen < len(d.changes) && d.changes[unseen].zxid == zxid {
		unseen++
	}
	if unseen > 0 {
		last = d.changes[unseen-1]
	}
	if unseen < len(d.changes) {
		next = d.changes[unseen]
	}
	return last, next
}

// isAnsweredBy tells whether a reply answers the request for this change.
func (c *change) isAnsweredBy(reply *wiretap.Frame) bool {
	if reply.Err != wiretap.OK || reply.Zxid != c.zxid {
		return false
	}
	return reply.Op == c.op && reply.Path == c.path
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
				n := Node{Name: path.Base(c.path), Owner: c.client, Slot: -1, From: max(0, c.at), To: -1}
				nodes = append(nodes, n)
				paths = append(paths, c.path)
			}
		case wiretap.Delete:
			if i, ok := last[c.path]; ok {
				nodes[i].To = max(0, c.at)
			}
		case wiretap.Close:
			for i, n := range nodes {
				isOfSession := n.Owner == c.client && paths[i] != d.dir
				if isOfSession && n.To < 0 {
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
	w := &watchList{client: client, armed: map[string]int{}}
	served := d.servedRequests(frames)
	for i := range frames {
		f := &frames[i]
		if !isDrawn(*f) {
			continue
		}
		at := d.us(f.At)
		from, to := at, at
		switch f.Kind {
		case wiretap.Request:
			if f.Op == wiretap.Connect { // a new connection: the old one's watches are gone
				w.disarmAll(at)
			}
			to = at + onItsWay
			if moment, isAnswered := served[f.Xid]; isAnswered {
				to = moment
			}
		case wiretap.Notification:
			if c := d.causes[f]; c != nil {
				from = c.at
			}
			w.disarm(f.Path, from)
		case wiretap.Reply:
			from = d.servedAt(f)
			if setsWatch(f) {
				w.arm(f.Path, d.target(f.Path), from)
			}
		}
		if at >= 0 {
			d.story.Frames = append(d.story.Frames, d.flight(client, f, max(0, from), to))
		}
	}
	for _, c := range d.changes {
		if c.op == wiretap.Close && c.client == client {
			w.disarmAll(c.at)
		}
	}
	goneBefore := func(w Watch) bool { return w.To == 0 } // before the start
	d.story.Watches = append(d.story.Watches, slices.DeleteFunc(w.all, goneBefore)...)
}

// servedRequests is, for each request of a client that was answered, by its xid, when the
// server carried it out.
func (d *deduction) servedRequests(frames []wiretap.Frame) map[int32]int {
	served := map[int32]int{}
	for i := range frames {
		f := &frames[i]
		if f.Kind == wiretap.Reply && !f.Asked.IsZero() {
			served[f.Xid] = d.servedAt(f)
		}
	}
	return served
}

// A watchList has the watches of one client, while its frames are followed.
type watchList struct {
	client int
	all    []Watch
	armed  map[string]int // by path: the index of the watch that is set
}

// arm sets a watch on a target.
func (w *watchList) arm(path string, target, at int) {
	w.armed[path] = len(w.all)
	w.all = append(w.all, Watch{Client: w.client, Node: target, From: max(0, at), To: -1})
}

// disarm ends the watch on a path, if there is one.
func (w *watchList) disarm(path string, at int) {
	if i, ok := w.armed[path]; ok {
		w.all[i].To = max(0, at)
		delete(w.armed, path)
	}
}

func (w *watchList) disarmAll(at int) {
	for path := range w.armed {
		w.disarm(path, at)
	}
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
func (s Story) since(phase int) (lines []property.Line) {
	begin := s.start.Add(time.Duration(s.Phases[phase].At) * time.Microsecond)
	for _, line := range s.lines {
		before := func(f wiretap.Frame) bool { return f.At.Before(begin) }
		line.Frames = slices.DeleteFunc(slices.Clone(line.Frames), before)
		lines = append(lines, line)
	}
	return lines
}
