package play

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

	"zklock/internal/exercise"
	"zklock/internal/explore"
	"zklock/internal/lab/book"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A service is what the page shows and commands.
type service struct {
	began    time.Time
	server   *zkserver.Server
	ensemble *zkserver.Ensemble // nil: there is one server
	observer *zk.Conn
	root     string // of all locks
	repo     string // the root of the repository
	book     func() (book.Files, error)
	yours    string // where the learner's packages are
	scratch  string // a folder for the programs that are built
	ctx      context.Context
	jobs     chan func()   // what takes time, one after the other
	starting chan struct{} // has room for as many clients as start at a time

	mu      sync.Mutex
	sides   [2]*side
	course  course
	wanted  int // lesson, which is to be laid; 0: none
	swept   sweeps
	pages   int // that are open
	servers []peer
	pace    string
	moves   string // the last pace at which frames went
	rests   bool   // the wire is held, since nobody has done anything for a while
	acted   time.Time
	rest    time.Duration // after how much time without a command that is so
	passed  int           // frames, when that was looked at last
	held    []*held       // frames on the wire, in the order of their coming
	changed *sync.Cond    // what they wait for has
}

type peer struct {
	N      int    `json:"n"`
	State  string `json:"state"`
	Leader bool   `json:"leader"`
}

// most is how many clients a side can have.
const most = 200

// A side of the page is a lock, and its clients. All of it is guarded by the service's mu.
type side struct {
	*service
	*stage.Recorder
	locks.Choice
	saved     string // what the exercises were when it was laid
	building  bool
	complaint string // of the compiler
	program   locks.Program
	clients   []*client
	wanted    int            // clients, once it is built
	left      sync.WaitGroup // has each client until its process has ended
	ended     bool           // another lock has been laid in its place
}

// now is the moment, in microseconds since the service began.
func (s *service) now() int { return int(time.Since(s.began).Microseconds()) }

// begin begins a service on a server, which goes on until ctx ends. Then stop ends what is left.
func begin(
	ctx context.Context,
	repo, yours string,
	server *zkserver.Server,
	ensemble *zkserver.Ensemble,
) (s *service, stop func() error, err error) {
	s = &service{
		began:    time.Now(),
		server:   server,
		ensemble: ensemble,
		pace:     real,
		moves:    real,
		repo:     repo,
		yours:    yours,
		book:     sync.OnceValues(func() (book.Files, error) { return book.Build(repo) }),
		root:     fmt.Sprintf("/zklock-play-%08x", rand.Uint32()),
		jobs:     make(chan func(), 10),
		starting: make(chan struct{}, 8),
		servers:  []peer{{1, stage.Up, true}},
		acted:    time.Now(),
		rest:     rest,
	}
	s.leaves()
	s.changed = sync.NewCond(&s.mu)
	if ensemble != nil {
		s.servers = []peer{{1, stage.Up, false}, {2, stage.Up, false}, {3, stage.Up, false}}
	}
	if s.scratch, err = os.MkdirTemp("", "zklock-play-"); err != nil {
		return nil, nil, err
	}
	if s.observer, err = zktest.Dial(server.Servers(), stage.Timeout, net.DialTimeout); err == nil {
		_, err = s.create(s.root, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(s.scratch))
	}
	var end func()
	s.ctx, end = context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for tick := time.Tick(300 * time.Millisecond); ; {
			select {
			case do := <-s.jobs:
				do()
			case <-tick:
				s.rebuild()
			case <-s.ctx.Done():
				return
			}
		}
	})
	running.Go(func() { s.every(100*time.Millisecond, s.look) })
	running.Go(func() { s.every(100*time.Millisecond, s.guide) })
	running.Go(func() { s.every(time.Second, s.roles) })
	running.Go(func() { s.every(time.Second, s.idles) })
	return s, func() error {
		end()
		if ensemble != nil { // all that is there goes with the servers, of which some may not answer
			s.observer.Close()
		}
		running.Wait()
		s.lay(0, locks.Choice{}, 0)
		s.lay(1, locks.Choice{}, 0)
		if ensemble == nil {
			s.clean(s.root)
			s.observer.Close()
		}
		return os.RemoveAll(s.scratch)
	}, nil
}

func (s *service) create(path string, flags int32) (made string, err error) {
	return s.observer.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
}

func (s *service) every(d time.Duration, do func()) {
	for tick := time.Tick(d); ; {
		select {
		case <-tick:
			do()
		case <-s.ctx.Done():
			return
		}
	}
}

