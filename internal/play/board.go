package main

import (
	"cmp"
	"fmt"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zklock/internal/actor"
	"zklock/internal/page"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A board is one lock and its clients, and what has been seen of them since the
// board was laid. All of it is guarded by the service's mu.
//
// Each client tells of a frame before that goes on. So what is written down here, one
// after the other, has happened in this order.
type board struct {
	*service
	lock
	at      int    // 0: on the left
	dir     string // the queue; in step 1 the lock itself
	path    string // what the clients are given
	znode   bool   // the lock is one znode, and no queue
	program program
	clients []*client
	wanted  int            // clients, once it is built
	left    sync.WaitGroup // has each client until its process has ended
	saved   string         // what the exercises were when it was built
	ended   bool           // another board has been laid in its place

	nodes    shelf[node]
	present  map[int]*node  // of these, those that are there
	places   map[string]int // the last one of each path
	watches  shelf[page.Watch]
	armed    map[[2]int]int // the watch of a client on a znode, by both
	frames   shelf[page.Flight]
	moods    map[int]bool // clients whose mood is news
	rows     bool         // these and the following are news, too
	counted  bool
	lines    []line // of the log, newest first
	said     int    // how many of them are news
	warned   []banner
	warnings bool // these are news
	stored   bool
	build    string // what the compiler complains of
	making   bool
	built    bool // the two above are news

	counters counters
	store    store
	phases   []page.Phase
	suspects map[string]time.Time // since when there is something to warn of
	strange  map[string]int       // since when the server has a znode that nobody has told of
}

// How much is kept of what is over.
const (
	keptFrames = 4000
	keptNodes  = 1000
	keptLines  = 300
)

// A node is a znode of the queue.
type node struct {
	page.Node
	path string
	zxid int64 // of its create; 0: nobody has told
}

type counters struct {
	Notifications int    `json:"notifications"`
	Requests      int    `json:"requests"`
	Writes        int    `json:"writes"`
	Bytes         int    `json:"bytes"` // to the clients
	Action        string `json:"action"`
}

type line struct {
	At   int    `json:"at"`
	Text string `json:"text"`
	form string // of what is said of several
	who  []int
}

type place struct {
	Name  string `json:"name"`
	Owner int    `json:"owner"`
}

func (b *board) say(at int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	text = strings.ToUpper(text[:1]) + text[1:] // an ASCII letter, or no letter
	b.lines = slices.Insert(b.lines, 0, line{At: at, Text: text})
	b.lines = b.lines[:min(len(b.lines), keptLines)]
	b.said = min(b.said+1, keptLines)
}

// acts begins what an action of the user sets off.
func (b *board) acts(at int, action string) {
	b.counters, b.counted = counters{Action: action}, true
	b.phases = append(b.phases, page.Phase{At: at, Title: strings.ToUpper(action[:1]) + action[1:]})
	if len(b.phases) > keptNodes {
		b.phases = slices.Delete(b.phases, 0, 1)
	}
	b.say(at, "You: %s.", action)
}

// departs writes down that a frame is on its way, and returns its number.
func (b *board) departs(now int, c *client, p actor.Passage) int {
	f := p.Frame
	if p.Session != 0 {
		c.session = p.Session
	}
	if f.Kind == wiretap.Request && f.Op == wiretap.Connect || f.Kind == wiretap.Request && f.Op == wiretap.SetWatches {
		b.unwatched(now, c)
	}
	for _, path := range p.Watched {
		b.arm(now, c.number, b.target(path))
	}
	if f.Kind == wiretap.Reply && (f.Op == wiretap.Create && f.Err != wiretap.NoNode || f.Op == wiretap.GetChildren) {
		c.answered = true
	}
	answered := f.Kind == wiretap.Reply && f.Err == wiretap.OK
	switch {
	case answered && f.Op == wiretap.Create:
		b.made(now, f.Path, c.number, f.Zxid)
	case answered && f.Op == wiretap.Delete:
		b.gone(now, f.Path, f.Zxid)
	}
	target := b.target(f.Path)
	switch {
	case f.Kind == wiretap.Notification:
		if i, ok := b.armed[[2]int{c.number, target}]; ok {
			b.watches.change(i).To = now
			delete(b.armed, [2]int{c.number, target})
		}
		if f.Event == wiretap.NodeDeleted && !b.znode { // there may be a new one by now
			b.gone(now, f.Path, 0)
		}
	case f.Kind == wiretap.Reply && f.Watch && f.Err == wiretap.OK && !f.Lost:
		b.arm(now, c.number, target)
	}
	b.count(f)
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
	i, _ := b.frames.add(page.Flight{Client: c.number, Kind: f.Kind, Op: op, Node: target, From: now, To: -1,
		Bytes: f.Bytes, Names: f.Names, Err: int(f.Err), Flags: flags, At: now})
	b.frames.forget(keptFrames, func(f *page.Flight) bool { return f.To >= 0 })
	return i
}

// arrives writes down that it is there.
func (b *board) arrives(now, i int, c *client, f wiretap.Frame) {
	if flight := b.frames.change(i); flight != nil {
		flight.To = now
		if f.Kind == wiretap.Request {
			flight.At = flight.From
		} else {
			flight.At = now
		}
	}
	if !f.Lost {
		b.tell(now, c, f)
	}
}

// made notes a znode, which may be known: the server's list can show it before its client,
// if that is stopped, tells of it.
func (b *board) made(now int, path string, owner int, zxid int64) {
	if !b.ours(path) {
		return
	}
	if old := b.present[b.target(path)]; old != nil {
		if !b.znode || zxid < old.zxid {
			return
		}
		b.gone(now, path, 0)
	}
	slot := 2 * owner
	if b.newest(owner) != nil {
		slot++ // it has another one already
	}
	if b.znode {
		slot = -1
	}
	i, n := b.nodes.add(node{page.Node{Name: pathpkg.Base(path), Owner: owner, Slot: slot, From: now, To: -1}, path, zxid})
	b.present[i], b.places[path] = n, i
	b.nodes.forget(keptNodes, func(n *node) bool {
		if n.To >= 0 && b.nodes.kept[b.places[n.path]] == n {
			delete(b.places, n.path)
		}
		return n.To >= 0
	})
}

// ours tells whether a path is one of the queue's.
func (b *board) ours(p string) bool {
	return b.znode && p == b.dir || !b.znode && pathpkg.Dir(p) == b.dir
}

// gone notes that a znode is no more: by the delete with this zxid, or, if it is 0, by
// what the server shows now. The replies of two clients may be told of in the wrong order.
func (b *board) gone(now int, path string, zxid int64) {
	i := b.target(path)
	if n := b.present[i]; n == nil || zxid != 0 && zxid < n.zxid {
		return
	}
	b.nodes.change(i).To = now
	delete(b.present, i)
	b.disarm(now, func(_, node int) bool { return node == i })
}

// arm notes a watch. The server keeps a second one with the first.
func (b *board) arm(now, client, node int) {
	if _, ok := b.armed[[2]int{client, node}]; ok {
		return
	}
	b.armed[[2]int{client, node}], _ = b.watches.add(page.Watch{Client: client, Node: node, From: now, To: -1})
	b.watches.forget(keptNodes, func(w *page.Watch) bool { return w.To >= 0 })
}

func (b *board) disarm(now int, which func(client, node int) bool) {
	for of, i := range b.armed {
		if which(of[0], of[1]) {
			b.watches.change(i).To = now
			delete(b.armed, of)
		}
	}
}

// unwatched notes that a client's connection has ended, and its watches with it.
func (b *board) unwatched(now int, c *client) {
	b.disarm(now, func(client, _ int) bool { return client == c.number })
}

// target is the number of the path's znode, -1 for the queue itself, -2 for anything else.
func (b *board) target(path string) int {
	if i, ok := b.places[path]; ok {
		return i
	}
	if path == b.dir {
		return -1
	}
	return -2
}

// newest is the last znode that a client has made, if that is still there.
func (b *board) newest(owner int) (last *node) {
	most := -1
	for i, n := range b.present {
		if n.Owner == owner && i > most {
			most, last = i, n
		}
	}
	return last
}

// queue is what is there, in the order of the numbers.
func (b *board) queue() []*node {
	var all []*node
	for _, n := range b.present {
		all = append(all, n)
	}
	slices.SortFunc(all, func(m, n *node) int {
		return cmp.Or(cmp.Compare(sequence(m.Name), sequence(n.Name)), cmp.Compare(m.From, n.From))
	})
	return all
}

// ls is the queue as a list of the server shows it, with whose each znode is.
func (b *board) ls() []place {
	all := []place{}
	for _, n := range b.queue() {
		all = append(all, place{n.Name, n.Owner})
	}
	return all
}

var digits = regexp.MustCompile(`-?\d+$`)

// sequence is the number that ends a name.
func sequence(name string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(digits.FindString(name), "-"))
	return n
}

