package explore

import (
	"fmt"
	"sync"

	"zklock/internal/client"
	"zklock/internal/lang"
	"zklock/internal/stage"
	"zklock/internal/wiretap"
)

// A record is an order as the stage's recorder has seen it at the gates. Only an order that
// is to be drawn is recorded: its methods do nothing for nil.
//
// One thing happens after the other in an order, so the record needs no clock: each step
// takes as long as the next.
type record struct {
	mu       sync.Mutex
	recorder *stage.Recorder
	clients  []*stage.Client
	now      int // in microseconds
	over     bool
}

// step is how long each thing that happens takes, in microseconds.
const step = 1000

// begins begins the record of an order.
func (r *record) begins(path string, isZnode bool, clients int) {
	if r == nil {
		return
	}
	r.recorder = stage.New()
	r.recorder.Dir, r.recorder.Path, r.recorder.Znode = path, path, isZnode
	for i := range clients {
		c := r.recorder.Add(0)
		c.Process, c.Called = stage.Running, lang.Text{EN: nameOf(i), ZH: nameOf(i)}
		r.clients = append(r.clients, c)
	}
}

// nameOf is what a client is called: A, B and so on.
func nameOf(client int) string { return string(rune('A' + client)) }

// notes does something with the recorder, at a moment of its own.
func (r *record) notes(do func(now int)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.now += step
		do(r.now)
	}
}

// passes notes a frame of a client, which now goes on, or is lost.
func (r *record) passes(contender int, f wiretap.Frame) {
	r.notes(func(now int) {
		i := r.recorder.Departs(now, r.clients[contender], client.Frame{Frame: f})
		r.now += step
		r.recorder.Arrives(r.now, i, r.clients[contender], f)
	})
}

// becomes notes the state of a client from now on.
func (r *record) becomes(contender int, state string) {
	r.notes(func(now int) { r.recorder.Hears(now, r.clients[contender], client.State{Name: state}) })
}

// chooses begins a part of the story, which a choice is.
func (r *record) chooses(choice string) {
	r.notes(func(now int) { r.recorder.Phase(now, lang.Text{EN: choice}) })
}

// looks notes what there is at the server, after a session has ended.
func (p *player) looks() error {
	if p.record == nil {
		return nil
	}
	p.record.mu.Lock()
	defer p.record.mu.Unlock()
	sessions, err := p.record.recorder.Look(p.eye, p.record.recorder.Knows)
	if err != nil {
		return fmt.Errorf("look at %s: %w", p.path, err)
	}
	p.record.now += step
	p.record.recorder.Looked(p.record.now, p.record.now, sessions)
	return nil
}

// ends ends the record: how the clients leave is no part of it.
func (r *record) ends() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// story tells the record: each choice is a part, with what came of it.
func (r *record) story(run Run) (s stage.Story) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.recorder.Story(r.now + step)
	s.Seat()
	part := -1
	for _, line := range append(run.Told, Line{Text: inBoth(run.Outcome)}) {
		switch {
		case line.Choice > 0:
			part = line.Choice - 1
			s.Phases[part].Title = line.Text
		case part < 0:
		case s.Phases[part].Sum.EN == "":
			s.Phases[part].Sum = line.Text
		default:
			s.Phases[part].Sum = lang.Of("%s; %s", "%s；%s", s.Phases[part].Sum, line.Text)
		}
	}
	return s
}

// inBoth is what is wrong in both languages, if it is one of the invariants.
func inBoth(outcome string) lang.Text {
	if chinese, ok := Chinese[outcome]; ok {
		return lang.Text{EN: outcome, ZH: chinese}
	}
	return lang.Text{EN: outcome, ZH: outcome}
}
