package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"zklock/internal/actor"
	"zklock/internal/page"
	"zklock/internal/process"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// timeout is that of the sessions: short enough to wait for, when a client is dead.
const timeout = 5 * time.Second

// What a client's process and its line can be.
const (
	starting = "starting"
	running  = "running"
	stopped  = "stopped"
	dead     = "dead"

	up  = "up"
	cut = "cut"
)

// A client is a process with a session of its own.
type client struct {
	*service
	board   *board
	number  int
	process string // what it is
	line    string
	armed   []string // faults that wait for their moment
	child   *process.Process
	orders  chan string   // commands that it has not carried out
	gone    chan struct{} // closed when its frames are not to be held any more
	session int64
	joined  bool
	reads   bool
	mood    string // what it has told last
	shown   []page.Mood
	token   int64
	said    string

	answered   bool // by the server, since it called Lock
	lostCreate bool
	last       string // sentence of what arrived
	times      int
}

// row is what the page shows of a client besides its mood.
type row struct {
	Process string   `json:"process"`
	Line    string   `json:"line"`
	Armed   []string `json:"armed"`
	Session string   `json:"session"`
	Token   int64    `json:"token"`
	Said    string   `json:"said"`
}

func (c *client) row() row {
	r := row{c.process, c.line, append([]string{}, c.armed...), "", c.token, c.said}
	if c.session != 0 {
		r.Session = fmt.Sprintf("%#x", c.session)
	}
	return r
}

// disarm takes a fault off those that wait.
func (c *client) disarm(fault string) (was bool) {
	n := len(c.armed)
	c.armed = slices.DeleteFunc(c.armed, func(f string) bool { return f == fault })
	return len(c.armed) < n
}

// becomes shows how a client is: what it believes, and what has befallen it. The
// caller holds mu.
func (c *client) becomes(now int) {
	is := c.mood
	for _, fault := range []struct {
		befell bool
		word   string
	}{{c.process == stopped, "stopped"}, {c.line == cut, "cut off"}} {
		switch {
		case fault.befell && believes(c.mood):
			is = fault.word + ", believes it holds"
		case fault.befell && is == zktest.MoodIdle || fault.befell && is == zktest.MoodWaits:
			is = fault.word
		default:
			continue
		}
		break
	}
	switch c.process {
	case starting:
		is = starting
	case dead:
		is = "crashed"
	}
	if n := len(c.shown); n > 0 && c.shown[n-1].Is == is {
		return
	}
	c.shown = append(c.shown, page.Mood{At: now, Is: is})
	if len(c.shown) > 200 {
		c.shown = slices.Delete(c.shown, 0, 1)
	}
	c.board.moods[c.number] = true
}

func (c *client) name() string { return fmt.Sprintf("client %d", c.number) }

