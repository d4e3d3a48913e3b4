package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"zklock/internal/wiretap"
)

//go:embed film.css
var filmCSS string

// The film's clock, in seconds.
const (
	filmLength = 10.0
	filmEnd    = 9.5  // what is seen last disappears; then all is as in the beginning
	opening    = 1.8  // the holder releases
	flight     = 1.0  // of each frame
	apart      = 0.12 // between two frames of a kind
	blend      = 0.1  // between two looks of a thing
)

// Measures of the film, in pixels.
const (
	panelWidth, panelGap          = 440, 20
	queueTop, nodesAt, queueFloor = 76, 116, 136 // at the server
	clientsAt, clientSize         = 262, 15
	captionAt, countAt, legendAt  = 334, 382, 430
)

// A film is a drawing with things that move. Without the moves it is a picture
// of one moment: so it is printed, and shown to readers who want no motion.
type film struct {
	strings.Builder
	moves   strings.Builder   // as CSS
	classes map[string]string // of the moves
}

// A look is how a thing looks from a moment on, as CSS.
type look struct {
	from float64
	css  string
}

// looks is the class of a thing that changes its look.
func (f *film) looks(all ...look) string {
	first, last := all[0].css, all[len(all)-1].css
	frames := "0%{" + first + "}"
	for i, l := range all[1:] {
		frames += fmt.Sprintf("%s{%s}%s{%s}", percent(l.from), all[i].css, percent(l.from+blend), l.css)
	}
	return f.move(frames + percent(filmEnd+blend) + "{" + last + "}to{" + first + "}")
}

// during is the looks of a thing that is there only from one moment to another.
func during(from, to float64) []look {
	all := []look{{0, "opacity:0"}, {from, "opacity:1"}, {to - blend, "opacity:0"}}
	if from == 0 {
		return all[1:]
	}
	return all
}

// flies is the class of a dot on its way.
func (f *film) flies(l leg, from, to point) string {
	const blink = 0.01
	at := func(p point) string { return fmt.Sprintf("transform:translate(%.0fpx,%.0fpx)", p.x, p.y) }
	return f.move(fmt.Sprintf("0%%,%s{opacity:0;%s}%s{opacity:1;%[2]s}%[4]s{opacity:1;%s}%s,to{opacity:0;%[5]s}",
		percent(l.leaves), at(from), percent(l.leaves+blink), percent(l.lands()), at(to), percent(l.lands()+blink)))
}

// move is the class of things that move like this, over and over.
func (f *film) move(frames string) (class string) {
	if f.classes[frames] == "" {
		f.classes[frames] = fmt.Sprintf("f%d", len(f.classes))
		fmt.Fprintf(&f.moves, ".%s{animation:%[1]s %vs linear infinite}@keyframes %[1]s{%[3]s}\n", f.classes[frames], filmLength, frames)
	}
	return f.classes[frames]
}

func percent(seconds float64) string { return fmt.Sprintf("%.4g%%", 100*seconds/filmLength) }

// HerdAndChain is the film at the head of the README: a release with step 3's
// lock beside one with step 4's.
func HerdAndChain(herd, chain Story) (svg string, facts []string) {
	f := &film{classes: map[string]string{}}
	open(&f.Builder, "One release: step 3 wakes all who wait, step 4 wakes one", 2*panelWidth+panelGap, legendAt+42)
	for i, side := range []struct {
		Story
		title, idea string
	}{
		{herd, "Step 3: a herd", "every waiter watches the whole queue"},
		{chain, "Step 4: a chain", "every waiter watches the one in front of it"},
	} {
		fmt.Fprintf(f, `<g transform="translate(%d 0)"><text class="title m" x="%d" y="34">%s</text><text class="m" x="%[2]d" y="58">%[4]s</text>`,
			i*(panelWidth+panelGap), panelWidth/2, side.title, side.idea)
		s := newScene(f, side.Story)
		s.queue()
		s.watches()
		s.clients()
		s.messages()
		s.words()
		f.WriteString("</g>\n")
		facts = append(facts, fmt.Sprintf("step %s, %d wait: 1 release, %d notifications, %d lists.", s.Step, s.cost.Waiters, s.cost.Notifications, s.cost.Lists))
	}
	f.legend()
	fmt.Fprintf(f, "<style>\n%s@media screen and (prefers-reduced-motion: no-preference) {\n%s}\n</style></svg>", filmCSS, &f.moves)
	return f.String(), facts
}

// A scene is a recorded release, by the film's clock.
type scene struct {
	*film
	Story
	cost          Release
	legs          []leg
	of            [][3]leg // a client's legs, by kind
	released      float64  // at the server
	before, after int      // the release, by the recording's clock
}

// A leg is a recorded frame on its way through the film.
type leg struct {
	Flight
	leaves float64
}

func (l leg) lands() float64 { return l.leaves + flight }

