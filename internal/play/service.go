package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/page"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// most is how many clients a board can have.
const most = 200

// What the wire does.
const (
	real   = "real"
	slow   = "slow"
	paused = "pause"

	slowly = 700 * time.Millisecond
)

// A service is what the page shows and commands.
type service struct {
	began    time.Time
	server   *zkserver.Server
	ensemble *zkserver.Ensemble // nil: there is one server
	observer *zk.Conn
	root     string // of all locks
	repo     string // the root of the repository
	mine     string // where the learner's exercises are; laid out as that
	scratch  string // a folder for the programs that are built
	ctx      context.Context
	running  sync.WaitGroup // what has to end before the service has

	jobs   chan func() // what takes time, one after the other
	laying sync.Mutex  // one change of boards at a time
	over   bool        // no board is laid any more; guarded by laying

	mu       sync.Mutex
	boards   [2]*board
	laid     [2]bool // anew, which is news
	pace     string
	held     []chan struct{} // frames on the wire, in the order of their coming
	heldNews bool
	opening  int
	servers  []peer
	peerNews bool
	dirs     int           // made so far
	starting chan struct{} // has room for as many clients as start at a time
	readers  map[chan []byte]bool
}

type peer struct {
	N      int    `json:"n"`
	State  string `json:"state"`
	Leader bool   `json:"leader"`
}

// us is a moment, in microseconds since the service began.
func (s *service) us(t time.Time) int { return int(t.Sub(s.began).Microseconds()) }

// begin begins a service on a server, which goes on until ctx ends. Then stop ends what is left.
func begin(ctx context.Context, repo, mine string, server *zkserver.Server, ensemble *zkserver.Ensemble) (s *service, stop func() error, err error) {
	s = &service{
		began: time.Now(), server: server, ensemble: ensemble, ctx: ctx, pace: real, repo: repo, mine: mine,
		root: fmt.Sprintf("/zklock-play-%08x", rand.Uint32()), readers: map[chan []byte]bool{}, starting: make(chan struct{}, 8), jobs: make(chan func(), 10), servers: []peer{{1, "up", true}},
	}
	if ensemble != nil {
		s.servers = []peer{{1, "up", false}, {2, "up", false}, {3, "up", false}}
	}
	if s.scratch, err = os.MkdirTemp("", "zklock-play-"); err != nil {
		return nil, nil, err
	}
	if s.observer, err = zktest.Dial(server.Servers(), timeout, net.DialTimeout); err == nil {
		_, err = s.observer.Create(s.root, nil, 0, zk.WorldACL(zk.PermAll))
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(s.scratch))
	}
	ctx, end := context.WithCancel(ctx)
	s.running.Go(func() {
		for {
			select {
			case do := <-s.jobs:
				do()
			case <-ctx.Done():
				return
			}
		}
	})
	s.running.Go(func() { s.every(ctx, 10*time.Millisecond, s.flush) })
	s.running.Go(func() { s.every(ctx, 100*time.Millisecond, s.look) })
	s.running.Go(func() { s.every(ctx, 300*time.Millisecond, s.rebuild) })
	s.running.Go(func() { s.every(ctx, time.Second, s.roles) })
	return s, func() error {
		s.setPace(real)
		s.laying.Lock()
		s.over = true
		s.laying.Unlock()
		s.lay(0, lock{}, 0, nil)
		s.lay(1, lock{}, 0, nil)
		end()
		s.running.Wait()
		s.clean(s.root)
		s.observer.Close()
		return os.RemoveAll(s.scratch)
	}, nil
}