func (b *board) count(f wiretap.Frame) {
	if actor.Aside(f) {
		return
	}
	b.counted = true
	switch f.Kind {
	case wiretap.Notification:
		b.counters.Notifications++
	case wiretap.Request:
		b.counters.Requests++
		switch f.Op {
		case wiretap.Create, wiretap.Delete, wiretap.SetData, wiretap.Multi:
			b.counters.Writes++
		}
	}
	if f.Kind != wiretap.Request {
		b.counters.Bytes += f.Bytes
	}
}

// looked corrects what is known by what the server has shown: the names that were
// there at some time since asked, with their sessions. What nobody has told of, such as the end of
// a session, is found so.
func (b *board) looked(asked, now int, names map[string]int64) {
	for _, n := range b.present {
		if _, there := names[n.path]; there || n.From >= asked {
			continue
		}
		b.gone(now, n.path, 0)
		switch {
		case n.Owner < 0:
			b.say(now, "%s is gone.", n.Name)
		case b.clients[n.Owner].process == running && b.clients[n.Owner].line == up:
			b.say(now, "%s, which was %d's, is gone.", n.Name, n.Owner)
		default:
			b.say(now, "The server ends the session of %d, which it has not heard of for %v: %s is gone.", n.Owner, timeout, n.Name)
		}
	}
	for path := range b.strange {
		if _, there := names[path]; !there {
			delete(b.strange, path)
		}
	}
	for path, session := range names {
		first, again := b.strange[path]
		switch n := b.nodes.kept[b.target(path)]; {
		case n != nil && (n.To < 0 || n.To >= asked): // it is known
			delete(b.strange, path)
		case !again:
			b.strange[path] = now
		case first < asked:
			b.made(now, path, slices.IndexFunc(b.clients, func(c *client) bool { return c.session == session && session != 0 }), 0)
		}
	}
}

// believes tells whether a client takes the lock for its own.
func believes(mood string) bool { return mood == zktest.MoodHolds || mood == zktest.MoodReads }
