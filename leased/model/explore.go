package model

import (
	"fmt"
	"slices"
)

// Result is what an exploration has found.
type Result struct {
	States int
	Order  []moment        // a shortest order with two holders; nil if there is none
	Worst  uint8           // in units: how long there are two holders in the worst order
	did    map[string]bool // the names of the actions that have led to a new state
}

// moment is an action, and the states before and after it.
type moment struct {
	action        action
	before, after state
}

// exploration explores everything that can happen, in rounds: each round adds one action. A state has a
// number, in the order in which the states were found.
type exploration struct {
	*model
	states []state
	known  map[state]bool
	from   []int32 // the state before each state; for an initial state, itself
	by     []uint8 // the number of the action between them

	round []int32 // the new states of the present round
	now   int32   // the state from which the exploration continues
	does  uint8   // the number of the action
	found func(state)
}

// explore ends when there is no new state. The order that it returns is a shortest one and, of those, one in
// which there are two holders for longest. If there are more states than most, it returns an error: then it
// has not seen all of them, and cannot say that the rule holds.
func (m *model) explore(most int) (Result, error) {
	e := &exploration{model: m, known: map[state]bool{}}
	e.found = e.add
	for _, place := range m.places {
		e.now = int32(len(e.states))
		e.add(state{place: place, patience: m.clock.timeout})
	}
	e.waits(0)
	var r Result
	for len(e.round) > 0 {
		worst, overlap := e.worst()
		if overlap > 0 && r.Order == nil {
			r.Order = e.order(worst)
		}
		r.Worst = max(r.Worst, overlap)
		e.nextRound()
		if len(e.states) > most {
			return Result{}, fmt.Errorf(
				"%s; %s: there are more than %d states, so this says nothing",
				m.Rule.name,
				m.Setting.name,
				most,
			)
		}
	}
	r.States = len(e.states)
	r.did = map[string]bool{}
	for _, number := range e.by {
		r.did[actionsAndClockwork[number].name] = true
	}
	return r, nil
}

func (e *exploration) nextRound() {
	last := e.round
	e.round = nil
	for _, number := range last {
		done := len(e.round)
		e.act(number, 0, len(actions))
		e.waits(done)
	}
}

// waits adds to the round the states that follow from its states, beginning with number from, when only time
// passes and the clockwork acts.
func (e *exploration) waits(from int) {
	for i := from; i < len(e.round); i++ {
		e.act(e.round[i], len(actions), len(actionsAndClockwork))
	}
}

// act adds to the round the states that follow from a state by some of the actions.
func (e *exploration) act(number int32, from, to int) {
	e.now = number
	for i := from; i < to; i++ {
		e.does = uint8(i)
		actionsAndClockwork[i].do(e.model, e.states[number], e.found)
	}
}

// add adds a state to the round, unless it is known.
func (e *exploration) add(s state) {
	s = e.normal(s)
	if e.isOver(&s) {
		return
	}
	e.known[s] = true
	if len(e.known) == len(e.states) {
		return // it was known already
	}
	e.round = append(e.round, int32(len(e.states)))
	e.states = append(e.states, s)
	e.from = append(e.from, e.now)
	e.by = append(e.by, e.does)
}

// worst returns the state of the round in which there are two holders for longest.
func (e *exploration) worst() (worst int32, overlap uint8) {
	for _, number := range e.round {
		if left := e.overlap(&e.states[number]); left > overlap {
			worst, overlap = number, left
		}
	}
	return worst, overlap
}

// order returns how the exploration has reached a state.
func (e *exploration) order(number int32) (order []moment) {
	for ; e.from[number] != number; number = e.from[number] {
		before := e.from[number]
		order = append(order, moment{actionsAndClockwork[e.by[number]], e.states[before], e.states[number]})
	}
	slices.Reverse(order)
	return order
}

var actionsAndClockwork = slices.Concat(actions, clockwork)
