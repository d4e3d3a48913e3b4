package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"zklock/internal/zktest"
)

// A command is what the page asks for. What is wrong with it is an error for the user.
type command struct {
	Do     string `json:"do"`
	N      int    `json:"n"`
	Client int    `json:"client"` // -1: all whom it concerns
	Board  *int   `json:"board"`  // nil: both
	Lock   string `json:"lock"`
	Pace   string `json:"pace"`
	Fault  string `json:"fault"`
}

func (s *service) do(c command) error {
	switch c.Do {
	case "choose":
		if c.Board == nil || *c.Board != 0 && *c.Board != 1 {
			return errors.New("there are the boards 0 and 1")
		}
		return s.choose(*c.Board, c.Lock)
	case "clear":
		return s.goes(func() {
			for _, b := range s.here() {
				s.lay(b.at, b.lock, 0, nil)
			}
		})
	case "opening":
		if c.N < 1 || c.N > len(openings) {
			return fmt.Errorf("there are the openings 1 to %d", len(openings))
		}
		return s.goes(func() { s.open(c.N) })
	case "pace":
		if !slices.Contains([]string{real, slow, paused, "step"}, c.Pace) {
			return fmt.Errorf("there is no pace %q", c.Pace)
		}
		s.setPace(c.Pace)
	case "server":
		return s.befall(c.N, c.Fault)
	case "add":
		if c.N < 1 || c.N > most {
			return fmt.Errorf("1 to %d clients can be added", most)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		added := false
		for _, b := range s.boards {
			if b != nil && c.on(b) && len(b.clients) < most {
				b.acts(s.us(time.Now()), fmt.Sprintf("add %d", c.N))
				b.add(c.N)
				added = true
			}
		}
		if !added {
			return fmt.Errorf("no board has room: %d clients are the most", most)
		}
	default:
		return s.each(c)
	}
	return nil
}

// on tells whether a command is for a board.
func (c command) on(b *board) bool { return c.Board == nil || *c.Board == b.at }

// goes does something that takes time, after what is to be done before it.
func (s *service) goes(do func()) error {
	select {
	case s.jobs <- do:
		return nil
	default:
		return errors.New("there is much to be done already: wait a moment")
	}
}

// choose lays a lock on a board, with as many clients as there were, or as the other
// board has.
func (s *service) choose(at int, key string) error {
	var l lock
	if key != "" || at == 0 {
		var err error
		if l, err = find(key); err != nil {
			return err
		}
	}
	return s.goes(func() {
		n := 0
		for _, b := range s.here() {
			s.mu.Lock()
			n, s.opening = max(n, len(b.clients), b.wanted), 0
			s.mu.Unlock()
		}
		s.lay(at, l, n, nil)
	})
}

func (s *service) setPace(pace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pace == "step" {
		pace = paused
		if s.pace == paused && len(s.held) > 0 {
			s.release(s.held[0])
		}
	}
	s.pace, s.heldNews = pace, true
	for _, let := range slices.Clone(s.held) {
		switch pace {
		case real:
			s.release(let)
		case slow:
			s.after(slowly, let)
		}
	}
}

// befall makes a fault of a server, or ends it.
func (s *service) befall(n int, fault string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ensemble == nil || n < 1 || n > len(s.ensemble.Members) {
		return errors.New("there is one server only: make play SERVERS=3 has three, which can fail")
	}
	m, p := s.ensemble.Members[n-1], &s.servers[n-1]
	var do func() error
	was, is := p.State, ""
	switch {
	case fault == "kill" && was == up:
		do, is = m.Kill, "killed"
	case fault == "stop" && was == up:
		do, is = m.Pause, "stopped"
	case fault == "cut" && was == up:
		do, is = func() error { m.CutOff(); return nil }, "cut"
	case fault == "mend" && was == "killed":
		do, is = func() error {
			ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
			defer cancel()
			return m.Restart(ctx)
		}, up
	case fault == "mend" && was == "stopped":
		do, is = m.Resume, up
	case fault == "mend" && was == cut:
		do, is = func() error { m.Rejoin(); return nil }, up
	default:
		return fmt.Errorf("server %d is %s", n, was)
	}
	err := s.goes(func() {
		err := do()
		for _, b := range s.here() {
			s.mu.Lock()
			if err != nil {
				b.say(s.us(time.Now()), "server %d: %v", n, err)
			}
			s.mu.Unlock()
		}
	})
	if err != nil {
		return err
	}
	p.State, s.peerNews = is, true
	for _, b := range s.boards {
		if b != nil {
			b.acts(s.us(time.Now()), fmt.Sprintf("server %d: %s", n, fault))
		}
	}
	return nil
}

// each gives a command to client n of each board.
func (s *service) each(c command) error {
	var failed error
	done := false
	for _, b := range s.here() {
		if !c.on(b) {
			continue
		}
		if err := s.give(b, c); err != nil {
			failed = err
		} else {
			done = true
		}
	}
	if failed == nil && !done {
		return errors.New("there is no such board")
	}
	if done {
		return nil
	}
	return failed
}

func (s *service) give(b *board, c command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.us(time.Now())
	if c.Client == -1 {
		var whom []*client
		for _, one := range b.clients {
			if one.process == running && (c.Do == "lock" && one.idle() || c.Do == "unlock" && believes(one.mood)) {
				whom = append(whom, one)
			}
		}
		if len(whom) == 0 {
			return errors.New("there is no client that it concerns")
		}
		b.acts(now, "all: "+c.Do)
		return s.goes(func() {
			for i, one := range whom {
				s.mu.Lock()
				err := one.does(c.Do)
				s.mu.Unlock()
				if err == nil && c.Do == "lock" && (i == 0 || len(whom) <= 20) { // a crowd comes all at once
					one.queues()
				}
			}
		})
	}
	if c.Client < 0 || c.Client >= len(b.clients) {
		return fmt.Errorf("there is no client %d", c.Client)
	}
	one := b.clients[c.Client]
	if one.process == starting || one.process == dead {
		return fmt.Errorf("client %d is %s", c.Client, one.process)
	}
	if err := one.may(c.Do); err != nil {
		return err
	}
	b.acts(now, fmt.Sprintf("client %d: %s", c.Client, c.Do))
	return one.does(c.Do)
}

func (c *client) idle() bool { return c.mood != zktest.MoodWaits && !believes(c.mood) }

// toClient are the commands that a client's process carries out.
var toClient = []string{"lock", "unlock", "again", "giveup", "read", "put", "cut", "mend", "losecreate", "losedelete"}

// may tells whether a command makes sense now.
func (c *client) may(do string) error {
	refused := ""
	switch do {
	case "stop":
		if c.process == stopped {
			refused = "is stopped already"
		}
	case "continue":
		if c.process != stopped {
			refused = "is not stopped"
		}
	case "cut", "mend", "losecreate", "losedelete":
		switch {
		case c.process == stopped:
			refused = "is stopped: its line is in its own hands"
		case do == "cut" && c.line == cut:
			refused = "is cut off already"
		case slices.Contains(c.armed, do):
			refused = "has that before it already"
		}
	case "kill", "delaylist":
	default:
		if !slices.Contains(toClient, do) {
			return fmt.Errorf("there is no command %q", do)
		}
	}
	if refused != "" {
		return fmt.Errorf("client %d %s", c.number, refused)
	}
	return nil
}

// does carries a command out. The caller holds mu.
func (c *client) does(do string) error {
	now := c.us(time.Now())
	defer func() { c.board.rows = true }()
	switch do {
	case "kill":
		c.process = dead
		c.becomes(now)
		return c.child.Signal(syscall.SIGKILL)
	case "stop":
		c.process = stopped
		c.becomes(now)
		return c.child.Signal(syscall.SIGSTOP)
	case "continue":
		c.process = running
		c.becomes(now)
		return c.child.Signal(syscall.SIGCONT)
	case "delaylist", "losecreate", "losedelete":
		c.armed = append(c.armed, do)
	case "cut":
		c.line = cut
		c.board.unwatched(now, c)
		c.becomes(now)
	case "mend":
		c.line, c.armed = up, nil
		c.becomes(now)
	case "lock", "read":
		c.answered = false
	}
	if do == "delaylist" {
		return nil
	}
	if c.process == stopped {
		c.board.say(now, "%d is stopped: it will do that when it goes on.", c.number)
	}
	select {
	case c.orders <- do:
		return nil
	default:
		return fmt.Errorf("client %d has too much to do already", c.number)
	}
}

// obeys hands the commands on to the client's process, one after the other.
func (c *client) obeys() {
	for {
		select {
		case do := <-c.orders:
			err := c.child.Call("Do", do, new(bool))
			c.mu.Lock()
			if err != nil && c.process != dead && !c.board.ended {
				c.board.say(c.us(time.Now()), "%d: %s: %v.", c.number, do, err)
			}
			c.mu.Unlock()
		case <-c.child.Ended():
			return
		}
	}
}

// queues returns when the server has answered the client's create, at the latest after
// a while.
func (c *client) queues() {
	for late := time.Now().Add(3 * time.Second); time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		done := c.answered || c.board.ended || c.mood == zktest.MoodFailed
		c.mu.Unlock()
		if done {
			return
		}
	}
}
