package board

import (
	"cmp"
	"maps"
	"slices"

	"zklock/internal/show/page"
	"zklock/internal/upkeep/words"
)

// Acted tells whether there is a story to tell.
func (b *Board) Acted() bool { return len(b.phases) > 0 }

// Story tells the last actions, and what came of them, as the tour tells its own.
func (b *Board) Story(now int) page.Story {
	const most = 30 // actions
	phases := slices.Clone(b.phases[max(0, len(b.phases)-most):])
	if b.frames.next > len(b.frames.kept) { // what was before is forgotten
		oldest := now
		for _, f := range b.frames.kept {
			oldest = min(oldest, f.From)
		}
		phases = slices.DeleteFunc(phases, func(p page.Phase) bool { return p.At < oldest })
		if len(phases) == 0 {
			phases = []page.Phase{{At: oldest, Title: words.Of("What is left of it")}}
		}
	}
	start := phases[0].At
	since := func(at int) int {
		if at < 0 {
			return at
		}
		return max(0, at-start)
	}
	s := page.Story{
		Znode:   b.Znode,
		End:     since(now),
		Slots:   2 * len(b.Clients),
		Nodes:   []page.Node{},
		Watches: []page.Watch{},
		Frames:  []page.Flight{},
	}
	for i, p := range phases {
		p.At, p.Over = since(p.At), since(now)
		if i > 0 {
			s.Phases[i-1].Over = p.At
		}
		s.Phases = append(s.Phases, p)
	}
	for _, c := range b.Clients {
		told := page.Client{Name: c.Name(), Slot: 2 * c.Number}
		for _, m := range c.shown {
			told.Moods = append(told.Moods, page.Mood{At: since(m.At), Is: m.Is})
		}
		s.Clients = append(s.Clients, told)
	}
	// What was over before the start is left out.
	lasts := func(to int) bool { return to < 0 || to > start }
	place := map[int]int{-1: -1} // of each znode in the story
	for _, i := range slices.Sorted(maps.Keys(b.nodes.kept)) {
		if n := b.nodes.kept[i].Node; n.Owner >= 0 && lasts(n.To) {
			place[i] = len(s.Nodes)
			n.From, n.To = since(n.From), since(n.To)
			s.Nodes = append(s.Nodes, n)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(b.watches.kept)) {
		w := *b.watches.kept[i]
		if node, ok := place[w.Node]; ok && lasts(w.To) {
			s.Watches = append(
				s.Watches,
				page.Watch{Client: w.Client, Node: node, From: since(w.From), To: since(w.To)},
			)
		}
	}
	for _, kept := range b.frames.kept {
		if f := *kept; f.From >= start {
			if f.To < 0 {
				f.To, f.At = now, now
			}
			node, ok := place[f.Node]
			if !ok {
				node = -2
			}
			f.Node, f.From, f.To, f.At = node, since(f.From), since(f.To), since(f.At)
			s.Frames = append(s.Frames, f)
		}
	}
	slices.SortStableFunc(
		s.Frames,
		func(a, b page.Flight) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.From, b.From)) },
	)
	return s
}