// await returns when something is so, at the latest after a while, or when the service ends.
func (s *service) await(patience time.Duration, is func() bool) {
	late := time.Now().Add(patience)
	for time.Now().Before(late) && s.ctx.Err() == nil {
		s.mu.Lock()
		done := is()
		s.mu.Unlock()
		if done {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// clean removes what is left at the server. What belongs to dead clients goes with
// their sessions.
func (s *service) clean(path string) {
	for late := time.Now().Add(2 * stage.Timeout); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
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

// lay puts a lock on a side, with so many clients; no lock empties it. Only one job at a
// time lays.
func (s *service) lay(at int, l locks.Choice, clients int) {
	var fresh *side
	if l.Key != "" {
		fresh = &side{service: s, Recorder: stage.New(), Choice: l, wanted: clients, saved: s.saved(), building: true}
		fresh.Lasts = stage.Timeout
	}
	s.mu.Lock()
	old := s.sides[at]
	s.sides[at] = fresh
	if old != nil {
		old.ended = true
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	if old != nil {
		for _, c := range old.clients {
			old.left.Go(c.leave)
		}
		old.left.Wait()
	}
	if fresh == nil {
		return
	}
	p, err := l.Program(s.ctx, s.repo, s.yours, s.scratch)
	var dir, path string
	if err == nil {
		dir, path, err = s.place(l, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh.building = false
	if err != nil {
		fresh.complaint = err.Error()
		return
	}
	fresh.program, fresh.Dir, fresh.Path, fresh.Znode = p, dir, path, p.Lock.Znode
	fresh.fill()
}

// place makes a place at the server: the queue, and what the clients are given.
func (s *service) place(l locks.Choice, p locks.Program) (dir, path string, err error) {
	dir, err = s.create(s.root+"/", zk.FlagSequence)
	path = dir + "/lock"
	if l.Key != "W5" { // whose locks have one queue, beside them
		dir = path
		if err == nil && !p.Lock.Znode { // making the queue is no part of what is shown
			_, err = s.create(path, 0)
		}
	}
	if err != nil {
		err = fmt.Errorf("cannot create the znodes for the lock: %v", err)
	}
	return dir, path, err
}

// fill brings the clients that are wanted, once the lock is built. The caller holds mu.
func (b *side) fill() {
	for b.Dir != "" && len(b.clients) < b.wanted {
		c := &client{Figure: b.Add(b.now()), side: b, orders: make(chan string, 20)}
		b.clients = append(b.clients, c)
		b.left.Go(c.plays)
	}
}

// rebuild lays the learner's locks anew that have been saved.
func (s *service) rebuild() {
	for at, b := range s.sides {
		isMine := b != nil && b.IsMine()
		if isMine && b.saved != s.saved() {
			s.mu.Lock()
			wanted := b.wanted
			s.mu.Unlock()
			s.lay(at, b.Choice, wanted)
		}
	}
}

// saved changes when a file of an exercise is saved.
func (s *service) saved() string { return exercise.LastSaved(filepath.Join(s.yours, "step*")) }

// look asks the server what there is, and looks for what is wrong.
func (s *service) look() {
	s.mu.Lock()
	sides := slices.DeleteFunc(s.laid(), func(b *side) bool { return b.Dir == "" })
	s.mu.Unlock()
	for _, b := range sides {
		if b.Look(&s.mu, s.now, s.observer) {
			s.mu.Lock()
			b.Warn(s.now())
			s.mu.Unlock()
		}
	}
	s.looksForEnds(sides)
}

// looksForEnds asks the server which sessions it has ended, if a client has been silent for
// long.
func (s *service) looksForEnds(sides []*side) {
	isSilent := func(b *side) bool {
		return slices.ContainsFunc(b.clients, func(c *client) bool { return c.MayBeOver(s.now()) })
	}
	s.mu.Lock()
	asks := slices.ContainsFunc(sides, isSilent)
	s.mu.Unlock()
	if !asks {
		return
	}
	sessions, err := s.server.Sessions()
	hasAnswered := err == nil && len(sessions) > 0 // the observer has one always
	if !hasAnswered {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range sides {
		for _, c := range b.clients {
			_, lives := sessions[c.Session]
			if !lives && c.MayBeOver(s.now()) {
				b.Ends(s.now(), c.Figure)
			}
		}
	}
}

// laid are the sides that have a lock. The caller holds mu, or is a job.
func (s *service) laid() []*side {
	return slices.DeleteFunc(slices.Clone(s.sides[:]), func(b *side) bool { return b == nil })
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
		s.servers[i].Leader = err == nil && leader.ID == s.servers[i].N
	}
}

// A reader is a page that is open.
type reader struct {
	told   *stage.Told
	sides  [2]*side // as far as it knows
	boards [2]*stage.Told
}

// news is what the reader does not know, "" if it knows all.
func (s *service) news(r *reader) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := r.told.Changes(
		map[string]any{"pace": s.pace, "rests": s.rests, "held": len(s.held), "course": s.course, "servers": s.servers,
			"swept": s.swept, "pages": s.pages},
	)
	for at, b := range s.sides {
		var of map[string]any // nil: the side is empty
		laid := b != r.sides[at]
		if laid {
			r.sides[at], r.boards[at] = b, stage.Nothing()
		}
		if b != nil {
			for _, c := range b.clients {
				c.Can = c.can()
				c.Heard = 0
				inTrouble := c.Process != stage.Running || c.Line != stage.Up
				if s.course.Lesson > 0 || inTrouble { // else it would be news all the time
					c.Heard = c.LastHeard()
				}
			}
			of = b.News(
				r.boards[at],
				map[string]any{"lock": b.Key, "name": b.Name, "lesson": b.Lesson, "step": stepOf(b.program.Lock),
					"building": b.building, "complaint": b.complaint},
			)
		}
		if laid || len(of) > 0 {
			news[[]string{"left", "right"}[at]] = of
		}
	}
	if len(news) == 0 {
		return ""
	}
	news["now"] = s.now()
	text, err := json.Marshal(news)
	if err != nil {
		panic(err) // it is ours
	}
	return string(text)
}

// stepOf is the step that a lock is, "" if it is none.
func stepOf(l locks.Entry) string {
	if l.Beside {
		return ""
	}
	return l.Key
}

// Part begins the part of a client in a process that was started for it.
func Part() {
	for _, s := range locks.Every {
		explore.Acts(s)
	}
}
