// Package board keeps what make play has seen of one lock and its clients: the znodes
// and watches at the server, the frames on the wire, what each client believes, and
// what is wrong with all that. The page shows it, and it can be saved.
package board

import (
	"cmp"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"

	"zklock/internal/check/actor"
	"zklock/internal/server/wiretap"
	"zklock/internal/show/page"
	"zklock/internal/upkeep/words"
)

// A Board is what has been seen of a lock. It is not safe for concurrent use. All
// moments are in microseconds.
//
// Each client tells of a frame before that goes on. So what is written down here, one
// after the other, has happened in this order.
type Board struct {
	Clients []*Client
	Dir     string // the queue; in step 1 the lock itself
	Path    string // what the clients are given
	Znode   bool   // the lock is one znode, and no queue
	Store   store
	Banners []Banner

	nodes    shelf[node]
	places   map[string]int // the last znode of each path
	watches  shelf[page.Watch]
	frames   shelf[page.Flight]
	log      shelf[line]
	counters counters
	phases   []page.Phase
	suspects map[string]int // since when there is something to warn of
	strange  map[string]int // since when the server has a znode that nobody has told of
}

// How much is kept of what is over.
const (
	keptFrames = 4000
	keptNodes  = 1000
	keptLines  = 300
	keptMoods  = 200 // of each client
	keptPhases = 1000
	keptWrites = 20
)

// A node is a znode of the queue.
type node struct {
	page.Node
	path     string
	sequence int   // the number that ends its name
	zxid     int64 // of its create; 0: nobody has told
}

func (n *node) over() bool { return n.To >= 0 }

// lastsTo tells whether the znode was there at that moment, or has come later.
func (n *node) lastsTo(moment int) bool { return !n.over() || n.To >= moment }

type counters struct {
	Notifications int        `json:"notifications"`
	Requests      int        `json:"requests"`
	Lists         int        `json:"lists"` // of these
	Writes        int        `json:"writes"`
	Bytes         int        `json:"bytes"` // to the clients
	Action        words.Text `json:"action"`
}

// New returns the board of a lock of which nothing has been seen.
func New() *Board {
	return &Board{
		Clients: []*Client{},
		Banners: []Banner{},
		nodes:   newShelf[node](),
		watches: newShelf[page.Watch](),
		frames:  newShelf[page.Flight](),
		log:     newShelf[line](),
		places:  map[string]int{},
		strange: map[string]int{},
	}
}

// Acts begins what an action of the user sets off.
func (b *Board) Acts(now int, format string, args ...any) {
	action := words.Of(format, args...)
	b.counters = counters{Action: action}
	b.phases = append(b.phases, page.Phase{At: now, Title: action.Capital()})
	b.phases = b.phases[max(0, len(b.phases)-keptPhases):]
	b.Say(now, "You: %s.", action)
}

// Passed is how many frames have passed so far.
func (b *Board) Passed() int { return b.frames.next }

// Counters are what has passed since the last action.
func (b *Board) Counters() counters { return b.counters }

// Quiet tells whether no frame is on its way.
func (b *Board) Quiet() bool {
	for _, f := range b.frames.kept {
		if f.To < 0 {
			return false
		}
	}
	return true
}

// unseen tells whether a frame is no part of what is drawn: what keeps a session alive and
// proved is not what a lock does.
func unseen(f wiretap.Frame) bool { return f.Op == wiretap.Ping || actor.IsProof(f.Path) }

// Departs writes down that a frame is on its way, and returns its number.
func (b *Board) Departs(now int, c *Client, p actor.Passage) int {
	if p.Session != 0 {
		c.Session = p.Session
	}
	if p.Frame.Kind == wiretap.Request {
		b.requested(now, c, p.Frame)
	}
	for _, path := range p.Watched {
		b.arm(now, c.Number, b.target(path))
	}
	switch p.Frame.Kind {
	case wiretap.Reply:
		b.replied(now, c, p.Frame)
	case wiretap.Notification:
		b.notified(now, c, p.Frame)
	}
	b.count(p.Frame)
	if unseen(p.Frame) {
		return -1
	}
	return b.flies(now, c, p.Frame)
}

// requested notes what a request says before the server has it: on a new connection the
// server knows of no watch, until the client has told it of them.
func (b *Board) requested(now int, c *Client, f wiretap.Frame) {
	if f.Op == wiretap.Connect || f.Op == wiretap.SetWatches {
		b.Unwatched(now, c)
	}
}

