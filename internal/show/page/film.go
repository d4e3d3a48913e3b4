package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
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
	released   = opening + flight
)

// Measures of the film, in pixels.
const (
	panelWidth, panelGap           = 440, 20
	queueTop, nodesAt, queueFloor  = 76, 116, 136 // at the server
	clientsAt, clientSize          = 262, 15
	captionAt, countAt, filmHeight = 334, 382, 472
)

// A film is a drawing with things that move. Without the moves it is a picture
// of one moment: so it is printed, and shown to readers who want no motion.
type film struct {
	*drawing
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
	first, last := all[0], all[len(all)-1]
	frames := []keyframe{keyframeAt(first.css, 0)}
	for i, l := range all[1:] {
		before := all[i]
		frames = append(frames, keyframeAt(before.css, l.from), keyframeAt(l.css, l.from+blend))
	}
	frames = append(frames, keyframeAt(last.css, filmEnd+blend), keyframeAt(first.css, filmLength))
	return f.move(frames...)
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
	hidden := func(at point) string { return "opacity:0;" + at.css() }
	shown := func(at point) string { return "opacity:1;" + at.css() }
	return f.move(
		keyframeAt(hidden(from), 0, l.leaves),
		keyframeAt(shown(from), l.leaves+blink),
		keyframeAt(shown(to), l.lands()),
		keyframeAt(hidden(to), l.lands()+blink, filmLength),
	)
}

// A keyframe is how a thing looks at some moments, as CSS. Between two keyframes it changes
// evenly from one to the other.
type keyframe string

func keyframeAt(css string, moments ...float64) keyframe {
	var all []string
	for _, m := range moments {
		all = append(all, percent(m))
	}
	return keyframe(strings.Join(all, ",") + "{" + css + "}")
}

func percent(seconds float64) string { return fmt.Sprintf("%.4g%%", 100*seconds/filmLength) }

// move is the class of things that move like this, over and over.
func (f *film) move(frames ...keyframe) (class string) {
	var way string
	for _, k := range frames {
		way += string(k)
	}
	if class, isKnown := f.classes[way]; isKnown {
		return class
	}
	class = fmt.Sprintf("f%d", len(f.classes))
	f.classes[way] = class
	fmt.Fprintf(&f.moves, ".%s{animation:%s %vs linear infinite}", class, class, filmLength)
	fmt.Fprintf(&f.moves, "@keyframes %s{%s}\n", class, way)
	return class
}

// herdAndChain is the film at the head of the README: a release with step 3's
// lock beside one with step 4's.
func herdAndChain(herd, chain Story) (drawn picture, facts []words.Text) {
	title := words.Of("One release: step 3 wakes all who wait, step 4 wakes one")
	f := &film{
		classes: map[string]string{},
		drawing: draw(title, 2*panelWidth+panelGap, filmHeight),
	}
	for i, side := range []struct {
		Story
		title, idea string
	}{
		{herd, "Step 3: a herd", "every waiter watches the whole queue"},
		{chain, "Step 4: a chain", "every waiter watches the one in front of it"},
	} {
		fmt.Fprintf(f, `<g transform="translate(%d 0)">`, i*(panelWidth+panelGap))
		f.text("title m", panelWidth/2, 34, "%s", side.title)
		f.text("m", panelWidth/2, 58, "%s", side.idea)
		s := newScene(f, side.Story)
		s.queue()
		s.watches()
		s.clients()
		s.messages()
		s.words()
		fmt.Fprint(f, "</g>\n")
		facts = append(facts, words.Of("step %s, %d wait: 1 release, %d notifications, %d lists.",
			s.Step, len(s.Clients)-1, s.cost.Notifications, s.cost.Requests[wiretap.GetChildren]))
	}
	f.legend()
	fmt.Fprintf(
		f,
		"<style>\n%s@media screen and (prefers-reduced-motion: no-preference) {\n%s}\n</style>",
		filmCSS,
		&f.moves,
	)
	const width = 2*panelWidth + panelGap
	drawn = f.end()
	drawn.Text = drawn.Changed(func(svg string) string {
		svg = smaller(svg, `width="%d"`, width, shownWidth)
		return smaller(svg, `height="%d"`, filmHeight, shownWidth*filmHeight/width)
	})
	return drawn, facts
}

