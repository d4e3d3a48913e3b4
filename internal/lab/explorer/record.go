// Package explorer draws an order that the explorer has found.
package explorer

import (
	"zklock/internal/client"
	"zklock/internal/explore"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// step is how long each thing that happens takes in the drawing, in microseconds: one thing
// happens after the other in an order, so it needs no clock.
const step = 1000

// Story tells a recording for the stage: each choice is a part, with what came of it.
func Story(r explore.Recording) stage.Story {
	recorder := stage.New()
	recorder.Dir, recorder.Path, recorder.Znode = r.Path, r.Path, r.Znode
	var clients []*stage.Client
	for _, name := range r.Clients {
		c := recorder.Add(0)
		c.Process, c.Called = stage.Running, lang.Text{EN: name, ZH: name}
		clients = append(clients, c)
	}
	now := 0
	for _, seen := range r.Seen {
		now += step
		c := clients[seen.Client]
		switch {
		case seen.Frame != nil:
			i := recorder.Departs(now, c, client.Frame{Frame: *seen.Frame})
			now += step
			recorder.Arrives(now, i, c, *seen.Frame)
		case seen.Znodes != nil:
			recorder.Looked(now, now, seen.Znodes)
		case seen.Choice != "":
			recorder.Phase(now, lang.Text{EN: seen.Choice})
		default:
			recorder.Hears(now, c, client.State{Name: seen.State})
		}
	}
	s := recorder.Story(now + step)
	s.Seat()
	told(&s, r.Run)
	return s
}

// told gives the parts of a story their titles, and what came of them.
func told(s *stage.Story, run explore.Run) {
	part := -1
	for _, line := range append(run.Told, explore.Line{Text: inBoth(run.Outcome)}) {
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
}

// inBoth is what is wrong in both languages, if it is one of the invariants.
func inBoth(outcome string) lang.Text {
	if chinese, ok := explore.Chinese[outcome]; ok {
		return lang.Text{EN: outcome, ZH: chinese}
	}
	return lang.Text{EN: outcome, ZH: outcome}
}
