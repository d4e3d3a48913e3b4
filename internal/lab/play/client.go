package play

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lab/stage"
	"zklock/internal/process"
)

// A client is a figure on the page, and an actor: a process with a session of its own.
type client struct {
	*stage.Figure // what the page shows of it
	*side
	child  *process.Process // nil: not started
	orders chan string      // commands that it has not carried out
	held   bool             // it has held the lock at least once
	enters bool             // it has called Lock again, within its hold
	puts   bool             // it has been asked to write to the store
	first  int64            // its first session that the lesson has seen; 0: none
}

// lives reports whether the client's process has not ended, and its side is still in use.
func (c *client) lives() bool { return c.Process != stage.Dead && !c.ended }

// plays starts the client's process, makes it join the lock, and hands commands to it. plays returns
// when the process has ended.
func (c *client) plays() {
	complaints := &tail{}
	var said io.Writer = complaints
	if c.IsMine() {
		said = io.MultiWriter(complaints, &printed{client: c})
	}
	err := c.joins(said)
	if err == nil {
		c.obeys()
	}
	if c.child != nil {
		_ = c.child.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.Process != stage.Dead {
		c.Process, c.Said = stage.Dead, complaints.panicked()
		if err != nil {
			c.Said = strings.TrimSpace(fmt.Sprintf("%s\n%s", err, c.Said))
		}
		first, _, _ := strings.Cut(c.Said, "\n")
		c.Say(stage.Event{At: c.now(), What: stage.Ended, Clients: []int{c.Number}, Text: first})
	}
	c.changed.Broadcast()
	c.Unwatched(c.now(), c.Figure)
	c.Shows(c.now())
}

// joins starts the client's process. It returns when the process has joined the lock, or has failed
// to.
func (c *client) joins(complaints io.Writer) error {
	c.starting <- struct{}{}
	defer func() { <-c.starting }()
	err := context.Canceled
	c.mu.Lock()
	if !c.ended {
		c.child, err = process.StartAs(c.program.Part, complaints, c.program.Path, c.program.Args...)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.child.Serve(parent{c})
	var reads bool
	place := actor.Address{Servers: c.server.Servers(), Timeout: stage.Timeout, Path: c.Path}
	if err := c.child.Call("Begin", place, &reads); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Joined, c.Reads = true, reads
	if c.Process == stage.Starting {
		c.Process = stage.Running
		c.Shows(c.now())
	}
	return nil
}

// printed writes what the learner's lock prints into the log. It stops at a panic, because the log
// shows the first line of that anyway.
type printed struct {
	*client
	line  string // the last line, as long as it is not complete
	panic bool
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.line+string(b), "\n")
	p.line = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		p.panic = p.panic || strings.HasPrefix(line, "panic: ")
		isOver := p.panic || p.ended
		if line != "" && !isOver {
			p.Say(stage.Event{At: p.now(), What: stage.Printed, Clients: []int{p.Number}, Text: line})
		}
	}
	return len(b), nil
}

// obeys hands the commands to the client's process, one after the other, until the process ends.
func (c *client) obeys() {
	for {
		select {
		case do := <-c.orders:
			err := c.child.Call("Do", do, new(bool))
			c.mu.Lock()
			if err != nil && c.lives() {
				c.Say(stage.Event{
					At:      c.now(),
					What:    stage.Failed,
					Clients: []int{c.Number},
					Action:  &stage.Action{Do: do, Client: &c.Number},
					Text:    err.Error(),
				})
			}
			c.mu.Unlock()
		case <-c.child.Ended():
			return
		}
	}
}

// leave ends the client's session and then its process. It kills a process that does not end its
// session within three seconds.
func (c *client) leave() {
	c.mu.Lock()
	child, process := c.child, c.Process
	c.mu.Unlock()
	if child == nil {
		return
	}
	if process == stage.Stopped {
		_ = child.Continue()
	}
	if process == stage.Running || process == stage.Stopped {
		kill := time.AfterFunc(3*time.Second, func() { _ = child.Kill() })
		_ = child.Call("Leave", true, new(bool))
		kill.Stop()
	}
	_ = child.Close()
}

// A parent has the methods that a client's process can call.
type parent struct{ *client }

// Pass returns when a frame may pass.
func (p parent) Pass(f actor.Frame, _ *bool) error {
	return p.told(func() {
		p.Server = p.serverAt(f.Server)
		p.Passes(p.now, p.Figure, f, func() { p.hold(p.client, f.Frame) })
	})
}

// serverAt returns the number of the server with an address, from 1, or 0 if there is none. It
// compares only the ports, which differ.
func (s *service) serverAt(address string) int {
	_, port, _ := net.SplitHostPort(address)
	return 1 + slices.IndexFunc(s.server.Servers(), func(a string) bool {
		return port != "" && strings.HasSuffix(a, ":"+port)
	})
}

// Becomes notes a new state of the client.
func (p parent) Becomes(s actor.State, _ *bool) error {
	return p.told(func() {
		p.held, p.enters = p.held || actor.IsInside(s.Name), false
		s.Err = strings.ReplaceAll(s.Err, p.Path, "/lock")
		p.Hears(p.now(), p.Figure, s)
	})
}

// Put writes to the store.
func (p parent) Put(token int64, _ *bool) error {
	return p.told(func() {
		p.Pending = false
		p.Recorder.Put(p.now(), p.Figure, token)
	})
}

// told notes what the process reports, unless the client's side is no longer in use.
func (p parent) told(note func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		note()
	}
	return nil
}

// A tail keeps the end of what a child prints.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-8000):]
	return len(b), nil
}

// panicked returns the message of the child's panic or, if there is none, what the child has printed.
func (t *tail) panicked() string {
	text := string(t.text)
	text, _, _ = strings.Cut(text[max(0, strings.Index(text, "panic: ")):], "\n\ngoroutine ")
	return strings.TrimSpace(text)
}
