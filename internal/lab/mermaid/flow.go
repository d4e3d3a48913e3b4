package mermaid

import (
	"fmt"
	"regexp"
	"slices"
)

// A flow has boxes in columns, and lines between them. A box that points to another one is in an
// earlier column.
type flow struct {
	boxes    []*box
	edges    []edge
	group    string // the title of the subgraph
	grouped  []*box
	isInside bool // the lines being read are inside the subgraph
	canvas
}

type box struct {
	id, label string
	column    int
	x, y      float64 // of its middle
}

type edge struct {
	from, to *box
	text     string
	isPlain  bool // it has no arrowhead
}

var (
	end      = `(\w+)(?:\["(.+?)"\])?`
	aBox     = regexp.MustCompile(`^` + end + `$`)
	anEdge   = regexp.MustCompile(`^` + end + ` (?:-- (.+?) )?(-->|---) ` + end + `$`)
	subgraph = regexp.MustCompile(`^subgraph \w+\["(.+)"\]$`)
)

func drawFlow(lines []string, isMirrored bool) (string, error) {
	f := &flow{}
	for _, line := range lines {
		if err := f.read(line); err != nil {
			return "", err
		}
	}
	return f.draw(isMirrored), nil
}

func (f *flow) read(line string) error {
	if m := subgraph.FindStringSubmatch(line); m != nil {
		f.group, f.isInside = m[1], true
		return nil
	}
	if line == "end" {
		f.isInside = false
		return nil
	}
	if m := anEdge.FindStringSubmatch(line); m != nil {
		from, to := f.box(m[1], m[2]), f.box(m[5], m[6])
		f.edges = append(f.edges, edge{from, to, m[3], m[4] == "---"})
		return nil
	}
	if m := aBox.FindStringSubmatch(line); m != nil {
		f.box(m[1], m[2])
		return nil
	}
	return fmt.Errorf("mermaid: a flow has no %q", line)
}

// box returns the box with this name. If there is none, it adds one.
func (f *flow) box(id, label string) *box {
	i := slices.IndexFunc(f.boxes, func(b *box) bool { return b.id == id })
	if i >= 0 {
		return f.boxes[i]
	}
	if label == "" {
		label = id
	}
	b := &box{id: id, label: label}
	f.boxes = append(f.boxes, b)
	if f.isInside {
		f.grouped = append(f.grouped, b)
	}
	return b
}

func (f *flow) draw(isMirrored bool) string {
	for range f.boxes { // no path is longer than this
		for _, e := range f.edges {
			e.to.column = max(e.to.column, e.from.column+1)
		}
	}
	edgeWidth := 40.0
	for _, e := range f.edges {
		edgeWidth = max(edgeWidth, width(e.text)+30)
	}
	top := 0.0
	if f.group != "" {
		top = 26
	}
	x, height := 2.0*margin, 0.0
	for column := 0; ; column++ {
		widest, y := 0.0, top+2*margin
		for _, b := range f.boxes {
			if b.column == column {
				widest = max(widest, f.room(b))
			}
		}
		if widest == 0 {
			break
		}
		for _, b := range f.boxes {
			if b.column == column {
				b.x, b.y = x+widest/2, y+boxHeight/2
				y += boxHeight + 14
			}
		}
		x, height = x+widest+edgeWidth, max(height, y)
	}
	full := x - edgeWidth + 2*margin
	if isMirrored {
		for _, b := range f.boxes {
			b.x = full - b.x
		}
	}
	f.drawGroup()
	for _, e := range f.edges {
		f.edge(e)
	}
	for _, b := range f.boxes {
		f.canvas.box("box", b.x, b.y-12, width(b.label)+2*padding, b.label)
	}
	return f.svg(full, height+margin)
}

// room returns the width that a box needs, including the title of its group.
func (f *flow) room(b *box) float64 {
	own := width(b.label) + 2*padding
	if slices.Contains(f.grouped, b) {
		return max(own, width(f.group)) + 2*margin
	}
	return own
}

// drawGroup draws the subgraph, behind its boxes.
func (f *flow) drawGroup() {
	if len(f.grouped) == 0 {
		return
	}
	first, last := f.grouped[0], f.grouped[len(f.grouped)-1]
	wide := 0.0
	for _, b := range f.grouped {
		wide = max(wide, f.room(b))
	}
	fmt.Fprintf(&f.shapes, `<rect class="note" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="4"/>`,
		first.x-wide/2, first.y-boxHeight-14, wide, last.y-first.y+2*boxHeight+8)
	f.text(first.x, first.y-boxHeight+4, f.group)
	f.say("%s", f.group)
}

func (f *flow) edge(e edge) {
	direction := 1.0
	if e.to.x < e.from.x {
		direction = -1
	}
	x1 := e.from.x + direction*(width(e.from.label)/2+padding)
	x2 := e.to.x - direction*(width(e.to.label)/2+padding)
	f.line("line", x1, e.from.y, x2, e.to.y)
	if e.isPlain {
		f.say("%s: %s", e.from.label, e.to.label)
		return
	}
	f.head(x2, e.to.y, direction)
	f.text((x1+x2)/2, (e.from.y+e.to.y)/2-6, e.text)
	f.say("%s → %s: %s", e.from.label, e.to.label, e.text)
}