func (s *service) every(ctx context.Context, d time.Duration, do func()) {
	for tick := time.Tick(d); ; {
		select {
		case <-tick:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// clean removes what is left at the server. What belongs to dead clients goes with
// their sessions.
func (s *service) clean(path string) {
	for late := time.Now().Add(2 * timeout); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		names, _, err := s.observer.Children(path)
		if err != nil {
			return
		}
		for _, name := range names {
			s.clean(path + "/" + name)
		}
		if s.observer.Delete(path, -1) == nil {
			return
		}
	}
}

// lay puts a lock on a board, with so many clients. No lock empties it. Its program is
// built if there is none.
func (s *service) lay(at int, l lock, clients int, built *program) {
	s.laying.Lock()
	defer s.laying.Unlock()
	var b *board
	if l.Key != "" && !s.over {
		b = &board{service: s, lock: l, at: at, nodes: newShelf[node](), watches: newShelf[page.Watch](), frames: newShelf[page.Flight](),
			present: map[int]*node{}, places: map[string]int{}, armed: map[[2]int]int{}, moods: map[int]bool{}, strange: map[string]int{}, saved: s.saved(), wanted: clients}
	}
	s.mu.Lock()
	old := s.boards[at]
	if old != nil {
		old.ended = true
	}
	s.boards[at], s.laid[at] = b, true
	s.mu.Unlock()
	if old != nil {
		var leaving sync.WaitGroup
		for _, c := range old.clients {
			leaving.Go(c.leave)
		}
		leaving.Wait()
		old.left.Wait()
	}
	if b != nil {
		s.furnish(b, built)
	}
}

// furnish gives a board its program, its place at the server and its clients.
func (s *service) furnish(b *board, built *program) {
	if built == nil {
		p, err := s.compile(b)
		if err != nil {
			return
		}
		built = &p
	}
	s.mu.Lock()
	s.dirs++
	home := fmt.Sprintf("%s/%d", s.root, s.dirs)
	s.mu.Unlock()
	path, znode := home+"/lock", built.step == "1"
	_, err := s.observer.Create(home, nil, 0, zk.WorldACL(zk.PermAll))
	dir := path
	if b.Key == "W5" { // all locks have one queue, beside them
		dir = home
	} else if err == nil && !znode { // making the queue is no part of what is shown
		_, err = s.observer.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.program, b.path, b.dir, b.znode = *built, path, dir, znode
	if err != nil {
		b.say(s.us(time.Now()), "the server does not make a place for the lock: %v", err)
	}
	b.add(b.wanted)
}

// compile builds the program of a board's lock.
func (s *service) compile(b *board) (program, error) {
	tell := func(making bool, build string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b.making, b.build, b.built = making, build, true
	}
	tell(true, "")
	p, err := b.lock.program(s.ctx, s.repo, s.mine, s.scratch)
	if err != nil {
		tell(false, err.Error())
	} else {
		tell(false, "")
	}
	return p, err
}

// rebuild builds the learner's lock anew when it has been saved.
func (s *service) rebuild() {
	for at := range s.boards {
		s.mu.Lock()
		b := s.boards[at]
		s.mu.Unlock()
		if b == nil || !b.lock.mine() {
			continue
		}
		now := s.saved()
		s.mu.Lock()
		fresh := b.saved == now || b.making
		if !fresh {
			b.saved = now
		}
		s.mu.Unlock()
		if fresh {
			continue
		}
		if p, err := s.compile(b); err == nil {
			s.mu.Lock()
			n := max(len(b.clients), b.wanted)
			still := s.boards[at] == b
			s.mu.Unlock()
			if still {
				s.lay(at, b.lock, n, &p)
			}
		}
	}
}

// saved changes when a file of an exercise is saved.
func (s *service) saved() (times string) {
	for _, home := range homes {
		paths, _ := filepath.Glob(filepath.Join(s.mine, home, "exercise", "*.go"))
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				times += fmt.Sprintln(path, info.ModTime(), info.Size())
			}
		}
	}
	return times
}

// add brings clients to the board. The caller holds mu.
func (b *board) add(n int) {
	if b.program.path == "" { // not built yet
		b.wanted = min(b.wanted+n, most)
		return
	}
	for range min(n, most-len(b.clients)) {
		c := &client{service: b.service, board: b, number: len(b.clients), process: starting, line: up, orders: make(chan string, 20), gone: make(chan struct{})}
		b.clients = append(b.clients, c)
		b.rows = true
		c.becomes(b.us(time.Now()))
		b.left.Go(c.begin)
	}
}

// look asks the server what there is, and looks for what is wrong.
func (s *service) look() {
	for _, b := range s.here() {
		s.mu.Lock()
		dir, asked, known := b.dir, s.us(time.Now()), map[string]bool{}
		for _, n := range b.present {
			known[n.path] = true
		}
		s.mu.Unlock()
		if dir == "" {
			continue
		}
		names, err := []string{dir}, error(nil)
		if !b.znode {
			if names, _, err = s.observer.Children(dir); err != nil {
				continue
			}
			for i, name := range names {
				names[i] = dir + "/" + name
			}
		}
		owners := map[string]int64{}
		for _, path := range names {
			if known[path] && !b.znode {
				owners[path] = 1
			} else if there, stat, err := s.observer.Exists(path); err != nil {
				return
			} else if there {
				owners[path] = stat.EphemeralOwner
			}
		}
		s.mu.Lock()
		now := time.Now()
		b.looked(asked, s.us(now), owners)
		b.warn(now)
		s.mu.Unlock()
	}
}

// here are the boards that are laid.
func (s *service) here() (all []*board) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.boards {
		if b != nil {
			all = append(all, b)
		}
	}
	return all
}

// roles asks who leads.
func (s *service) roles() {
	if s.ensemble == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 500*time.Millisecond)
	defer cancel()
	leader, _, err := s.ensemble.Roles(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.servers {
		leads := err == nil && leader.ID == s.servers[i].N
		s.peerNews = s.peerNews || leads != s.servers[i].Leader
		s.servers[i].Leader = leads
	}
}

