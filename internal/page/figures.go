package page

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
)

// A Drawing is a picture for the chapters, drawn from a run.
type Drawing struct {
	Name string // of its file, without .svg
	SVG  string
	// Facts is what it shows that is the same in every run. The file carries
	// it, so that a test can hold an old picture against a new run.
	Facts string
}

// File is the picture as a file of its own, with its own colours, for light and
// dark.
func (d Drawing) File() string {
	at := strings.Index(d.SVG, ">") + 1
	return d.SVG[:at] + "<desc>" + html.EscapeString(d.Facts) + "</desc>\n<style>\n" + drawingColours + drawingCSS +
		"</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"var(--paper)\"/>\n" + d.SVG[at:] + "\n"
}

// Figures records what the chapters show, and draws it.
func Figures(server *zkserver.Server) (all []Drawing, err error) {
	tell := func(key string, s story) Story {
		var told Story
		if err == nil {
			told, err = record(server, Steps[slices.IndexFunc(Steps, func(s Step) bool { return s.Key == key })], s)
		}
		return told
	}
	add := func(name, svg string, facts []string) {
		all = append(all, Drawing{name, svg, strings.Join(facts, " ")})
	}
	var rec Recording
	var releases []Story
	for _, key := range []string{"3", "4"} {
		ten := tell(key, story{Title: "a release", tell: releaseAmong(10)})
		few := tell(key, story{Title: "a release", tell: releaseAmong(3)})
		for _, n := range []int{10, 30, 100, 300} {
			rec.Releases = append(rec.Releases, tell(key, story{Title: "a release", tell: releaseAmong(n)}).release())
		}
		if err != nil {
			return nil, err
		}
		releases = append(releases, ten)
		svg, facts := Ring("Step "+key+": who watches whom", ten, ten.Phases[0].Over)
		add("watches-step"+key, svg, facts)
		svg, facts = Sequence("Step "+key+": a release, three waiting", few.phase(1), evidenceLimit)
		slices.Sort(facts) // those who are woken together answer in any order
		add("release-step"+key, svg, facts)
	}
	film, counts := HerdAndChain(releases[0], releases[1])
	add("herd-and-chain", film, counts)
	for _, key := range []string{"4", "5"} {
		lost := tell(key, story{Title: "a lost reply", tell: tellLostReply})
		if err != nil {
			return nil, err
		}
		svg, facts := Sequence("Step "+key+": the reply to a create gets lost", lost.lines, evidenceLimit)
		add("lost-reply-step"+key, svg, facts)
	}
	var facts []string
	for _, r := range rec.Releases {
		facts = append(facts, fmt.Sprintf("step %s, %d wait: %d notifications, %d requests, %d bytes.", r.Step, r.Waiters, r.Notifications, r.Requests, r.Bytes))
	}
	for i, name := range []string{"growth-notifications", "growth-requests", "growth-bytes"} {
		add(name, rec.Charts()[i], facts)
	}
	return all, nil
}

// phase is what passed on the wire in one phase.
func (s Story) phase(i int) (lines []lockcheck.Line) {
	for client, line := range s.lines {
		var frames []wiretap.Frame
		for _, f := range line.Frames {
			if at := int(f.At.Sub(s.start).Microseconds()); at >= s.Phases[i].At && at <= s.Phases[i].Over {
				frames = append(frames, f)
			}
		}
		lines = append(lines, lockcheck.Line{Client: s.Clients[client].Name, Frames: frames})
	}
	return lines
}

// Ring draws a moment of a story as the page's stage does: the directory with
// its znodes in the middle, the clients around it, an arrow from each to what
// it watches.
func Ring(title string, s Story, t int) (svg string, facts []string) {
	const side, hub, nodes, clients = 440, 58.0, 118.0, 178.0
	there := func(from, to int) bool { return from <= t && (to < 0 || t < to) }
	at := func(slot int, radius float64) (x, y float64) {
		angle := 2*math.Pi*float64(slot)/float64(s.Slots) - math.Pi/2
		return side/2 + radius*math.Cos(angle), side/2 + 12 + radius*math.Sin(angle)
	}
	var b strings.Builder
	open(&b, title, side, side+14)
	fmt.Fprintf(&b, `<text class="b" x="8" y="20">%s</text><circle class="l" cx="%d" cy="%d" r="%v"/><circle cx="%d" cy="%d" r="%v"/>`,
		html.EscapeString(title), side/2, side/2+12, nodes, side/2, side/2+12, hub)
	fmt.Fprintf(&b, `<text class="b m" x="%d" y="%d">ZooKeeper</text><text class="s m" x="%d" y="%d">/lock</text>`, side/2, side/2+10, side/2, side/2+27)
	held := func(client int) bool { return s.Clients[client].mood(t) == holds }
	for _, n := range s.Nodes {
		if !there(n.From, n.To) {
			continue
		}
		x, y := at(n.Slot, nodes)
		cx, cy := at(s.Clients[n.Owner].Slot, clients)
		line, box, text := "l", "plain", ""
		if held(n.Owner) {
			line, box, text = "hold", "full", " on"
		}
		fmt.Fprintf(&b, `<path class="%s" d="M%.0f %.0fL%.0f %.0f"/><rect class="box %s" x="%.0f" y="%.0f" width="34" height="20" rx="4"/><text class="b m%s" x="%.0f" y="%.0f">%s</text>`,
			line, cx, cy, x, y, box, x-17, y-10, text, x, y+5, strings.TrimPrefix(short(n.Name), "lock-"))
	}
	for _, w := range s.Watches {
		if !there(w.From, w.To) {
			continue
		}
		slot := s.Clients[w.Client].Slot
		x, y := at(slot, clients)
		tx, ty := at(slot, hub+2)
		what, bend := "the directory", 46.0
		if w.Node >= 0 {
			tx, ty = at(s.Nodes[w.Node].Slot, nodes)
			far := math.Hypot(tx-x, ty-y)
			tx, ty = tx+(x-tx)/far*17, ty+(y-ty)/far*17
			what, bend = "the znode of "+s.Clients[s.Nodes[w.Node].Owner].Name, 0
		}
		far := math.Hypot(tx-x, ty-y)
		mx, my := (x+tx)/2-(y-ty)/far*bend, (y+ty)/2+(x-tx)/far*bend
		angle := math.Atan2(ty-my, tx-mx) * 180 / math.Pi
		fmt.Fprintf(&b, `<path class="w" d="M%.0f %.0fQ%.0f %.0f %.0f %.0f"/><path class="wf" d="M0 0l-9-4v8z" transform="translate(%.0f %.0f)rotate(%.0f)"/>`, x, y, mx, my, tx, ty, tx, ty, angle)
		facts = append(facts, fmt.Sprintf("%s watches %s.", s.Clients[w.Client].Name, what))
	}
	for i, c := range s.Clients {
		x, y := at(c.Slot, clients)
		circle, text := "plain", ""
		if held(i) {
			circle, text = "full", " on"
			fmt.Fprintf(&b, `<circle class="hold" cx="%.0f" cy="%.0f" r="19"/>`, x, y)
			facts = append(facts, c.Name+" holds the lock.")
		}
		fmt.Fprintf(&b, `<circle class="%s" cx="%.0f" cy="%.0f" r="15"/><text class="b m%s" x="%.0f" y="%.0f">%s</text>`, circle, x, y, text, x, y+5, strings.TrimPrefix(c.Name, "client "))
	}
	b.WriteString("</svg>")
	slices.Sort(facts)
	return b.String(), facts
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
