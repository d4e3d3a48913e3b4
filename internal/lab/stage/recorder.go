// Package stage shows a lock and its clients at work. It is used by make play, the tour, the
// explorer and the book. A Recorder is given the frames that pass the gates of the clients, the
// states of the clients, and the znodes that the server lists. From this it keeps the znodes and
// watches at the server, the frames on their way, the state of each client, a log of events, and
// what is wrong. A page draws all this while it happens, or later from a Replay. All pages draw
// with the same script, which also has the words, in both languages.
package stage

import (
	"cmp"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// A Recorder keeps what has been seen of a lock. It is not safe for concurrent use. All moments are
// in microseconds.
//
// A client reports each frame before the frame continues on its way. So the recorder notes the
// frames in the order in which they pass.
type Recorder struct {
	Clients []*Figure
	Dir     string        // the queue's directory; in step 1 the lock itself
	Path    string        // the path that the clients are given
	Znode   bool          // the lock is a single znode, not a queue
	Lasts   time.Duration // how long a session lasts if its client is silent; 0: sessions are not shown
	Store   store
	Banners []Banner

	nodes    shelf[node]
	places   map[string]int // the number of the newest znode at each path
	watches  shelf[Watch]
	frames   shelf[Flight]
	log      shelf[Event]
	counters Counters
	phases   []Phase
	suspects []Banner       // what may be wrong
	since    []int          // when each suspect was first seen
	strange  map[string]int // by path: when the server first showed a znode that no client has reported
	asked    int            // when the server was last asked for its znodes; 0: never
	rests    int            // from when on the frames do not matter; 0: they do
}

// The limits on what is kept of things that are over.
const (
	keptFrames = 4000
	keptIdle   = 500 // of the frames that do not matter
	keptNodes  = 1000
	keptEvents = 300
	keptStates = 200 // of each client
	keptPhases = 1000
	keptWrites = 20
	keptBeats  = 1000 // of each client
)

// A node is a znode of the queue.
type node struct {
	Node
	path     string
	sequence int   // the number at the end of its name
	zxid     int64 // of its create; 0: unknown
}

func (n *node) over() bool { return n.To >= 0 }

// lastsTo reports whether the znode was not yet deleted at that moment. It may have been created
// later.
func (n *node) lastsTo(moment int) bool { return !n.over() || n.To >= moment }

// Counters count what has passed since the last action.
type Counters struct {
	Notifications int     `json:"notifications"`
	Requests      int     `json:"requests"`
	Lists         int     `json:"lists"` // how many of the requests are getChildren
	Writes        int     `json:"writes"`
	Bytes         int     `json:"bytes"` // sent to the clients
	Action        *Action `json:"action"`
	Since         int     `json:"since"` // when the action was
}

// New returns a Recorder for a lock of which nothing has been seen.
func New() *Recorder {
	return &Recorder{
		Clients: []*Figure{},
		Banners: []Banner{},
		nodes:   newShelf[node](),
		watches: newShelf[Watch](),
		frames:  newShelf[Flight](),
		log:     newShelf[Event](),
		places:  map[string]int{},
		strange: map[string]int{},
	}
}

// Acts notes an action of the user. The action begins a phase, and the counters start again.
func (r *Recorder) Acts(now int, action Action) {
	r.rests = 0
	r.counters = Counters{Action: &action, Since: now}
	r.phases = append(r.phases, Phase{At: now, Action: &action})
	r.phases = r.phases[max(0, len(r.phases)-keptPhases):]
	r.Say(Event{At: now, What: Acted, Action: &action})
}

// Rests notes that from a moment until the next action frames do not matter. Only the newest of them
// are kept, so that clients that poll do not push out the frames of the actions.
func (r *Recorder) Rests(from int) { r.rests = from }

// Phase begins a part of the story.
func (r *Recorder) Phase(now int, title lang.Text) {
	r.phases = append(r.phases, Phase{At: now, Title: title})
}

// Passed returns how many frames have passed so far. It counts only those that a page shows.
func (r *Recorder) Passed() int { return r.frames.next }

// Counters returns what has been counted since the last action.
func (r *Recorder) Counters() Counters { return r.counters }

// Quiet reports whether no frame is on its way.
func (r *Recorder) Quiet() bool {
	for _, f := range r.frames.kept {
		if f.To < 0 {
			return false
		}
	}
	return true
}

// Passes notes a frame, which is on its way while hold runs. During hold, the caller may release
// the mutex that guards the recorder.
func (r *Recorder) Passes(now func() int, c *Figure, f actor.Frame, hold func()) {
	i := r.departs(now(), c, f)
	hold()
	r.arrives(now(), i, c, f.Frame)
}

// departs notes that a frame is on its way, and returns its number, or -1 if a page does not show
// it.
func (r *Recorder) departs(now int, c *Figure, p actor.Frame) int {
	if p.Session != 0 && p.Session != c.Session {
		c.Session, c.Over = p.Session, 0
	}
	if p.Frame.Kind == wiretap.Request {
		c.beats = append(c.beats, now)
		c.beats = c.beats[max(0, len(c.beats)-keptBeats):]
		r.requested(now, c, p.Frame)
	}
	for _, path := range p.Watched {
		r.arm(now, c.Number, r.target(path))
	}
	switch p.Frame.Kind {
	case wiretap.Reply:
		r.replied(now, c, p.Frame)
	case wiretap.Notification:
		r.notified(now, c, p.Frame)
	}
	r.count(p.Frame)
	if !p.Frame.IsShown() {
		return -1
	}
	return r.flies(now, c, p.Frame)
}

// requested notes what a request implies before it reaches the server. On a new connection, the
// server has no watches for the client until the client sets them again.
func (r *Recorder) requested(now int, c *Figure, f wiretap.Frame) {
	if f.Op == wiretap.Connect || f.Op == wiretap.SetWatches {
		r.Unwatched(now, c)
	}
}

// replied notes what a reply says: the server has created a znode, deleted one, or set a watch.
func (r *Recorder) replied(now int, c *Figure, f wiretap.Frame) {
	tried := f.Op == wiretap.Create && f.Err != wiretap.NoNode && r.ours(f.Path) // not the create of the queue itself
	looked := f.Op == wiretap.GetChildren
	if tried || looked {
		c.Answered = true
	}
	if f.Err != wiretap.OK {
		return
	}
	switch f.Op {
	case wiretap.Create:
		r.made(now, f.Path, c.Number, f.Zxid)
	case wiretap.Delete:
		r.gone(now, f.Path, f.Zxid)
	default:
		if f.Watch && !f.Lost {
			r.arm(now, c.Number, r.target(f.Path))
		}
	}
}

// notified notes what a notification says: a watch has fired, and perhaps a znode was deleted.
func (r *Recorder) notified(now int, c *Figure, f wiretap.Frame) {
	target := r.target(f.Path)
	r.disarm(now, func(w *Watch) bool { return w.Client == c.Number && w.Node == target })
	mayBeANewOne := r.Znode
	if f.Event == wiretap.NodeDeleted && !mayBeANewOne {
		r.gone(now, f.Path, 0)
	}
}

// flies notes that a frame that a page shows is on its way, and returns its number.
func (r *Recorder) flies(now int, c *Figure, f wiretap.Frame) int {
	op, flags := int(f.Op), 0
	if f.Kind == wiretap.Notification {
		op = int(f.Event)
	}
	if f.Watch {
		flags |= SetsWatch
	}
	if f.Lost {
		flags |= GotLost
		r.loses(now, c, f)
	}
	i := r.frames.add(Flight{
		Client: c.Number, Kind: f.Kind, Op: op, Node: r.target(f.Path), From: now, To: -1,
		Bytes: f.Bytes, Names: f.Names, Err: int(f.Err), Flags: flags, At: now,
		idle: r.rests > 0 && now >= r.rests,
	})
	r.frames.forgetOne(i-keptIdle, func(f *Flight) bool { return f.idle && f.To >= 0 })
	r.frames.forget(keptFrames, func(f *Flight) bool { return f.To >= 0 })
	return i
}

// arrives notes that a frame has arrived.
func (r *Recorder) arrives(now, i int, c *Figure, f wiretap.Frame) {
	if flight := r.frames.change(i); flight != nil {
		flight.To = now
		if f.Kind != wiretap.Request {
			flight.At = now
		}
	}
	if !f.Lost {
		r.tell(now, c, f)
	}
}

// made notes that a znode was created. The znode may be known already: if its client is stopped,
// the server's list can show the znode before the client reports it.
func (r *Recorder) made(now int, path string, owner int, zxid int64) {
	if !r.ours(path) {
		return
	}
	if old := r.there(path); old != nil {
		if !r.Znode || zxid < old.zxid {
			return
		}
		r.gone(now, path, 0)
	}
	if owner >= 0 {
		r.Clients[owner].hadNode = true
	}
	slot := 2 * owner
	if r.newest(owner) != nil {
		slot++ // the client has another znode already
	}
	if r.Znode {
		slot = -1
	}
	before, hadOne := r.places[path]
	r.places[path] = r.nodes.add(
		node{Node{Name: pathpkg.Base(path), Owner: owner, Slot: slot, From: now, To: -1}, path, sequence(path), zxid},
	)
	if hadOne {
		r.watchesMove(before, r.places[path])
	}

	r.nodes.forget(keptNodes, func(n *node) bool {
		if n.over() && r.nodes.kept[r.places[n.path]] == n {
			delete(r.places, n.path)
		}
		return n.over()
	})
}

// watchesMove moves the watches that are still set from a deleted znode to the next znode at its
// path. A client may learn that its watch is set before the creator of the znode receives the reply
// to its create.
func (r *Recorder) watchesMove(from, to int) {
	for i, w := range r.watches.kept {
		if w.Node == from && w.To < 0 {
			r.watches.change(i).Node = to
		}
	}
}

// ours reports whether a path is that of a znode in the queue, or of the lock's single znode.
func (r *Recorder) ours(path string) bool {
	if r.Znode {
		return path == r.Dir
	}
	return pathpkg.Dir(path) == r.Dir
}

// there returns the znode that exists at a path now, or nil.
func (r *Recorder) there(path string) *node {
	if n := r.nodes.kept[r.target(path)]; n != nil && !n.over() {
		return n
	}
	return nil
}

// gone notes that a znode no longer exists. zxid is that of the delete, or 0 if only the absence is
// known. The replies to two clients may be reported in the wrong order: a delete that is older than
// the znode's create has deleted an earlier znode.
func (r *Recorder) gone(now int, path string, zxid int64) {
	n := r.there(path)
	if n == nil {
		return
	}
	isOfAnEarlierOne := zxid != 0 && zxid < n.zxid
	if isOfAnEarlierOne {
		return
	}
	i := r.target(path)
	r.nodes.change(i).To = now
	r.disarm(now, func(w *Watch) bool { return w.Node == i })
}

// Deleted notes that a client that is not recorded has deleted a znode, unless a later znode at its
// path has shown this already.
func (r *Recorder) Deleted(now int, n *node) {
	if r.there(n.path) == n {
		r.gone(now, n.path, 0)
	}
}

// arm notes a watch. It does not note a second watch of the same client on the same znode, because
// the server keeps the two as one.
func (r *Recorder) arm(now, client, node int) {
	for _, w := range r.watches.kept {
		isSame := w.Client == client && w.Node == node
		if isSame && w.To < 0 {
			return
		}
	}
	r.watches.add(Watch{Client: client, Node: node, From: now, To: -1})
	r.watches.forget(keptNodes, func(w *Watch) bool { return w.To >= 0 })
}

// Watches reports whether the server keeps a watch for a client.
func (r *Recorder) Watches(client int) bool {
	for _, w := range r.watches.kept {
		if w.Client == client && w.To < 0 {
			return true
		}
	}
	return false
}

func (r *Recorder) disarm(now int, which func(*Watch) bool) {
	for i, w := range r.watches.kept {
		if w.To < 0 && which(w) {
			r.watches.change(i).To = now
		}
	}
}

// Unwatched notes that a client's connection has ended, and all its watches with it.
func (r *Recorder) Unwatched(now int, c *Figure) {
	r.disarm(now, func(w *Watch) bool { return w.Client == c.Number })
}

// target returns the number of the newest znode at a path, -1 for the directory, and -2 for any
// other path.
func (r *Recorder) target(path string) int {
	if i, ok := r.places[path]; ok {
		return i
	}
	if r.isDirectory(path) {
		return -1
	}
	return -2
}

// isDirectory reports whether a path is the queue's directory, or the directory of the lock's
// single znode.
func (r *Recorder) isDirectory(path string) bool {
	if r.Znode {
		return path == pathpkg.Dir(r.Dir)
	}
	return path == r.Dir
}

// newest returns the newest znode of a client among those that still exist, or nil.
func (r *Recorder) newest(owner int) (last *node) {
	most := -1
	for i, n := range r.nodes.kept {
		isItsOwn := n.Owner == owner && !n.over()
		if isItsOwn && i > most {
			most, last = i, n
		}
	}
	return last
}

// Queue returns the znodes that exist, in the order of their sequence numbers.
func (r *Recorder) Queue() (all []*node) {
	for _, n := range r.nodes.kept {
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

// sequence returns the number at the end of a znode's name, or 0 if there is none.
func sequence(name string) int {
	n, _ := strconv.Atoi(digits.FindString(name))
	return n
}

func (r *Recorder) count(f wiretap.Frame) {
	if f.Class() != wiretap.OfLock {
		return
	}
	switch f.Kind {
	case wiretap.Notification:
		r.counters.Notifications++
	case wiretap.Request:
		r.counters.Requests++
		if f.Op.IsWrite() {
			r.counters.Writes++
		}
		if f.Op == wiretap.GetChildren {
			r.counters.Lists++
		}
	}
	if f.Kind != wiretap.Request {
		r.counters.Bytes += f.Bytes
	}
}

// Look asks the server which znodes exist, and reports whether it has answered. guard guards the
// recorder; the caller must not hold it.
func (r *Recorder) Look(guard sync.Locker, now func() int, server *zk.Conn) bool {
	asked := now()
	sessions, err := actor.Znodes(server, r.Dir, r.Znode, func(path string) bool {
		guard.Lock()
		defer guard.Unlock()
		return r.there(path) != nil
	})
	if err != nil {
		return false
	}
	guard.Lock()
	defer guard.Unlock()
	r.Looked(asked, now(), sessions)
	return true
}

// Looked corrects the recorder by what the server has shown: the paths that existed at some time
// since asked, with their sessions. In this way the recorder learns of changes that no client
// reports, such as the end of a session.
func (r *Recorder) Looked(asked, now int, sessions map[string]int64) {
	for _, n := range r.nodes.kept {
		wasThere := !n.over() && n.From < asked
		if _, isThere := sessions[n.path]; isThere || !wasThere {
			continue
		}
		end := r.firstWithout(n, now)
		r.gone(end, n.path, 0)
		e := Event{At: end, What: Gone, Znode: n.Name}
		if n.Owner >= 0 {
			owner := r.Clients[n.Owner]
			e.Clients = []int{n.Owner}
			inTrouble := owner.Process != Running || owner.Line != Up
			if inTrouble && owner.Over == 0 { // else the end of its session was told already
				e.What, owner.Over = Expired, end
			}
		}
		r.Say(e)
	}
	r.asked = asked
	for path := range r.strange {
		if _, there := sessions[path]; !there {
			delete(r.strange, path)
		}
	}
	for path, session := range sessions {
		first, again := r.strange[path]
		switch n := r.nodes.kept[r.target(path)]; {
		case n != nil && n.lastsTo(asked): // it is known
			delete(r.strange, path)
		case !again:
			r.strange[path] = now
		case first < asked:
			r.made(
				now,
				path,
				slices.IndexFunc(r.Clients, func(c *Figure) bool { return c.Session == session && session != 0 }),
				0,
			)
		}
	}
}

// firstWithout returns a moment before the first list that a client got without a znode, if the
// server showed the znode when it was last asked. If there is no such list, it returns now.
func (r *Recorder) firstWithout(gone *node, now int) int {
	first := now
	if gone.From >= r.asked {
		return first
	}
	for _, f := range r.frames.kept {
		isList := f.Kind == wiretap.Reply && f.Op == int(wiretap.GetChildren)
		isOfTheQueue := f.Err == int(wiretap.OK) && f.Node == -1
		isEarlier := f.From > r.asked && f.From < first
		if !isList || !isOfTheQueue || !isEarlier {
			continue
		}
		lacksOne := f.Names <= r.others(gone, f.From)
		if lacksOne {
			first = f.From - 1
		}
	}
	return first
}

// others returns how many other znodes, of those that existed when the server was last asked, still exist.
func (r *Recorder) others(than *node, at int) (n int) {
	for _, other := range r.nodes.kept {
		if other != than && other.From < r.asked && other.lastsTo(at) {
			n++
		}
	}
	return n
}