// A message tells the page.
type message map[string]any

// flush tells the page what is new.
func (s *service) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.us(time.Now())
	all := message{}
	if s.heldNews {
		all["held"], all["pace"], s.heldNews = len(s.held), s.pace, false
	}
	if s.peerNews {
		all["servers"], s.peerNews = s.servers, false
	}
	s.tell(now, all)
	for at, b := range s.boards {
		switch {
		case s.laid[at]:
			s.laid[at] = false
			m := message{"board": at, "laid": nil, "opening": s.opening}
			if b != nil {
				b.news()
				m["laid"] = b.whole()
			}
			s.tell(now, m)
		case b != nil:
			if m := b.news(); len(m) > 0 {
				m["board"] = at
				s.tell(now, m)
			}
		}
	}
}

// tell sends a message to all who read. Who is too slow has to come again.
func (s *service) tell(now int, m message) {
	if len(m) == 0 || len(s.readers) == 0 {
		return
	}
	m["now"] = now
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // it is ours
	}
	for r := range s.readers {
		select {
		case r <- text:
		default:
			delete(s.readers, r)
			close(r)
		}
	}
}

// read returns all there is, and what comes from now on, until stop is called.
func (s *service) read() (news chan []byte, stop func()) {
	s.flush() // to those who read already
	s.mu.Lock()
	defer s.mu.Unlock()
	news = make(chan []byte, 512)
	boards := []any{nil, nil}
	for at, b := range s.boards {
		if b != nil {
			boards[at] = b.whole()
		}
	}
	text, err := json.Marshal(message{"snapshot": message{"now": s.us(time.Now()), "max": most, "pace": s.pace, "held": len(s.held), "opening": s.opening,
		"locks": locks, "openings": openings, "servers": s.servers, "boards": boards}})
	if err != nil {
		panic(err)
	}
	news <- text
	s.readers[news] = true
	return news, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.readers, news)
	}
}

// news tells what of the board is new.
func (b *board) news() message {
	m, story := message{}, message{}
	if nodes := b.nodes.told(); len(nodes) > 0 {
		story["nodes"], m["ls"] = nodes, b.ls()
	}
	if watches := b.watches.told(); len(watches) > 0 {
		story["watches"] = watches
	}
	if frames := b.frames.told(); len(frames) > 0 {
		story["frames"] = frames
	}
	if len(b.moods) > 0 {
		clients := map[int]page.Client{}
		for i := range b.moods {
			shown := b.clients[i].shown
			clients[i] = page.Client{Name: b.clients[i].name(), Slot: 2 * i, Moods: shown[len(shown)-1:]}
		}
		story["clients"], story["slots"] = clients, 2*len(b.clients)
		clear(b.moods)
	}
	if len(story) > 0 {
		m["story"] = story
	}
	if b.rows {
		m["rows"], m["reads"] = b.allRows(), b.reads()
	}
	if b.counted {
		m["counters"] = b.counters
	}
	if b.said > 0 {
		m["log"] = b.lines[:b.said]
	}
	if b.warnings {
		m["banners"] = append([]banner{}, b.warned...)
	}
	if b.stored {
		m["store"] = b.store
	}
	if b.built {
		m["build"], m["building"] = b.build, b.making
	}
	b.rows, b.counted, b.said, b.warnings, b.stored, b.built = false, false, 0, false, false, false
	return m
}

// whole tells all of the board.
func (b *board) whole() message {
	clients := map[int]page.Client{}
	for i, c := range b.clients {
		clients[i] = page.Client{Name: c.name(), Slot: 2 * i, Moods: c.shown[len(c.shown)-1:]}
	}
	return message{"lock": b.Key, "name": b.Name, "lesson": b.Lesson, "chapter": b.chapter(), "reads": b.reads(),
		"story": message{"clients": clients, "nodes": b.nodes, "watches": b.watches, "frames": b.frames, "slots": 2 * len(b.clients)},
		"rows":  b.allRows(), "ls": b.ls(), "counters": b.counters, "log": append([]line{}, b.lines...),
		"banners": append([]banner{}, b.warned...), "store": b.store, "build": b.build, "building": b.making}
}

// reads tells whether the lock has readers.
func (b *board) reads() bool {
	return slices.ContainsFunc(b.clients, func(c *client) bool { return c.reads })
}

func (b *board) allRows() []row {
	all := []row{}
	for _, c := range b.clients {
		all = append(all, c.row())
	}
	return all
}

// chapter is the address of the chapter that the lock belongs to.
func (b *board) chapter() string {
	if b.program.step != "" {
		return "/chapter/" + b.program.step
	}
	return b.Chapter
}