// replied notes what a reply says: the server has made a znode, deleted one, or set a watch.
func (b *Board) replied(now int, c *Client, f wiretap.Frame) {
	tried := f.Op == wiretap.Create && f.Err != wiretap.NoNode && b.ours(f.Path) // and not a create of the queue itself
	looked := f.Op == wiretap.GetChildren
	if tried || looked {
		c.Answered = true
	}
	if f.Err != wiretap.OK {
		return
	}
	switch f.Op {
	case wiretap.Create:
		b.made(now, f.Path, c.Number, f.Zxid)
	case wiretap.Delete:
		b.gone(now, f.Path, f.Zxid)
	default:
		if f.Watch && !f.Lost {
			b.arm(now, c.Number, b.target(f.Path))
		}
	}
}

// notified notes what a notification says: a watch has fired, and perhaps a znode has gone.
func (b *Board) notified(now int, c *Client, f wiretap.Frame) {
	target := b.target(f.Path)
	b.disarm(now, func(w *page.Watch) bool { return w.Client == c.Number && w.Node == target })
	mayBeANewOne := b.Znode
	if f.Event == wiretap.NodeDeleted && !mayBeANewOne {
		b.gone(now, f.Path, 0)
	}
}

// flies begins the drawing of a frame, and returns its number.
func (b *Board) flies(now int, c *Client, f wiretap.Frame) int {
	op, flags := int(f.Op), 0
	if f.Kind == wiretap.Notification {
		op = int(f.Event)
	}
	if f.Watch {
		flags |= page.SetsWatch
	}
	if f.Lost {
		flags |= page.GotLost
		b.loses(now, c, f)
	}
	i := b.frames.add(page.Flight{
		Client: c.Number, Kind: f.Kind, Op: op, Node: b.target(f.Path), From: now, To: -1,
		Bytes: f.Bytes, Names: f.Names, Err: int(f.Err), Flags: flags, At: now,
	})
	b.frames.forget(keptFrames, func(f *page.Flight) bool { return f.To >= 0 })
	return i
}

// Arrives writes down that it is there.
func (b *Board) Arrives(now, i int, c *Client, f wiretap.Frame) {
	if flight := b.frames.change(i); flight != nil {
		flight.To = now
		if f.Kind != wiretap.Request {
			flight.At = now
		}
	}
	if !f.Lost {
		b.tell(now, c, f)
	}
}

// made notes a znode, which may be known: the server's list can show it before its client,
// if that is stopped, tells of it.
func (b *Board) made(now int, path string, owner int, zxid int64) {
	if !b.ours(path) {
		return
	}
	if old := b.there(path); old != nil {
		if !b.Znode || zxid < old.zxid {
			return
		}
		b.gone(now, path, 0)
	}
	slot := 2 * owner
	if b.newest(owner) != nil {
		slot++ // it has another one already
	}
	if b.Znode {
		slot = -1
	}
	sequence, _ := strconv.Atoi(digits.FindString(path))
	b.places[path] = b.nodes.add(
		node{page.Node{Name: pathpkg.Base(path), Owner: owner, Slot: slot, From: now, To: -1}, path, sequence, zxid},
	)
	b.nodes.forget(keptNodes, func(n *node) bool {
		if n.over() && b.nodes.kept[b.places[n.path]] == n {
			delete(b.places, n.path)
		}
		return n.over()
	})
}

// ours tells whether a path is one of the queue's.
func (b *Board) ours(path string) bool {
	if b.Znode {
		return path == b.Dir
	}
	return pathpkg.Dir(path) == b.Dir
}

// there is the znode at a path, if there is one now.
func (b *Board) there(path string) *node {
	if n := b.nodes.kept[b.target(path)]; n != nil && !n.over() {
		return n
	}
	return nil
}

// Knows tells whether a znode is known to be there.
func (b *Board) Knows(path string) bool { return b.there(path) != nil }

// gone notes that a znode is no more: by the delete with this zxid, or, if it is 0, by
// what the server shows now. The replies of two clients may be told of in the wrong order.
func (b *Board) gone(now int, path string, zxid int64) {
	n := b.there(path)
	if n == nil {
		return
	}
	isOfAnEarlierOne := zxid != 0 && zxid < n.zxid
	if isOfAnEarlierOne {
		return
	}
	i := b.target(path)
	b.nodes.change(i).To = now
	b.disarm(now, func(w *page.Watch) bool { return w.Node == i })
}