// newScene gives each frame of the release its time in the film. The frames of a
// kind leave in the recorded order, those of a client one after the other, and
// nobody hears of the release before it has reached the server.
func newScene(f *film, s Story) *scene {
	sc := &scene{
		film: f, Story: s, cost: s.release(), of: make([][3]leg, len(s.Clients)),
		released: opening + flight, before: s.Phases[0].Over, after: s.Phases[1].Over,
	}
	for _, frame := range s.Frames {
		if frame.At >= s.Phases[1].At && frame.At <= sc.after {
			sc.legs = append(sc.legs, leg{Flight: frame})
		}
	}
	slices.SortStableFunc(sc.legs, func(a, b leg) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	next := [3]float64{wiretap.Request: opening, wiretap.Reply: sc.released, wiretap.Notification: sc.released}
	free := make([]float64, len(s.Clients)) // when a client's last frame has landed
	for i := range sc.legs {
		l := &sc.legs[i]
		l.leaves = max(next[l.Kind], free[l.Client])
		next[l.Kind], free[l.Client] = l.leaves+apart, l.lands()
		sc.of[l.Client][l.Kind] = *l
	}
	return sc
}

// thereAt tells whether what was there from one moment to another was there at t.
func thereAt(t, from, to int) bool { return from <= t && (to < 0 || t < to) }

type point struct{ x, y float64 }

// place is where a place of the queue is, at a height.
func place(slot int, y float64) point { return point{30 + 38*float64(slot), y} }

// watched is where a watch of a znode ends, or, for -1, a watch of the queue.
func (s *scene) watched(i int) point {
	if i < 0 {
		return point{panelWidth / 2, queueFloor}
	}
	return place(s.Nodes[i].Slot, nodesAt+11)
}

// queue draws the znodes at the server.
func (s *scene) queue() {
	fmt.Fprintf(s, `<rect class="server" x="6" y="%d" width="%d" height="%d" rx="8"/><text class="soft m" x="%d" y="%d">ZooKeeper, the server, keeps the queue</text>`,
		queueTop, panelWidth-12, queueFloor-queueTop, panelWidth/2, queueTop+20)
	for _, n := range s.Nodes {
		if n.Slot < 0 || !thereAt(s.before, n.From, n.To) {
			continue
		}
		at, class := place(n.Slot, nodesAt), ""
		if !thereAt(s.after, n.From, n.To) {
			class = "gone " + s.looks(look{0, "opacity:1"}, look{s.released, "opacity:.3"})
		}
		fmt.Fprintf(s, `<g class="%s"><rect class="node" x="%.0f" y="%.0f" width="30" height="22" rx="4"/><text class="m" x="%.0f" y="%.0f">%d</text></g>`,
			class, at.x-15, at.y-11, at.x, at.y+5, n.Slot)
	}
}

// watches draws who watches what: a watch fires once, and may be set again.
func (s *scene) watches() {
	for _, w := range s.Watches {
		if !thereAt(s.before, w.From, w.To) {
			continue
		}
		from, to := s.watched(w.Node), place(s.Clients[w.Client].Slot, clientsAt-clientSize)
		line := fmt.Sprintf(`d="M%.0f %.0fL%.0f %.0f"/>`, from.x, from.y, to.x, to.y)
		told := s.of[w.Client][wiretap.Notification]
		if told.leaves == 0 {
			s.WriteString(`<path class="watch" ` + line)
			continue
		}
		set := during(0, told.leaves)
		if slices.ContainsFunc(s.Watches, func(again Watch) bool { return again.Client == w.Client && thereAt(s.after, again.From, again.To) }) {
			set = append(set, look{s.of[w.Client][wiretap.Reply].lands(), "opacity:1"})
		}
		fmt.Fprintf(s, `<path class="watch off %s" %s<path class="fires %s" %[2]s`, s.looks(set...), line, s.looks(during(told.leaves, told.lands())...))
	}
}

// clients draws the clients: asleep, woken, inside.
func (s *scene) clients() {
	for i, c := range s.Clients {
		at := place(c.Slot, clientsAt)
		told, knows := s.of[i][wiretap.Notification], s.of[i][wiretap.Reply].lands()
		disc := func(class string) string {
			return fmt.Sprintf(`<circle class="client %s" cx="%.0f" cy="%d" r="%d"/><text class="b m" x="%.0f" y="%d">%d</text>`,
				class, at.x, clientsAt, clientSize, at.x, clientsAt+5, i)
		}
		inside := during(knows, filmEnd)
		switch {
		case c.mood(s.before) == holds:
			inside = during(0, s.released)
			s.WriteString(`<g class="gone">` + disc("") + "</g>")
		case told.leaves > 0:
			s.WriteString(disc("woken " + s.looks(look{0, "fill:var(--paper)"}, look{told.lands(), "fill:var(--awake)"}, look{knows, "fill:var(--paper)"})))
		default:
			s.WriteString(disc(""))
		}
		if c.mood(s.before) == holds || c.mood(s.after) == holds {
			fmt.Fprintf(s, `<g class="off %s">%s<text class="holds" x="%.0f" y="%d">holds the lock</text></g>`,
				s.looks(inside...), disc("in"), at.x-clientSize, clientsAt+clientSize+18)
		}
	}
}

// messages draws every frame as a dot.
func (s *scene) messages() {
	for _, l := range s.legs {
		slot := s.Clients[l.Client].Slot
		class, from, to := "off", place(slot, queueFloor), place(slot, clientsAt-clientSize)
		switch l.Kind {
		case wiretap.Request:
			from, to = to, from
		case wiretap.Notification:
			class, from = "", s.watched(l.Node)
		}
		fmt.Fprintf(s, `<circle class="dot dot%d %s %s" r="5" transform="translate(%.0f %.0f)"/>`,
			l.Kind, class, s.flies(l, from, to), (from.x+2*to.x)/3, (from.y+2*to.y)/3)
	}
}

// words says what happens, and counts the notifications.
func (s *scene) words() {
	holder := func(t int) string {
		return s.Clients[slices.IndexFunc(s.Clients, func(c Client) bool { return c.mood(t) == holds })].Name
	}
	next := holder(s.after)
	whom, wake, others := next, next+" wakes and asks", "Nobody else woke."
	if n := s.cost.Notifications; n > 1 {
		whom, wake, others = fmt.Sprintf("all %d", n), fmt.Sprintf("all %d wake and ask", n), fmt.Sprintf("%d woke for nothing.", n-1)
	}
	var told []float64
	known := 0.0
	for _, l := range s.legs {
		if l.Kind == wiretap.Notification {
			told = append(told, l.lands())
		}
		known = max(known, l.lands())
	}
	captions := []struct {
		from float64
		text string
	}{
		{0, sentence("%s holds the lock. %d wait.", []any{holder(s.before), s.cost.Waiters})},
		{opening, sentence("%s releases. The server notifies %s.", []any{holder(s.before), whom})},
		{told[0], sentence("%s: is it my turn?", []any{wake})},
		{known, sentence("%s holds the lock. %s", []any{next, others})},
	}
	for i, c := range captions {
		to := filmEnd
		if i+1 < len(captions) {
			to = captions[i+1].from
		}
		s.text("caption m", panelWidth/2, captionAt, c.text, i == 1, during(c.from, to)...)
	}
	// Before the release, the count of the round before is still there.
	old, now := look{0, "opacity:.35"}, look{opening, "opacity:1"}
	_, noun, _ := strings.Cut(plural(len(told), "notification"), " ")
	s.text("big e", 180, countAt, "1 release →", true, old, now)
	s.text("big", 246, countAt, noun, true, old, now)
	from := opening
	for i, to := range told {
		s.text("count m", 213, countAt+3, number(i), false, during(from, to)...)
		from = to
	}
	s.text("count m", 213, countAt+3, number(len(told)), true, old, look{opening - blend, "opacity:0"}, look{from, "opacity:1"})
}

// text writes a text. If it is still, it is also in the picture without moves.
func (f *film) text(class string, x, y int, text string, still bool, all ...look) {
	if !still {
		class += " off"
	}
	fmt.Fprintf(f, `<text class="%s %s" x="%d" y="%d">%s</text>`, class, f.looks(all...), x, y, text)
}

// legend says what the signs mean.
func (f *film) legend() {
	fmt.Fprintf(f, `<path class="l" d="M%d 20V%d"/>`, panelWidth+panelGap/2, countAt+6)
	x := 70
	for _, l := range []struct {
		sign, text string
		width      int
	}{
		{`<circle class="client" cx="8" cy="-5" r="8"/>`, "waits, asleep", 146},
		{`<circle class="client woken" cx="8" cy="-5" r="8"/>`, "awake", 90},
		{`<circle class="client in" cx="8" cy="-5" r="8"/>`, "holds the lock", 152},
		{`<path class="watch" d="M0-5h18"/>`, "watch", 90},
		{`<circle class="dot dot2" cx="8" cy="-5" r="5"/>`, "notification", 130},
		{`<circle class="dot dot0" cx="8" cy="-5" r="5"/>`, "request", 100},
		{`<circle class="dot dot1" cx="8" cy="-5" r="5"/>`, "reply", 80},
	} {
		fmt.Fprintf(f, `<g transform="translate(%d %d)">%s<text x="24">%s</text></g>`, x, legendAt, l.sign, l.text)
		x += l.width
	}
	fmt.Fprintf(f, `<text class="s m" x="%d" y="%d">Every dot is a message that was recorded between a client and a real ZooKeeper. The pace is for the eye.</text>`, panelWidth+panelGap/2, legendAt+26)
}
