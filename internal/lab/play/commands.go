package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
)

// A command is what the page asks the service to do. If it is wrong, the user gets an error.
type command struct {
	Do     string `json:"do"`
	N      int    `json:"n"`
	Client int    `json:"client"` // -1: all clients that can do it now
	Board  *int   `json:"board"`  // nil: both
	Lock   string `json:"lock"`
	Pace   string `json:"pace"`
	Fault  string `json:"fault"`
}

func (s *service) do(c command) error {
	if c.Do != "pace" {
		s.goesOn()
	}
	switch c.Do {
	case "choose":
		return s.choose(c)
	case "clear":
		return s.goes(func() {
			s.mu.Lock()
			s.leaves()
			s.mu.Unlock()
			for at, b := range s.sides {
				if b != nil {
					s.lay(at, b.Choice, 0)
				}
			}
		})
	case "lesson":
		if c.N < 1 || c.N > len(lessons) {
			return fmt.Errorf("want a lesson from 1 to %d", len(lessons))
		}
		return s.learn(c.N)
	case "sweep":
		return s.sweeps(c.N)
	case "finale":
		return s.compares()
	case "pace":
		if !slices.Contains([]string{real, slow, paused, step, onward}, c.Pace) {
			return fmt.Errorf("there is no pace %q", c.Pace)
		}
		s.setPace(c.Pace)
		return nil
	case "server":
		return s.befall(c.N, c.Fault)
	}
	return s.each(c)
}

// goes queues a job that takes time. The service runs one job after the other.
func (s *service) goes(do func()) error {
	select {
	case s.jobs <- do:
		return nil
	default:
		return errors.New("too many commands are waiting already: wait a moment")
	}
}

// choose puts a lock on a side, with as many clients as the fuller side has.
func (s *service) choose(c command) error {
	if c.Board == nil || !slices.Contains([]int{0, 1}, *c.Board) {
		return errors.New("want board 0 or 1")
	}
	var l locks.Choice
	if c.Lock != "" || *c.Board == 0 {
		var err error
		if l, err = locks.Choose(c.Lock); err != nil {
			return err
		}
	}
	return s.goes(func() {
		s.mu.Lock()
		s.leaves()
		clients := s.mostClients()
		s.mu.Unlock()
		s.lay(*c.Board, l, clients)
	})
}

// mostClients returns how many clients the fuller side has, or will have once its lock is built. The
// caller holds mu.
func (s *service) mostClients() (n int) {
	for _, b := range s.laid() {
		n = max(n, b.wanted)
	}
	return n
}

// befall causes a fault of a server, or ends it.
func (s *service) befall(n int, fault string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	canFail := 0 // how many servers
	if s.ensemble != nil {
		canFail = len(s.ensemble.Members)
	}
	if n < 1 || n > canFail {
		return errors.New("there is one server only: make play SERVERS=3 has three, which can fail")
	}
	m, p := s.ensemble.Members[n-1], &s.servers[n-1]
	var do func() error
	is := stage.Up
	switch p.State + "/" + fault {
	case "up/kill":
		do, is = m.Kill, "killed"
	case "up/stop":
		do, is = m.Pause, "stopped"
	case "up/cut":
		do, is = func() error { m.CutOff(); return nil }, "cut"
	case "killed/restore":
		do = func() error {
			ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
			defer cancel()
			return m.Restart(ctx)
		}
	case "stopped/restore":
		do = m.Resume
	case "cut/restore":
		do = func() error { m.Rejoin(); return nil }
	default:
		return fmt.Errorf("server %d is %s", n, p.State)
	}
	err := s.goes(func() {
		if err := do(); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, b := range s.laid() {
				action := stage.Action{Do: fault + "server", N: n}
				b.Say(stage.Event{At: s.now(), What: stage.Failed, Action: &action, Text: err.Error()})
			}
		}
	})
	if err != nil {
		return err
	}
	p.State = is
	for _, b := range s.laid() {
		b.Acts(s.now(), stage.Action{Do: fault + "server", N: n})
	}
	return nil
}