// arm notes a watch. The server keeps a second one with the first.
func (b *Board) arm(now, client, node int) {
	for _, w := range b.watches.kept {
		isSame := w.Client == client && w.Node == node
		if isSame && w.To < 0 {
			return
		}
	}
	b.watches.add(page.Watch{Client: client, Node: node, From: now, To: -1})
	b.watches.forget(keptNodes, func(w *page.Watch) bool { return w.To >= 0 })
}

func (b *Board) disarm(now int, which func(*page.Watch) bool) {
	for i, w := range b.watches.kept {
		if w.To < 0 && which(w) {
			b.watches.change(i).To = now
		}
	}
}

// Unwatched notes that a client's connection has ended, and its watches with it.
func (b *Board) Unwatched(now int, c *Client) {
	b.disarm(now, func(w *page.Watch) bool { return w.Client == c.Number })
}

// target is the number of the path's znode, -1 for the queue itself, -2 for anything else.
func (b *Board) target(path string) int {
	if i, ok := b.places[path]; ok {
		return i
	}
	if path == b.Dir {
		return -1
	}
	return -2
}

// newest is the last znode that a client has made, if that is still there.
func (b *Board) newest(owner int) (last *node) {
	most := -1
	for i, n := range b.nodes.kept {
		isItsOwn := n.Owner == owner && !n.over()
		if isItsOwn && i > most {
			most, last = i, n
		}
	}
	return last
}

// Queue is what is there, in the order of the numbers.
func (b *Board) Queue() (all []*node) {
	for _, n := range b.nodes.kept {
		if !n.over() {
			all = append(all, n)
		}
	}
	slices.SortFunc(
		all,
		func(m, n *node) int { return cmp.Or(cmp.Compare(m.sequence, n.sequence), cmp.Compare(m.From, n.From)) },
	)
	return all
}

var digits = regexp.MustCompile(`\d+$`)

func (b *Board) count(f wiretap.Frame) {
	if actor.IsFree(f) {
		return
	}
	switch f.Kind {
	case wiretap.Notification:
		b.counters.Notifications++
	case wiretap.Request:
		b.counters.Requests++
		switch f.Op {
		case wiretap.Create, wiretap.Delete, wiretap.SetData, wiretap.Multi:
			b.counters.Writes++
		case wiretap.GetChildren:
			b.counters.Lists++
		}
	}
	if f.Kind != wiretap.Request {
		b.counters.Bytes += f.Bytes
	}
}

// Looked corrects what is known by what the server has shown: the paths that were
// there at some time since asked, with their sessions. What nobody has told of, such as the end of
// a session, is found so.
func (b *Board) Looked(asked, now int, sessions map[string]int64) {
	for _, n := range b.nodes.kept {
		wasThere := !n.over() && n.From < asked
		if _, isThere := sessions[n.path]; isThere || !wasThere {
			continue
		}
		b.gone(now, n.path, 0)
		switch {
		case n.Owner < 0:
			b.Say(now, "%s is gone.", n.Name)
		case b.Clients[n.Owner].Process == Running && b.Clients[n.Owner].Line == Up:
			b.Say(now, "%s, which was %d's, is gone.", n.Name, n.Owner)
		default:
			b.Say(
				now,
				"The server ends the session of %d, which it has not heard of for %v: %s is gone.",
				n.Owner,
				Timeout,
				n.Name,
			)
		}
	}
	for path := range b.strange {
		if _, there := sessions[path]; !there {
			delete(b.strange, path)
		}
	}
	for path, session := range sessions {
		first, again := b.strange[path]
		switch n := b.nodes.kept[b.target(path)]; {
		case n != nil && n.lastsTo(asked): // it is known
			delete(b.strange, path)
		case !again:
			b.strange[path] = now
		case first < asked:
			b.made(
				now,
				path,
				slices.IndexFunc(b.Clients, func(c *Client) bool { return c.Session == session && session != 0 }),
				0,
			)
		}
	}
}

// Say writes a sentence into the log.
func (b *Board) Say(now int, format string, args ...any) {
	b.note(line{At: now, Text: words.Of(format, args...).Capital()})
}

func (b *Board) note(l line) int {
	b.log.forget(keptLines, func(*line) bool { return true })
	return b.log.add(l)
}

// capital is the text with a capital letter at its beginning, if that is an ASCII letter.
