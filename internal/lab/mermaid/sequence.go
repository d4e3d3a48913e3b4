package mermaid

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A sequence has a column for each participant, and the events in order from top to bottom.
type sequence struct {
	names, labels []string
	events        []event
	gaps          []float64 // between a column and the next
	x             []float64 // of the columns
	canvas
}

// An event is a message from one column to another, a note over some columns, or the beginning or
// the end of a loop.
type event struct {
	from, to int
	kind     string // the arrow of a message, or one of the constants below
	text     string
}

const (
	isNote = "Note"
	isLoop = "loop"
	isEnd  = "end"
)

var (
	participant = regexp.MustCompile(`^participant (\w+)(?: as (.+))?$`)
	message     = regexp.MustCompile(`^(\w+)(->>|-->>|--x)(\w+): (.+)$`)
	loop        = regexp.MustCompile(`^loop (.+)$`)
	note        = regexp.MustCompile(`^Note over (\w+)(?:, ?(\w+))?: (.+)$`)
)

func drawSequence(lines []string) (string, error) {
	s := &sequence{}
	for _, line := range lines {
		if err := s.read(line); err != nil {
			return "", err
		}
	}
	s.place()
	return s.draw(), nil
}

func (s *sequence) read(line string) error {
	if m := participant.FindStringSubmatch(line); m != nil {
		label := m[2]
		if label == "" {
			label = m[1]
		}
		s.names, s.labels = append(s.names, m[1]), append(s.labels, label)
		return nil
	}
	if m := loop.FindStringSubmatch(line); m != nil {
		s.events = append(s.events, event{0, len(s.names) - 1, isLoop, m[1]})
		return nil
	}
	if line == "end" {
		s.events = append(s.events, event{0, len(s.names) - 1, isEnd, ""})
		return nil
	}
	var e event
	var from, to string
	if m := message.FindStringSubmatch(line); m != nil {
		from, to = m[1], m[3]
		e.kind, e.text = m[2], m[4]
	} else if m := note.FindStringSubmatch(line); m != nil {
		from, to = m[1], m[2]
		e.kind, e.text = isNote, m[3]
		if to == "" {
			to = from
		}
	} else {
		return fmt.Errorf("mermaid: a sequence has no %q", line)
	}
	e.from, e.to = slices.Index(s.names, from), slices.Index(s.names, to)
	isUnknown := e.from < 0 || e.to < 0
	if isUnknown {
		return fmt.Errorf("mermaid: who is in %q?", line)
	}
	s.events = append(s.events, e)
	return nil
}

// place puts the columns far enough apart for each text.
func (s *sequence) place() {
	s.gaps = make([]float64, len(s.names)-1)
	for i := range s.gaps {
		s.gaps[i] = (width(s.labels[i])+width(s.labels[i+1]))/2 + 2*padding + 20
	}
	for _, e := range s.events {
		first, last := min(e.from, e.to), max(e.from, e.to)
		needed := width(e.text) + 2*padding
		switch {
		case first < last:
			s.widen(first, last, needed)
		case first > 0: // a note over one column must not touch the column before
			s.widen(first-1, first, needed/2+padding)
		}
		if first == last && last < len(s.gaps) {
			s.widen(last, last+1, needed/2+padding)
		}
	}
	left := margin + width(s.labels[0])/2 + padding
	for _, e := range s.events {
		if max(e.from, e.to) == 0 {
			left = max(left, margin+width(e.text)/2+padding)
		}
	}
	s.x = []float64{left}
	for i, gap := range s.gaps {
		s.x = append(s.x, s.x[i]+gap)
	}
}

// widen makes the distance between two columns at least as large as needed.
func (s *sequence) widen(first, last int, needed float64) {
	between := s.gaps[first:last]
	sum := 0.0
	for _, gap := range between {
		sum += gap
	}
	for i := range between {
		between[i] += max(0, needed-sum) / float64(len(between))
	}
}

func (s *sequence) draw() string {
	const top = margin + boxHeight
	height := float64(top + row*len(s.events) + margin + 10)
	last := len(s.x) - 1
	right := s.x[last] + width(s.labels[last])/2 + padding
	for i, x := range s.x {
		s.line("life", x, top-6, x, height-margin)
		s.box("box", x, margin, width(s.labels[i])+2*padding, s.labels[i])
	}
	y, loopFrom := float64(top), 0.0
	for _, e := range s.events {
		y += row
		from, to := s.x[e.from], s.x[e.to]
		middle := (from + to) / 2
		switch e.kind {
		case isLoop:
			loopFrom = y
			s.text(middle, y-6, e.text)
			s.say("%s", e.text)
			continue
		case isEnd:
			y -= row / 2
			s.frame(from-margin, loopFrom-24, to+margin, y)
			continue
		case isNote:
			wide := max(width(e.text)+2*padding, to-from+2*padding)
			right = max(right, middle+wide/2)
			s.box("note", middle, y-22, wide, e.text)
			s.say("%s: %s", strings.Join(slices.Compact([]string{s.labels[e.from], s.labels[e.to]}), ", "), e.text)
			continue
		}
		s.arrow(e, from, to, y)
		s.text(middle, y-6, e.text)
		s.say("%s → %s: %s", s.labels[e.from], s.labels[e.to], e.text)
	}
	return s.svg(right+margin, height)
}

// frame draws the frame around a loop.
func (s *sequence) frame(left, top, right, bottom float64) {
	fmt.Fprintf(&s.shapes, `<rect class="loop" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="4"/>`,
		left, top, right-left, bottom-top)
}

// arrow draws a message. The arrow of a lost message ends with a cross before it arrives.
func (s *sequence) arrow(e event, from, to, y float64) {
	direction := 1.0
	if to < from {
		direction = -1
	}
	switch e.kind {
	case "->>":
		s.line("line", from, y, to, y)
		s.head(to, y, direction)
	case "-->>":
		s.line("back", from, y, to, y)
		s.head(to, y, direction)
	case "--x":
		s.line("back", from, y, to-12*direction, y)
		s.cross(to-12*direction, y)
	}
}