// each gives a command to each side that it is for. It returns an error if no side could do it.
func (s *service) each(c command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed, done := errors.New("there is no such board"), false
	for at, b := range s.sides {
		isForTheOther := c.Board != nil && *c.Board != at
		if b == nil || isForTheOther {
			continue
		}
		if err := b.gets(c); err != nil {
			failed = err
		} else {
			done = true
		}
	}
	if done {
		return nil
	}
	return failed
}

// gets carries out a command, or makes the side's clients do so. The caller holds mu.
func (b *side) gets(c command) error {
	isOutOfRange := c.N < 1 || c.N > most
	isNoPause := c.N < shortestPause || c.N > longestPause
	switch {
	case c.Do == "pause" && isNoPause:
		return fmt.Errorf("a pause takes %d to %d seconds", shortestPause, longestPause)
	case c.Do == "add" && isOutOfRange:
		return fmt.Errorf("1 to %d clients can be added", most)
	case c.Do == "add" && b.wanted == most:
		return fmt.Errorf("no client can be added: a lock can have %d at most", most)
	case c.Do == "add":
		b.Acts(b.now(), stage.Action{Do: "add", N: c.N})
		b.wanted = min(b.wanted+c.N, most)
		b.fill()
		return nil
	case c.Do == "delete":
		return b.deletes()
	case c.Client == -1:
		return b.all(c.Do)
	case c.Client < 0 || c.Client >= len(b.clients):
		return fmt.Errorf("there is no client %d", c.Client)
	}
	one, do := b.clients[c.Client], c.Do
	if do == "read" && b.course.Lesson > 0 && !one.Reads {
		do = "lock" // lesson 6 has a lock without readers beside one with readers
	}
	if err := one.may(do); err != nil {
		return err
	}
	b.Acts(b.now(), stage.Action{Do: c.Do, N: c.N, Client: &c.Client})
	if do == "pause" {
		return one.pauses(c.N)
	}
	return one.does(do)
}

// deletes deletes the lock's single znode from the service's own session, as somebody can who does not
// hold the lock. The caller holds mu.
func (b *side) deletes() error {
	queue := b.Queue()
	if !b.Znode || len(queue) == 0 {
		return errors.New("there is no single znode to delete")
	}
	is := queue[0]
	action := stage.Action{Do: "delete"}
	err := b.goes(func() {
		err := b.observer.Delete(b.Dir, -1)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			b.Say(stage.Event{At: b.now(), What: stage.Failed, Action: &action, Text: err.Error()})
			return
		}
		b.Deleted(b.now(), is)
	})
	if err == nil {
		b.Acts(b.now(), action)
	}
	return err
}

// all makes every client that can do so call Lock, or every holder call Unlock. The caller holds mu.
func (b *side) all(do string) error {
	whom := slices.DeleteFunc(slices.Clone(b.clients), func(c *client) bool {
		isForAll := do == "lock" || do == "unlock"
		hasNoHold := do == "unlock" && !c.IsInside()
		return c.Process != stage.Running || !isForAll || hasNoHold || c.asksLater(do) || c.may(do) != nil
	})
	if len(whom) == 0 {
		return errors.New("there is no client that can do that now")
	}
	b.Acts(b.now(), stage.Action{Do: do})
	b.left.Go(func() { // on both sides at the same time
		isCrowd := len(whom) > 20 // a crowd calls Lock at the same time, behind the first client
		for i, one := range whom {
			comesInTurn := i == 0 || !isCrowd
			one.follows(one.asks(do), do == "lock" && comesInTurn)
		}
	})
	return nil
}

// asksLater reports whether a client does not ask for the lock with the others in the first task of the lesson: a later
// task lets it ask.
func (c *client) asksLater(do string) bool {
	isFirstTask := c.course.Lesson > 0 && c.course.Done == 0
	return do == "lock" && isFirstTask && slices.Contains(lessons[c.course.Lesson-1].askLater, c.Number)
}

// tooLong is the longest time for which the next client waits until the one before it has joined the
// queue. A client that is stopped or disconnected does not join it.
const tooLong = 10 * time.Second

