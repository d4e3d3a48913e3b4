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

// A service has everything that the page shows, and carries out the page's commands.
type service struct {
	began    time.Time
	server   *zkserver.Server
	ensemble *zkserver.Ensemble // nil: there is one server
	observer *zk.Conn
	root     string // the path of the znode under which all locks are
	repo     string // the root of the repository
	book     func() (book.Files, error)
	yours    string // where the learner's packages are
	scratch  string // a folder for the programs that are built
	ctx      context.Context
	jobs     chan func()   // work that takes time, done one after the other
	starting chan struct{} // its capacity is how many clients may start at the same time

	mu      sync.Mutex
	sides   [2]*side
	course  course
	wanted  int // the lesson that a job will set up; 0: none
	swept   sweep
	finale  finale
	pages   int // how many are open
	servers []peer
	pace    string
	moves   string        // the last pace that was real or slow
	rests   bool          // the service holds the wire, because there was no command for a while
	acted   time.Time     // when the last command came
	rest    time.Duration // how long the wire goes on without a command
	passed  int           // how many frames had passed when idles last looked
	held    []*held       // frames on the wire, in the order of their arrival
	changed *sync.Cond    // signals that what these frames wait for may have changed
}

type peer struct {
	N      int    `json:"n"`
	State  string `json:"state"`
	Leader bool   `json:"leader"`
}

// most is how many clients a side can have.
const most = 200

// A side of the page is a lock and its clients. The service's mu guards all of it.
type side struct {
	*service
	*stage.Recorder
	locks.Choice
	saved     string // the service's saved when the lock was put here
	building  bool
	complaint string // why there is no lock, such as an error of the compiler
	program   locks.Program
	clients   []*client
	wanted    int            // how many clients there will be once the lock is built
	left      sync.WaitGroup // counts the clients whose process has not ended, and the commands that take time
	ended     bool           // another lock has replaced this one, or the side was emptied
}

// now returns the present time, in microseconds since the service began.
func (s *service) now() int { return int(time.Since(s.began).Microseconds()) }

// begin starts a service on a server. The service runs until ctx ends or stop is called. stop also
// ends the clients, and cleans up.
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
		if ensemble != nil { // no cleanup at the servers: their data is removed with them, and some may not answer
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

// await calls the function is until it returns true, but not longer than patience, and not after
// the service has ended. It holds mu during each call.
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

// clean deletes a znode and all znodes below it. It retries for a while, because the znodes of dead
// clients are deleted only when their sessions expire.
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

// lay puts a lock on a side, with so many clients. The zero Choice empties the side. Only one
// goroutine at a time calls lay.
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

// place creates the znodes for a lock. It returns the directory of the queue, and the path that the
// clients get.
func (s *service) place(l locks.Choice, p locks.Program) (dir, path string, err error) {
	dir, err = s.create(s.root+"/", zk.FlagSequence)
	path = dir + "/lock"
	if l.Key != "W5" { // the mistake W5 has one queue for all locks, beside their paths
		dir = path
		if err == nil && !p.Lock.Znode { // the page does not show how the queue is created
			_, err = s.create(path, 0)
		}
	}
	if err != nil {
		err = fmt.Errorf("cannot create the znodes for the lock: %v", err)
	}
	return dir, path, err
}

// fill starts the clients that are missing, once the lock is built. The caller holds mu.
func (b *side) fill() {
	for b.Dir != "" && len(b.clients) < b.wanted {
		c := &client{Figure: b.Add(b.now()), side: b, orders: make(chan string, 20)}
		b.clients = append(b.clients, c)
		b.left.Go(c.plays)
	}
}

// rebuild builds the learner's locks again when a file of an exercise has been saved.
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

// saved returns a text that changes when a file of an exercise is saved.
func (s *service) saved() string { return exercise.LastSaved(filepath.Join(s.yours, "step*")) }

// look asks the server which znodes exist, and looks for what is wrong.
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

// looksForEnds asks the server which sessions it has ended, if a client has been silent for long.
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
	hasAnswered := err == nil && len(sessions) > 0 // the observer always has a session
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

// laid returns the sides that have a lock. The caller holds mu, or is a job.
func (s *service) laid() []*side {
	return slices.DeleteFunc(slices.Clone(s.sides[:]), func(b *side) bool { return b == nil })
}

// roles asks the servers which of them leads.
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
	sides  [2]*side // the sides that it knows
	boards [2]*stage.Told
}

// news returns what the reader does not know yet, or "" if it knows everything.
func (s *service) news(r *reader) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := r.told.Changes(
		map[string]any{"pace": s.pace, "rests": s.rests, "held": len(s.held), "course": s.course, "servers": s.servers,
			"swept": s.swept, "finale": s.finale, "pages": s.pages},
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
				if s.course.Lesson > 0 || inTrouble { // otherwise it would be news all the time
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
		panic(err) // our own data can always be encoded
	}
	return string(text)
}

// stepOf returns the key of the step that a lock is, or "" if the lock is not a step.
func stepOf(l locks.Entry) string {
	if l.Beside {
		return ""
	}
	return l.Key
}

// Part plays the role of a client if this process was started for that. Otherwise it does nothing.
func Part() {
	for _, s := range locks.Every {
		explore.Acts(s)
	}
}
