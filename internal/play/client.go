package play

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"zklock/internal/actor"
	"zklock/internal/process"
	"zklock/internal/stage"
)

// A client is a process with a session of its own.
type client struct {
	*stage.Client // what is seen of it
	*side
	child  *process.Process // nil: not started
	orders chan string      // commands that it has not carried out
	held   bool             // the lock, once at least
	enters bool             // it has called Lock again, within its hold
	puts   bool             // it has been told to write to the store
}

// lives tells whether the client's process has not ended, and its side is still in use.
func (c *client) lives() bool { return c.Process != stage.Dead && !c.ended }

// plays starts the client's process, which joins the lock and does what it is told, and
// returns when it has ended.
func (c *client) plays() {
	complaints := &process.Tail{}
	var said io.Writer = complaints
	if c.mine() {
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
		c.Process, c.Said = stage.Dead, complaints.Panic()
		if err != nil {
			c.Said = strings.TrimSpace(fmt.Sprintf("%s\n%s", err, c.Said))
		}
		first, _, _ := strings.Cut(c.Said, "\n")
		c.Say(stage.Event{At: c.now(), What: stage.Ended, Clients: []int{c.Number}, Text: first})
	}
	c.changed.Broadcast()
	c.Unwatched(c.now(), c.Client)
	c.Shows(c.now())
}

// joins starts the client's process, and returns when that has joined the lock, or has failed to.
func (c *client) joins(complaints io.Writer) error {
	c.starting <- struct{}{}
	defer func() { <-c.starting }()
	err := context.Canceled
	c.mu.Lock()
	if !c.ended {
		c.child, err = process.StartAs(c.program.part, complaints, c.program.path, c.program.args...)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.child.Serve(director{c})
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

// printed writes into the log what the learner's lock prints, up to a panic, of which the log
// has the first line anyway.
type printed struct {
	*client
	line  string // not ended yet
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

// obeys hands the commands on to the client's process, one after the other, until that ends.
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

// leave ends the client in good order, if that can be.
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

// A director is what a client's process can call.
type director struct{ *client }

// Pass returns when a frame may go on.
func (d director) Pass(p actor.Passage, _ *bool) error {
	return d.told(func() {
		i := d.Departs(d.now(), d.Client, p)
		d.hold(d.client, p.Frame)
		if !d.ended {
			d.Arrives(d.now(), i, d.Client, p.Frame)
		}
	})
}

// Becomes is told what the client believes of itself.
func (d director) Becomes(w actor.Word, _ *bool) error {
	return d.told(func() {
		d.held, d.enters = d.held || actor.Believes(w.Mood), false
		said := strings.ReplaceAll(w.Said, d.Path, "/lock")
		d.Hears(d.now(), d.Client, stage.Word{Mood: w.Mood, Said: said, Token: w.Token})
	})
}

// Put is a write to the store.
func (d director) Put(token int64, _ *bool) error {
	return d.told(func() { d.Recorder.Put(d.now(), d.Client, token) })
}

// told notes what the process tells, unless nobody hears it any more.
func (d director) told(note func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		note()
	}
	return nil
}
