// Package mermaid draws the pictures of the pages as SVG, for the book, which loads nothing
// from elsewhere. On the repository's host the same text is drawn by Mermaid itself.
//
// It knows the two kinds of picture that the pages use, a sequence of messages and a flow of
// boxes, and of each what they use. Anything else is an error.
package mermaid

import (
	"fmt"
	"html/template"
	"strings"
)

// Draw returns the SVG of a picture. It has no colours of its own: the page's style has the
// classes line, back, lost, box and note.
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

// The measures of a drawing, in pixels.
const (
	margin    = 8
	row       = 34 // from one message to the next
	boxHeight = 30
	padding   = 12 // between a box and its words
	letter    = 7.3
	wide      = 14 // a Chinese letter
)

// width is about as wide as a text is drawn.
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

// A canvas collects what is drawn, and says in words what that is.
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

// box draws a box round a text.
func (c *canvas) box(class string, x, y, width float64, text string) {
	fmt.Fprintf(&c.shapes, `<rect class=%q x="%.0f" y="%.0f" width="%.0f" height="%d" rx="4"/>`,
		class, x-width/2, y, width, boxHeight-6)
	c.text(x, y+16, text)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.shapes, `<path class=%q d="M%.0f %.0fL%.0f %.0f"/>`, class, x1, y1, x2, y2)
}

// head draws the head of an arrow that goes to the right (1) or to the left (-1).
func (c *canvas) head(x, y, direction float64) {
	fmt.Fprintf(&c.shapes, `<path class="head" d="M%.0f %.0fl%.0f -4v8z"/>`, x, y, -8*direction)
}

// cross is where a message gets lost.
func (c *canvas) cross(x, y float64) {
	fmt.Fprintf(&c.shapes, `<path class="lost" d="M%.0f %.0fl10 10m0 -10l-10 10"/>`, x-5, y-5)
}

func (c *canvas) svg(width, height float64) string {
	label := template.HTMLEscapeString(strings.Join(c.said, ". "))
	size := fmt.Sprintf(`viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f"`, width, height, width, height)
	return fmt.Sprintf(`<svg class="drawing" %s role="img" aria-label="%s">%s</svg>`, size, label, c.shapes.String())
}
