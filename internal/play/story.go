package main

import (
	"cmp"
	"maps"
	"slices"

	"zklock/internal/page"
)

// story tells the last actions, and what came of them, as the tour tells its own.
func (b *board) story(now int) page.Story {
	const most = 30 // actions
	phases := slices.Clone(b.phases[max(0, len(b.phases)-most):])
	oldest := now
	for _, f := range b.frames.kept {
		oldest = min(oldest, f.From)
	}
	if b.frames.next > len(b.frames.kept) { // what was before is forgotten
		phases = slices.DeleteFunc(phases, func(p page.Phase) bool { return p.At < oldest })
	}
	if len(phases) == 0 {
		phases = []page.Phase{{At: oldest, Title: "What is left of it"}}
	}
	start := phases[0].At
	since := func(at int) int {
		if at < 0 {
			return at
		}
		return max(0, at-start)
	}
	for i := range phases {
		phases[i].Over = now
		if i+1 < len(phases) {
			phases[i].Over = phases[i+1].At
		}
		phases[i].At, phases[i].Over = since(phases[i].At), since(phases[i].Over)
	}
	s := page.Story{Phases: phases, End: since(now), Slots: 2 * len(b.clients), Nodes: []page.Node{}, Watches: []page.Watch{}, Frames: []page.Flight{}}
	for i, c := range b.clients {
		told := page.Client{Name: c.name(), Slot: 2 * i}
		for _, m := range c.shown {
			told.Moods = append(told.Moods, page.Mood{At: since(m.At), Is: m.Is})
		}
		s.Clients = append(s.Clients, told)
	}
	place := map[int]int{-1: -1, -2: -2} // of each znode in the story
	for _, i := range slices.Sorted(maps.Keys(b.nodes.kept)) {
		if n := b.nodes.kept[i].Node; n.Owner >= 0 && (n.To < 0 || n.To > start) {
			place[i] = len(s.Nodes)
			n.From, n.To = since(n.From), since(n.To)
			s.Nodes = append(s.Nodes, n)
		}
	}
	at := func(node int) int {
		if i, ok := place[node]; ok {
			return i
		}
		return -2
	}
	for _, i := range slices.Sorted(maps.Keys(b.watches.kept)) {
		if w := *b.watches.kept[i]; (w.To < 0 || w.To > start) && at(w.Node) > -2 {
			s.Watches = append(s.Watches, page.Watch{Client: w.Client, Node: at(w.Node), From: since(w.From), To: since(w.To)})
		}
	}
	for _, f := range b.frames.kept {
		if f.From >= start {
			told := *f
			if told.To < 0 {
				told.To, told.At = now, now
			}
			told.Node, told.From, told.To, told.At = at(f.Node), since(told.From), since(told.To), since(told.At)
			s.Frames = append(s.Frames, told)
		}
	}
	slices.SortStableFunc(s.Frames, func(a, b page.Flight) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.From, b.From)) })
	return s
}
