// Package explorer makes a page of what package explore has found. It draws interleavings, and a
// reader can walk through them.
package explorer

import (
	"slices"

	"zklock/internal/actor"
	"zklock/internal/explore"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// step is how long each event takes in the drawing, in microseconds. The drawing needs no real
// clock, because the events of an interleaving happen one after the other.
const step = 1000

// Story turns a recording into a replay for the stage. Each choice begins a part, which also says
// what followed from the choice.
func Story(r explore.Recording) stage.Replay {
	recorder := stage.New()
	recorder.Dir, recorder.Path, recorder.Znode = r.Path, r.Path, r.Znode
	var clients []*stage.Figure
	for _, name := range r.Clients {
		c := recorder.Add(0)
		c.Process, c.Called = stage.Running, lang.Text{EN: name, ZH: name}
		recorder.Hears(0, c, actor.State{Name: actor.Idle})
		clients = append(clients, c)
	}
	now := 0
	calls := map[int]bool{} // clients that have called Lock, but have not sent a request since
	for _, seen := range r.Seen {
		now += step
		c := clients[seen.Client]
		if seen.Frame != nil && calls[seen.Client] {
			delete(calls, seen.Client)
			recorder.Hears(now, c, actor.State{Name: actor.Waits})
		}
		switch {
		case seen.Frame != nil:
			recorder.Passes(func() int { return now }, c, *seen.Frame, func() { now += step })
		case seen.Znodes != nil:
			recorder.Looked(now, now, seen.Znodes)
		case seen.Choice != "":
			recorder.Phase(now, lang.Text{EN: seen.Choice})
		case seen.State == actor.Waits:
			calls[seen.Client] = true
		default:
			recorder.Hears(now, c, actor.State{Name: seen.State})
		}
	}
	s := recorder.Replay(now + step)
	s.Seat()
	told(&s, r.Run)
	return s
}

// told gives the parts of a story their titles, and summaries of what followed.
func told(s *stage.Replay, run explore.Run) {
	part := -1
	for _, line := range slices.Concat(run.Told, why(s), ends(run)) {
		switch {
		case line.Choice > 0:
			part = line.Choice - 1
			s.Phases[part].Title = line.Text
		case part < 0:
		case s.Phases[part].Sum.EN == "":
			s.Phases[part].Sum = capitalized(line.Text)
		default:
			s.Phases[part].Sum = lang.Of("%s. %s", "%s。%s", s.Phases[part].Sum, capitalized(line.Text))
		}
	}
}

func capitalized(t lang.Text) lang.Text { return lang.Text{EN: capital(t.EN), ZH: t.ZH} }

// why explains why a client still waits in the end: it watches a znode whose owner's Lock has
// failed, so that nobody will delete the znode.
func why(s *stage.Replay) (lines []explore.Line) {
	last := func(client int) string {
		states := s.Clients[client].States
		return states[len(states)-1].Is
	}
	for _, w := range s.Watches {
		isLeft := w.To < 0 && w.Node >= 0
		if !isLeft || last(w.Client) != actor.Waits {
			continue
		}
		node := s.Nodes[w.Node]
		if last(node.Owner) == actor.Failed {
			who, owner := s.Clients[w.Client].Name, s.Clients[node.Owner].Name
			lines = append(lines, explore.Line{Text: lang.Of(
				"%s watches %s. It belongs to %s, whose Lock has failed: %s will not delete it",
				"%s 监听 %s。它属于 %s，%s 的 Lock 已经失败，不会删除它",
				who, node.Name, owner, owner)})
		}
	}
	return lines
}

// ends returns lines that say how an interleaving has ended.
func ends(run explore.Run) (lines []explore.Line) {
	for _, end := range run.Ends {
		lines = append(lines, explore.Line{Text: end})
	}
	if len(run.Ends) == 0 && !run.Covered {
		for _, wrong := range run.Wrong {
			lines = append(lines, explore.Line{Text: named(wrong)})
		}
	}
	return lines
}