// legend says what the signs mean, below the queues and between them.
func (f *film) legend() {
	f.path("l", "M450 20V388")
	sign := func(x float64, markup, text string) {
		fmt.Fprintf(f, `<g transform="translate(%v 430)">%s`, x, markup)
		f.text("", 24, 0, "%s", text)
		fmt.Fprint(f, "</g>\n")
	}
	sign(70, `<circle class="client" cx="8" cy="-5" r="8"/>`, "waits, asleep")
	sign(216, `<circle class="client woken" cx="8" cy="-5" r="8"/>`, "awake")
	sign(306, `<circle class="client in" cx="8" cy="-5" r="8"/>`, "holds the lock")
	sign(458, `<path class="watch" d="M0-5h18"/>`, "watch")
	sign(548, `<circle class="dot dot2" cx="8" cy="-5" r="5"/>`, "notification")
	sign(678, `<circle class="dot dot0" cx="8" cy="-5" r="5"/>`, "request")
	sign(778, `<circle class="dot dot1" cx="8" cy="-5" r="5"/>`, "reply")
	f.text(
		"s m",
		450,
		456,
		"Every dot is a message that was recorded between a client and a real ZooKeeper. The pace is for the eye.",
	)
}

// shownWidth lets the commands below the film stand on the first screen of a laptop.
const shownWidth = 720

// smaller replaces the size that a picture has by the one in which it is shown.
func smaller(svg, format string, drawn, shown int) string {
	return strings.Replace(svg, fmt.Sprintf(format, drawn), fmt.Sprintf(format, shown), 1)
}

// A scene is a recorded release, by the film's clock.
type scene struct {
	*film
	Story
	cost          wiretap.Counts
	legs          []leg
	of            [][3]leg // a client's legs, by kind
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
	waiting, release := s.Phases[0], s.Phases[1]
	sc := &scene{
		film:   f,
		Story:  s,
		cost:   s.counts(1),
		of:     make([][3]leg, len(s.Clients)),
		before: waiting.Over,
		after:  release.Over,
	}
	for _, frame := range s.Frames {
		if release.At <= frame.At && frame.At <= release.Over {
			sc.legs = append(sc.legs, leg{Flight: frame})
		}
	}
	slices.SortStableFunc(sc.legs, func(a, b leg) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	next := [3]float64{wiretap.Request: opening, wiretap.Reply: released, wiretap.Notification: released}
	free := make([]float64, len(s.Clients)) // when a client's last frame has landed
	for i := range sc.legs {
		l := &sc.legs[i]
		l.leaves = max(next[l.Kind], free[l.Client])
		next[l.Kind] = l.leaves + apart
		free[l.Client] = l.lands()
		sc.of[l.Client][l.Kind] = *l
	}
	return sc
}

// thereAt tells whether what was there from one moment to another was there at t.
func thereAt(t, from, to int) bool {
	hasEnded := to >= 0 && to <= t
	return from <= t && !hasEnded
}

type point struct{ x, y float64 }

// css puts a thing there.
func (p point) css() string { return fmt.Sprintf("transform:translate(%.0fpx,%.0fpx)", p.x, p.y) }

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
	s.box("server", panelWidth/2, (queueTop+queueFloor)/2, panelWidth-12, queueFloor-queueTop)
	s.text("soft m", panelWidth/2, queueTop+20, "ZooKeeper, the server, keeps the queue")
	for _, n := range s.Nodes {
		isQueued := n.Slot >= 0 && thereAt(s.before, n.From, n.To)
		if !isQueued {
			continue
		}
		at := place(n.Slot, nodesAt)
		class := ""
		if !thereAt(s.after, n.From, n.To) {
			class = "gone " + s.looks(look{0, "opacity:1"}, look{released, "opacity:.3"})
		}
		s.group(class, func() {
			s.box("node", at.x, at.y, 30, 22)
			s.text("m", at.x, at.y+5, "%d", n.Slot)
		})
	}
}

// group draws things that look alike.
func (f *film) group(class string, draw func()) {
	fmt.Fprintf(f, `<g class="%s">`, class)
	draw()
	fmt.Fprint(f, "</g>")
}

// watches draws who watches what: a watch fires once, and may be set again.
func (s *scene) watches() {
	for _, w := range s.Watches {
		if !thereAt(s.before, w.From, w.To) {
			continue
		}
		from := s.watched(w.Node)
		to := place(s.Clients[w.Client].Slot, clientsAt-clientSize)
		line := func(class string) { s.path(class, "M%v %vL%v %v", from.x, from.y, to.x, to.y) }
		told := s.of[w.Client][wiretap.Notification]
		if told.leaves == 0 {
			line("watch")
			continue
		}
		set := during(0, told.leaves)
		if s.watchesAfter(w.Client) {
			setAgain := s.of[w.Client][wiretap.Reply].lands()
			set = append(set, look{setAgain, "opacity:1"})
		}
		line("watch off " + s.looks(set...))
		line("fires " + s.looks(during(told.leaves, told.lands())...))
	}
}

