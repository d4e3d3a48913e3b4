package page

import (
	"html"
	"math"
	"slices"
	"strings"

	"zklock/internal/check/zktest"
	"zklock/internal/upkeep/words"
)

// A Drawing is a picture for the chapters, drawn from a run.
type Drawing struct {
	Name string // of its file, without .svg
	SVG  words.Text
	// Facts is what it shows that is the same in every run. The file carries
	// it, so that a test can hold an old picture against a new run.
	Facts words.Text
}

// File is the picture as a file of its own, in each language, with its own colours, for
// light and dark.
func (d Drawing) File() words.Text {
	return words.Text{EN: file(d.SVG.EN, d.Facts.EN), ZH: file(d.SVG.ZH, d.Facts.ZH)}
}

func file(svg, facts string) string {
	at := strings.Index(svg, ">") + 1
	return svg[:at] + "<desc>" + html.EscapeString(facts) + "</desc>\n<style>\n" + Colours + drawingCSS +
		"</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"var(--paper)\"/>\n" + svg[at:] + "\n"
}

// inOrder sorts facts that come in any order.
func inOrder(facts []words.Text) {
	slices.SortFunc(facts, func(a, b words.Text) int { return strings.Compare(a.EN, b.EN) })
}

// Figures draws what the chapters show, from a recording of all steps.
func (rec *Recording) Figures() (all []Drawing) {
	add := func(name string, drawn picture, facts []words.Text) {
		all = append(all, Drawing{name, drawn.Text, words.Join(facts, " ")})
	}
	for _, key := range []string{"3", "4"} {
		ten := rec.story("release", key)
		svg, facts := ring(words.Of("Step %v: who watches whom", key), ten, ten.Phases[0].Over)
		add("watches-step"+key, svg, facts)
		svg, facts = sequence(words.Of("Step %v: a release, three waiting", key), rec.story("few", key).since(1))
		inOrder(facts) // those who are woken together answer in any order
		add("release-step"+key, svg, facts)
	}
	film, counts := herdAndChain(rec.story("release", "3"), rec.story("release", "4"))
	add("herd-and-chain", film, counts)
	for _, key := range []string{"4", "5"} {
		svg, facts := sequence(words.Of("Step %v: the reply to a create gets lost", key), rec.story("lost", key).since(0))
		add("lost-reply-step"+key, svg, facts)
	}
	svg, facts := architecture()
	add("architecture", svg, facts)
	const largest = 300
	facts = nil
	for _, row := range rec.releases("34") {
		if row[1].(int) <= largest {
			facts = append(facts, words.Of("%s, %d wait: %d notifications, %d requests, %d bytes.", row...))
		}
	}
	for i, name := range []string{"growth-notifications", "growth-requests", "growth-bytes"} {
		add(name, rec.Charts("34", largest)[i], facts)
	}
	return all
}

