package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"zklock/internal/upkeep/words"
)

// A drawing is an SVG picture in the making, in both languages: what is drawn later lies
// above. A class says how a thing looks; drawing.css has them all.
type drawing struct {
	en, zh strings.Builder
	page   strings.Builder // for a page that can change its language
}

// A picture is a drawing that is done.
type picture struct {
	words.Text
	Page template.HTML
}

// draw begins a picture that can also be a file of its own.
func draw(title words.Text, width, height int) *drawing {
	d := &drawing{}
	fmt.Fprintf(
		d,
		`<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img"`,
		width,
		height,
	)
	en, zh := html.EscapeString(title.EN), html.EscapeString(title.ZH)
	fmt.Fprintf(&d.en, ` aria-label="%s">`, en)
	fmt.Fprintf(&d.zh, ` aria-label="%s">`, zh)
	fmt.Fprintf(&d.page, ` aria-label="%s" data-zh-label="%s">`, en, zh)
	return d
}

// Write draws what is the same in both languages.
func (d *drawing) Write(markup []byte) (int, error) {
	d.en.Write(markup)
	d.zh.Write(markup)
	return d.page.Write(markup)
}

// headed is draw, with the title in the picture.
func headed(title words.Text, width, height int) *drawing {
	d := draw(title, width, height)
	d.text("b", 8, 20, "%s", title)
	return d
}

func (d *drawing) text(class string, x, y float64, format string, args ...any) {
	t := words.Of(format, args...)
	en, zh := html.EscapeString(t.EN), html.EscapeString(t.ZH)
	fmt.Fprintf(d, `<text class="%s" x="%v" y="%v"`, class, px(x), px(y))
	fmt.Fprintf(&d.en, `>%s</text>`, en)
	fmt.Fprintf(&d.zh, `>%s</text>`, zh)
	if en == zh {
		fmt.Fprintf(&d.page, `>%s</text>`, en)
	} else {
		fmt.Fprintf(&d.page, ` data-zh="%s">%s</text>`, zh, en)
	}
}

// path draws a path in SVG's own words; its numbers are pixels.
func (d *drawing) path(class, way string, pixels ...float64) {
	var rounded []any
	for _, x := range pixels {
		rounded = append(rounded, px(x))
	}
	fmt.Fprintf(d, `<path class="%s" d="%s"/>`, class, fmt.Sprintf(way, rounded...))
}

// head draws the head of an arrow that comes from one point to another.
func (d *drawing) head(class string, x, y, tx, ty float64) {
	far := math.Hypot(tx-x, ty-y)
	dx, dy := (tx-x)/far, (ty-y)/far
	d.path(class, "M%v %vL%v %vL%v %vz", tx, ty, tx-9*dx+4*dy, ty-9*dy-4*dx, tx-9*dx-4*dy, ty-9*dy+4*dx)
}

func (d *drawing) circle(class string, x, y, radius float64) {
	fmt.Fprintf(d, `<circle class="%s" cx="%v" cy="%v" r="%v"/>`, class, px(x), px(y), px(radius))
}

// box draws a rectangle around a point, with round corners.
func (d *drawing) box(class string, x, y, width, height float64) {
	fmt.Fprintf(
		d,
		`<rect class="%s" x="%v" y="%v" width="%v" height="%v" rx="4"/>`,
		class,
		px(x-width/2),
		px(y-height/2),
		width,
		height,
	)
}

// end ends the picture.
func (d *drawing) end() picture {
	fmt.Fprint(d, "</svg>")
	return picture{words.Text{EN: d.en.String(), ZH: d.zh.String()}, template.HTML(d.page.String())}
}

// px rounds to what an eye can see.
func px(x float64) float64 { return math.Round(10*x) / 10 }