// follows makes the client carry out a command if it can. If queues is set, the client is about to
// join the queue. Then follows returns when the client has done so, or will not, or after tooLong.
func (c *client) follows(do string, queues bool) {
	c.mu.Lock()
	done := !c.ended && c.Process == stage.Running && c.does(do) == nil
	c.mu.Unlock()
	if done && queues {
		c.await(tooLong, func() bool {
			willNotQueue := c.ended || c.State == actor.Failed
			return c.Answered || willNotQueue
		})
	}
}

// commands lists the commands for a client.
var commands = []string{
	"lock", "unlock", "again", "giveup", "read", "put",
	"kill", "stop", "pause", "continue", "cut", "restore", "losecreate", "losedelete", "delaylist",
}

// can returns the commands that make sense for the client now. The caller holds mu.
func (c *client) can() []string {
	return slices.DeleteFunc(slices.Clone(commands), func(do string) bool { return c.may(do) != nil })
}

// refusals lists the reasons against commands that concern a client's process or its connection. If
// several apply, the first is reported.
var refusals = []struct {
	commands []string
	applies  func(*client) bool
	why      string
}{
	{[]string{"stop", "pause"}, (*client).isStopped, "is stopped already"},
	{[]string{"pause"}, func(c *client) bool { return !c.IsInside() }, "does not hold the lock"},
	{[]string{"pause"}, func(c *client) bool { return c.Number+1 == len(c.side.clients) }, "has no client after it"},
	{[]string{"continue"}, func(c *client) bool { return !c.isStopped() }, "is not stopped"},
	{[]string{"cut", "restore", "losecreate", "losedelete"}, (*client).isStopped,
		"is stopped, and only its own process can change its connection"},
	{[]string{"cut"}, func(c *client) bool { return c.Line == stage.Cut }, "is disconnected already"},
	{[]string{"restore"}, func(c *client) bool { return c.Line != stage.Cut && len(c.Armed) == 0 },
		"has a connection that works already"},
}

func (c *client) isStopped() bool { return c.Process == stage.Stopped }

// may returns an error if a command makes no sense for the client now. The caller holds mu.
func (c *client) may(do string) error {
	if !slices.Contains(commands, do) {
		return fmt.Errorf("there is no command %q", do)
	}
	if why := c.refuses(do); why != "" {
		return fmt.Errorf("client %d %s", c.Number, why)
	}
	return nil
}

// refuses returns why a command makes no sense now, or "" if it does.
func (c *client) refuses(do string) string {
	if c.Process == stage.Starting || c.Process == stage.Dead {
		return "is " + c.Process
	}
	for _, r := range refusals {
		if slices.Contains(r.commands, do) && r.applies(c) {
			return r.why
		}
	}
	if slices.Contains(c.Armed, do) {
		return "has this fault set already"
	}
	return actor.Standing{State: c.State, Enters: c.enters, Held: c.held, Reads: c.Reads}.Refuses(do)
}

// does carries out a command, or makes the client's process do so. The caller holds mu.
func (c *client) does(do string) error {
	defer c.Shows(c.now())
	switch do {
	case "kill":
		c.changed.Broadcast()
		c.Process = stage.Dead
		return c.child.Kill()
	case "stop":
		c.Process = stage.Stopped
		return c.child.Stop()
	case "continue":
		c.Process = stage.Running
		return c.child.Continue()
	case "delaylist":
		c.Armed = append(c.Armed, do)
		return nil
	case "losecreate", "losedelete":
		c.Armed = append(c.Armed, do)
	case "cut":
		c.Line = stage.Cut
		c.Unwatched(c.now(), c.Figure)
	case "restore":
		c.Line, c.Armed = stage.Up, nil
	case "lock", "read":
		c.Answered = false
	case "again", "giveup":
		c.enters = do == "again"
	case "put":
		c.puts, c.Pending = true, c.isStopped()
	}
	if c.Process == stage.Stopped {
		c.Say(stage.Event{At: c.now(), What: stage.Later, Clients: []int{c.Number}})
	}
	select {
	case c.orders <- do:
		return nil
	default:
		return fmt.Errorf("client %d has too much to do already", c.Number)
	}
}