// ring draws a moment of a story as the page's stage does: the directory with
// its znodes in the middle, the clients around it, an arrow from each to what
// it watches.
func ring(title words.Text, s Story, t int) (drawn picture, facts []words.Text) {
	const side, hub, nodes, clients = 440, 58.0, 118.0, 178.0
	at := func(slot int, radius float64) (x, y float64) {
		angle := 2*math.Pi*float64(slot)/float64(s.Slots) - math.Pi/2
		return side/2 + radius*math.Cos(angle), side/2 + 12 + radius*math.Sin(angle)
	}
	d := headed(title, side, side+14)
	d.circle("l", side/2, side/2+12, nodes)
	d.circle("", side/2, side/2+12, hub)
	d.text("b m", side/2, side/2+10, "ZooKeeper")
	d.text("s m", side/2, side/2+27, "/lock")
	held := func(client int) bool { return s.Clients[client].mood(t) == zktest.MoodHolds }
	for _, n := range s.Nodes {
		if !thereAt(t, n.From, n.To) {
			continue
		}
		x, y := at(n.Slot, nodes)
		cx, cy := at(s.Clients[n.Owner].Slot, clients)
		line, box, text := "l", "plain", ""
		if held(n.Owner) {
			line, box, text = "hold", "full", " on"
		}
		d.path(line, "M%v %vL%v %v", cx, cy, x, y)
		d.box("box "+box, x, y, 34, 20)
		d.text("b m"+text, x, y+5, "%s", strings.TrimPrefix(short(n.Name), "lock-"))
	}
	for _, w := range s.Watches {
		if !thereAt(t, w.From, w.To) {
			continue
		}
		slot := s.Clients[w.Client].Slot
		x, y := at(slot, clients)
		tx, ty := at(slot, hub+2)
		what, bend := words.Of("the directory"), 46.0
		if w.Node >= 0 {
			tx, ty = at(s.Nodes[w.Node].Slot, nodes)
			far := math.Hypot(tx-x, ty-y)
			tx, ty = tx+(x-tx)/far*17, ty+(y-ty)/far*17
			what, bend = words.Of("the znode of %v", s.Clients[s.Nodes[w.Node].Owner].Name), 0
		}
		far := math.Hypot(tx-x, ty-y)
		dx, dy := (tx-x)/far, (ty-y)/far
		mx, my := (x+tx)/2-dy*bend, (y+ty)/2+dx*bend
		d.path("w", "M%v %vQ%v %v %v %v", x, y, mx, my, tx, ty)
		d.head("wf", mx, my, tx, ty)
		facts = append(facts, words.Of("%s watches %s.", s.Clients[w.Client].Name, what))
	}
	for i, c := range s.Clients {
		x, y := at(c.Slot, clients)
		circle, text := "plain", ""
		if held(i) {
			circle, text = "full", " on"
			d.circle("hold", x, y, 19)
			facts = append(facts, words.Of("%v holds the lock.", c.Name))
		}
		d.circle(circle, x, y, 15)
		d.text("b m"+text, x, y+5, "%s", strings.TrimPrefix(c.Name.EN, "client "))
	}
	inOrder(facts)
	return d.end(), facts
}

// architecture draws who talks to whom: clients, the servers of an ensemble, and the
// ways of a read, a watch and a write.
func architecture() (drawn picture, facts []words.Text) {
	const left, middle, right, servers, clients = 110.0, 390.0, 670.0, 120.0, 300.0
	d := headed(words.Of("An ensemble: where reads, watches and writes go"), 780, 345)
	arrow := func(class string, x, y, tx, ty float64, label string, lx, ly float64) {
		d.path(class, "M%v %vL%v %v", x, y, tx, ty)
		d.head(class+"f", x, y, tx, ty)
		d.text("h m", lx, ly, "%s", label)
	}
	between := func(from, to, y float64, class, label string) {
		side := math.Copysign(75, to-from)
		arrow(class, from+side, y, to-side, y, label, (from+to)/2, y-4)
	}
	for i, x := range []float64{left, middle, right} {
		d.box("box plain", x, servers, 150, 104)
		d.text("b m", x, servers-20, "%s", [...]string{"follower", "leader", "follower"}[i])
		d.text("s m", x, servers+2, "all znodes, in memory")
		d.text("s m", x, servers+20, "the watches of its clients")
	}
	for i, x := range []float64{62, 160, right} {
		d.circle("plain", x, clients, 17)
		d.text("b m", x, clients+5, "%c", 'A'+i)
	}
	between(right, middle, 84, "q", "2 passed on")
	for _, follower := range []float64{left, right} {
		between(middle, follower, 110, "q", "3 a proposal")
		between(follower, middle, 136, "r", "4 yes")
		between(middle, follower, 162, "q", "5 decided")
	}
	const up, down = servers + 53, clients - 20 // the ends of a client's line
	arrow("q", 54, down, 54, up, "a read", 28, 232)
	arrow("r", 70, up, 70, down, "answer", 97, 232)
	arrow("n", 160, up, 160, down, "! a notification", 212, 232)
	arrow("q", right-8, down, right-8, up, "1 a write", right-42, 232)
	arrow("r", right+8, up, right+8, down, "6 done", right+36, 232)
	d.text("s", 250, 296, "A reads: its server answers alone.")
	d.text("s", 250, 312, "B has a watch: its server notifies it.")
	d.text("s", 250, 328, "C writes: a majority of the servers agrees.")
	return d.end(), []words.Text{
		words.Of("A client asks the one server that it is connected to."),
		words.Of("That server answers a read alone, and keeps the client's watches."),
		words.Of("A write goes to the leader, which proposes it to all, and is done when a majority has agreed."),
	}
}

// mood is what the client believes of itself at a moment.
func (c Client) mood(t int) (is string) {
	for _, m := range c.Moods {
		if m.At <= t {
			is = m.Is
		}
	}
	return is
}
