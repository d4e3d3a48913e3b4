// Package mermaid draws the diagrams of the pages as SVG for the book, which loads nothing from
// elsewhere. On the repository's host, Mermaid itself draws them from the same text.
//
// The package knows only what the pages use: two kinds of diagram, a sequence of messages and a
// flow of boxes, and some features of each. Anything else is an error.
package mermaid

import (
	"fmt"
	"html/template"
	"strings"
)

// Draw returns the SVG of a diagram. The SVG sets no colours: the page's style sheet has rules for
// its classes, such as line, back, lost, box and note.
func Draw(source string) (svg string, err error) {
	lines := strings.Split(strings.TrimSpace(source), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	switch kind := lines[0]; kind {
	case "sequenceDiagram":
		return drawSequence(lines[1:])
	case "flowchart LR":
		return drawFlow(lines[1:], false)
	case "flowchart RL":
		return drawFlow(lines[1:], true)
	default:
		return "", fmt.Errorf("mermaid: no picture begins with %q", kind)
	}
}

// The dimensions of a drawing, in pixels.
const (
	margin    = 8
	row       = 34 // from one message to the next
	boxHeight = 30
	padding   = 12 // between a box and its words
	letter    = 7.3
	wide      = 14 // a Chinese character
)

// width returns the approximate width of a text.
func width(text string) (pixels float64) {
	for _, r := range text {
		if r < 0x2000 {
			pixels += letter
		} else {
			pixels += wide
		}
	}
	return pixels
}

// A canvas collects the shapes of a drawing, and a description of it in words.
type canvas struct {
	shapes strings.Builder
	said   []string
}

func (c *canvas) say(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *canvas) text(x, y float64, text string) {
	fmt.Fprintf(&c.shapes, `<text x="%.0f" y="%.0f">%s</text>`, x, y, template.HTMLEscapeString(text))
}

// box draws a box around a text.
func (c *canvas) box(class string, x, y, width float64, text string) {
	fmt.Fprintf(&c.shapes, `<rect class=%q x="%.0f" y="%.0f" width="%.0f" height="%d" rx="4"/>`,
		class, x-width/2, y, width, boxHeight-6)
	c.text(x, y+16, text)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.shapes, `<path class=%q d="M%.0f %.0fL%.0f %.0f"/>`, class, x1, y1, x2, y2)
}

// head draws the head of an arrow that points to the right (1) or to the left (-1).
func (c *canvas) head(x, y, direction float64) {
	fmt.Fprintf(&c.shapes, `<path class="head" d="M%.0f %.0fl%.0f -4v8z"/>`, x, y, -8*direction)
}

// cross marks where a message is lost.
func (c *canvas) cross(x, y float64) {
	fmt.Fprintf(&c.shapes, `<path class="lost" d="M%.0f %.0fl10 10m0 -10l-10 10"/>`, x-5, y-5)
}

func (c *canvas) svg(width, height float64) string {
	label := template.HTMLEscapeString(strings.Join(c.said, ". "))
	size := fmt.Sprintf(`viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f"`, width, height, width, height)
	return fmt.Sprintf(`<svg class="drawing" %s role="img" aria-label="%s">%s</svg>`, size, label, c.shapes.String())
}