// begin starts the client's process, which joins the lock, and returns when it has ended.
func (c *client) begin() {
	words := &tail{}
	err := c.plays(words)
	if c.child != nil {
		_ = c.child.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends(err, words.panic())
}

// plays returns when the process has ended, or fails to begin.
func (c *client) plays(words *tail) error {
	c.starting <- struct{}{}
	started := sync.OnceFunc(func() { <-c.starting })
	defer started()
	b := c.board
	c.mu.Lock()
	ended := b.ended
	c.mu.Unlock()
	if ended {
		return nil
	}
	child, err := process.StartAs(b.program.part, words, b.program.path, b.program.args...)
	c.mu.Lock()
	c.child = child
	ended = b.ended
	c.mu.Unlock()
	if err != nil || ended {
		return err
	}
	child.Serve(director{c})
	var joined actor.Joined
	err = child.Call("Begin", actor.Place{Servers: c.server.Servers(), Timeout: timeout, Path: b.path}, &joined)
	started()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.session, c.joined, c.reads, b.rows = joined.Session, true, joined.Reads, true
	if c.process == starting {
		c.process = running
		c.becomes(c.us(time.Now()))
	}
	c.mu.Unlock()
	c.obeys()
	return nil
}

// ends notes that the process is no more. The caller holds mu.
func (c *client) ends(err error, words string) {
	c.let()
	if c.board.ended {
		return
	}
	now := c.us(time.Now())
	if c.process != dead {
		c.process, c.said = dead, strings.TrimSpace(words)
		if err != nil {
			c.said = strings.TrimSpace(err.Error() + "\n" + words)
		}
		first, _, _ := strings.Cut(c.said, "\n")
		c.board.say(now, "%d has ended by itself: %s.", c.number, first)
	}
	c.board.rows = true
	c.board.unwatched(now, c)
	c.becomes(now)
}

// let lets the client's frames go, now and later. The caller holds mu.
func (c *client) let() {
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
}

// leave ends the client in good order, if that can be.
func (c *client) leave() {
	c.mu.Lock()
	child, process := c.child, c.process
	c.let()
	c.mu.Unlock()
	if child == nil {
		return
	}
	if process == stopped {
		_ = child.Signal(syscall.SIGCONT)
	}
	if process == running || process == stopped {
		left := make(chan bool)
		go func() {
			defer close(left)
			_ = child.Call("Leave", true, new(bool))
		}()
		select {
		case <-left:
		case <-time.After(3 * time.Second):
			_ = child.Signal(syscall.SIGKILL)
			<-left
		}
	}
	_ = child.Close()
}

// A director is what a client's process can call.
type director struct{ *client }

// Pass returns when a frame may go on.
func (d director) Pass(p actor.Passage, _ *bool) error {
	c := d.client
	c.mu.Lock()
	if c.board.ended {
		c.mu.Unlock()
		return nil
	}
	i := c.board.departs(c.us(time.Now()), c, p)
	wait := c.holds(c, p.Frame)
	c.mu.Unlock()
	wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.board.ended {
		c.board.arrives(c.us(time.Now()), i, c, p.Frame)
	}
	return nil
}

// Becomes is told what the client believes of itself.
func (d director) Becomes(w actor.Word, _ *bool) error {
	c := d.client
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.us(time.Now())
	w.Said = strings.ReplaceAll(w.Said, c.board.path, "/lock")
	c.board.tells(now, c, c.mood, w)
	c.mood, c.said, c.token = w.Mood, w.Said, w.Token
	c.board.rows = true
	c.becomes(now)
	return nil
}

// Put is a write to the store.
func (d director) Put(token int64, _ *bool) error {
	c := d.client
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.board.store.put(c.number, token)
	c.board.stored = true
	c.board.say(c.us(time.Now()), "%d writes to the store with the token %d: %s.", c.number, token, w.Text)
	return nil
}

// lateList is by how much a delayed list comes late.
const lateList = 3 * time.Second

// holds begins to hold a frame up, and returns what waits for its end. The caller
// holds mu.
func (s *service) holds(c *client, f wiretap.Frame) (wait func()) {
	if actor.Aside(f) {
		return func() {}
	}
	var late <-chan time.Time
	if f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren && c.disarm("delaylist") {
		late = time.After(lateList)
		c.board.rows = true
		c.board.say(c.us(time.Now()), "The list for %d comes late: in %v.", c.number, lateList)
	}
	var let chan struct{}
	if s.pace != real {
		let = make(chan struct{})
		s.held, s.heldNews = append(s.held, let), true
		if s.pace == slow {
			s.after(slowly, let)
		}
	}
	return func() {
		if late != nil {
			select {
			case <-late:
			case <-c.gone:
			}
		}
		if let != nil {
			select {
			case <-let:
			case <-c.gone:
				s.mu.Lock()
				s.release(let)
				s.mu.Unlock()
			}
		}
	}
}

// after releases a frame later, unless all stand still then.
func (s *service) after(d time.Duration, let chan struct{}) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pace != paused {
			s.release(let)
		}
	})
}

// release lets a frame go on, if it is still held. The caller holds mu.
func (s *service) release(let chan struct{}) {
	if i := slices.Index(s.held, let); i >= 0 {
		s.held, s.heldNews = slices.Delete(s.held, i, i+1), true
		close(let)
	}
}

// tail keeps the last that was written to it.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if len(t.text) > 8000 {
		t.text = t.text[len(t.text)-8000:]
	}
	return len(b), nil
}

// panic is what the process has died of, if it has panicked.
func (t *tail) panic() string {
	text := string(t.text)
	text, _, _ = strings.Cut(text[max(0, strings.Index(text, "panic: ")):], "\n\ngoroutine ")
	return text
}
