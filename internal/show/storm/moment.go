package main

import (
	"slices"
	"time"

	"zklock/internal/server/wiretap"
)

// patience is how long a fault waits for its moment.
const patience = 4 * time.Second

// A moment is a fault at its client.
type moment struct {
	*Worker
	Order
	*Outcome
	tap   *wiretap.Tap // of the Order's lock
	lines []*line      // of the locks that the client holds meanwhile
}

// kindOf finds a kind of faults by its name.
func kindOf(name string) faultKind {
	all := slices.Concat(serverDeck, clientDeck)
	return all[slices.IndexFunc(all, func(kind faultKind) bool { return kind.name == name })]
}

// Fault makes a fault, and tells what became of it.
func (w *Worker) Fault(o Order, result *Outcome) error {
	m := &moment{w, o, result, w.lines[o.Client][o.Kind].tap, []*line{w.lines[o.Client][o.Kind]}}
	if o.Both {
		m.lines = append(m.lines, w.lines[o.Client][3-o.Kind])
	}
	kindOf(o.What).atClient(m)
	m.To = time.Now()
	return nil
}

func (m *moment) begun() {
	if m.Was == "" {
		m.Was, m.From = m.What, time.Now()
	}
}

// inHold lets do happen when the client holds the locks, if that matters. The
// first must do if the second does not come soon, for it blocks all others.
func (m *moment) inHold(do func()) {
	over := make(chan struct{})
	defer close(over)
	if m.InHold {
		wait := patience
		for i, l := range m.lines {
			select {
			case l.inHold <- over:
			case <-time.After(wait):
				if m.lines = m.lines[:i]; i == 0 {
					return
				}
			}
			wait = sessionTimeout / 2
		}
	}
	m.begun()
	do()
}

// disturb does something to the client's lines for the time of the fault.
func (m *moment) disturb(how func(*wiretap.Tap)) {
	for _, l := range m.Worker.lines[m.Client] {
		how(l.tap)
	}
	time.Sleep(m.For)
	for _, l := range m.Worker.lines[m.Client] {
		l.tap.Restore()
	}
}

// sprung waits for the frames of traps.
func (m *moment) sprung(traps ...*wiretap.Trap) bool {
	late := time.After(patience)
	for _, trap := range traps {
		select {
		case <-trap.Sprung():
		case <-late:
			m.tap.Restore()
			return false
		}
	}
	m.begun()
	return true
}

// both waits for a first fault that brings about the moment of a second.
func (m *moment) both(first string, bringsAbout, then *wiretap.Trap) {
	if m.sprung(bringsAbout) && !m.sprung(then) {
		m.Was = first
	}
}

// reset closes connections. The lines are up: a client that is refused would rest
// for a second.
func (m *moment) reset() {
	for _, l := range m.lines {
		l.tap.HangUp()
	}
}

// holding lets do happen when the next frame of a kind is on hold on all lines, and
// then lets these go on.
func (m *moment) holding(next func(*wiretap.Tap) *wiretap.Trap, do func()) (all bool) {
	var traps []*wiretap.Trap
	for _, l := range m.lines {
		traps = append(traps, next(l.tap))
		defer l.tap.Restore()
	}
	if !m.sprung(traps...) {
		return false
	}
	do()
	return true
}

// witness lets the client hold its locks at the Order's server until the fault is
// over, first preparing what belongs to it.
func (m *moment) witness(prepare func()) {
	for _, l := range m.lines {
		l.server.Store(m.Server)
		defer l.server.Store("")
	}
	m.reset()
	m.inHold(func() {
		prepare()
		m.tell("Witness", m.Number)
	})
}