// watchesAfter tells whether a client has a watch after the release.
func (s *scene) watchesAfter(client int) bool {
	for _, w := range s.Watches {
		if w.Client == client && thereAt(s.after, w.From, w.To) {
			return true
		}
	}
	return false
}

// clients draws the clients: asleep, woken, inside.
func (s *scene) clients() {
	for i, c := range s.Clients {
		x := place(c.Slot, 0).x
		disc := func(class string) {
			s.circle("client "+class, x, clientsAt, clientSize)
			s.text("b m", x, clientsAt+5, "%d", i)
		}
		inside := func(from, to float64) {
			s.group("off "+s.looks(during(from, to)...), func() {
				disc("in")
				s.text("holds", x-clientSize, clientsAt+clientSize+18, "holds the lock")
			})
		}
		told := s.of[i][wiretap.Notification]
		knows := s.of[i][wiretap.Reply].lands() // the answer to what it asks then
		heldBefore := c.mood(s.before) == zktest.MoodHolds
		holdsAfter := c.mood(s.after) == zktest.MoodHolds
		switch {
		case heldBefore:
			s.group("gone", func() { disc("") })
		case told.leaves > 0:
			asleep := look{0, "fill:var(--paper)"}
			awake := look{told.lands(), "fill:var(--awake)"}
			asleepAgain := look{knows, "fill:var(--paper)"}
			disc("woken " + s.looks(asleep, awake, asleepAgain))
		default:
			disc("")
		}
		switch {
		case heldBefore:
			inside(0, released)
		case holdsAfter:
			inside(knows, filmEnd)
		}
	}
}

// messages draws every frame as a dot.
func (s *scene) messages() {
	for _, l := range s.legs {
		slot := s.Clients[l.Client].Slot
		server := place(slot, queueFloor)
		client := place(slot, clientsAt-clientSize)
		var from, to point
		class := "off"
		switch l.Kind {
		case wiretap.Request:
			from, to = client, server
		case wiretap.Reply:
			from, to = server, client
		case wiretap.Notification:
			from, to = s.watched(l.Node), client
			class = "" // it is also in the picture without moves
		}
		still := point{(from.x + 2*to.x) / 3, (from.y + 2*to.y) / 3} // where it stands in that picture
		fmt.Fprintf(
			s,
			`<circle class="dot dot%d %s %s" r="5" transform="translate(%.0f %.0f)"/>`,
			l.Kind,
			class,
			s.flies(l, from, to),
			still.x,
			still.y,
		)
	}
}

// words says what happens, and counts the notifications.
func (s *scene) words() {
	holder := func(t int) words.Text {
		return s.Clients[slices.IndexFunc(s.Clients, func(c Client) bool { return c.mood(t) == zktest.MoodHolds })].Name
	}
	next := holder(s.after)
	whom, wake, others := next, words.Of("%v wakes and asks", next), words.Of("Nobody else woke.")
	if n := s.cost.Notifications; n > 1 {
		whom, wake, others = words.Of("all %d", n), words.Of("all %d wake and ask", n), words.Of("%d woke for nothing.", n-1)
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
		text words.Text
	}{
		{0, sentence("%s holds the lock. %d wait.", holder(s.before), len(s.Clients)-1)},
		{opening, sentence("%s releases. The server notifies %s.", holder(s.before), whom)},
		{told[0], sentence("%s: is it my turn?", wake)},
		{known, sentence("%s holds the lock. %s", next, others)},
	}
	for i, c := range captions {
		to := filmEnd
		if i+1 < len(captions) {
			to = captions[i+1].from
		}
		s.caption("caption m", panelWidth/2, captionAt, c.text, i == 1, during(c.from, to)...)
	}
	// Before the release, the count of the round before is still there.
	old, now := look{0, "opacity:.35"}, look{opening, "opacity:1"}
	noun := "notifications"
	if len(told) == 1 {
		noun = "notification"
	}
	s.caption("big e", 180, countAt, words.Of("1 release →"), true, old, now)
	s.caption("big", 246, countAt, words.Whole(noun), true, old, now)
	from := opening
	for i, to := range told {
		s.caption("count m", 213, countAt+3, words.Whole(number(i)), false, during(from, to)...)
		from = to
	}
	s.caption(
		"count m",
		213,
		countAt+3,
		words.Whole(number(len(told))),
		true,
		old,
		look{opening - blend, "opacity:0"},
		look{from, "opacity:1"},
	)
}

// caption writes a text that changes its looks. If it is still, it is also in the
// picture without moves.
func (f *film) caption(class string, x, y float64, text words.Text, still bool, all ...look) {
	if !still {
		class += " off"
	}
	f.text(class+" "+f.looks(all...), x, y, "%s", text)
}
