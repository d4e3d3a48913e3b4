// Package page records the locks at work on a real ZooKeeper, once. What was
// recorded makes the scoreboard, the matrix, the page and the chapters' pictures.
package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"io"
	"strconv"
	"strings"

	"zklock/internal/property"
	"zklock/internal/upkeep/words"
)

//go:embed page.html.tmpl
var markup string

//go:embed colours.css
var Colours string // of what is drawn, light and dark; internal/teach/book has them, too

//go:embed drawing.css
var drawingCSS string

//go:embed page.css
var css string

//go:embed common.js
var Common string // what all pages do alike: make play and the book begin with it, too

//go:embed stage.js
var Stage string // draws a story; internal/teach/play draws a live one with it

//go:embed clock.js
var Clock string // lays out what was recorded, for a replay; internal/teach/book plays by it, too

//go:embed page.js
var script string

// Legend says what the signs of a drawing mean.
//
//go:embed legend.html.tmpl
var Legend template.HTML

// Style is how this page and the one of internal/teach/play look.
var Style = Colours + drawingCSS + css

// Functions are what a template says its texts with: where a text may stand, and as an
// element's aria-label.
var Functions = template.FuncMap{
	"say":   func(what any, args ...any) template.HTML { return inBoth(text(what, args)) },
	"label": func(what any, args ...any) template.HTMLAttr { return labelled(text(what, args)) },
}

var page = template.Must(template.New("page").Funcs(Functions).Funcs(template.FuncMap{
	"number": number,
	"cell":   cell,
	"proof": func(r property.Result) (p struct {
		Drawing template.HTML
		Words   []words.Text
	}) {
		if r.Verdict == property.No {
			drawn, told := sequence(words.Of("%s: %s", r.Subject, r.Property.Name), r.Lines)
			p.Drawing, p.Words = drawn.Page, told
		}
		return p
	},
}).Parse(markup))

// text is a text that a template says: a format and its arguments, or what is a text by
// itself.
func text(what any, args []any) words.Text {
	if len(args) == 0 {
		return words.Any(what)
	}
	return words.Of(what.(string), args...)
}

// inBoth is a text in a page that can change its language.
func inBoth(t words.Text) template.HTML {
	en, zh := html.EscapeString(t.EN), html.EscapeString(t.ZH)
	if en == zh {
		return template.HTML(en)
	}
	return template.HTML(fmt.Sprintf(`<span data-zh="%s">%s</span>`, zh, en))
}

// labelled is a text as an aria-label in such a page.
func labelled(t words.Text) template.HTMLAttr {
	en, zh := html.EscapeString(t.EN), html.EscapeString(t.ZH)
	return template.HTMLAttr(fmt.Sprintf(`aria-label="%s" data-zh-label="%s"`, en, zh))
}

// Write writes the page. It needs nothing beside itself.
func (rec *Recording) Write(w io.Writer) error {
	view := map[string]any{
		"CSS":     template.CSS(Style),
		"Script":  template.JS(words.Script + Common + Stage + Clock + script),
		"Legend":  Legend,
		"Rec":     rec,
		"Words":   words.Pairs(),
		"Date":    words.Of("2 January 2006, 15:04 MST").Changed(rec.Began.Format),
		"Sides":   []string{"left", "right"},
		"Data":    map[string]any{"steps": rec.Locks, "titles": rec.Titles, "stories": rec.Stories},
		"Heading": words.Of("zklock: the tour"),
		"Columns": len(rec.Locks) + 1,
		"Clients": rec.Largest + 1,
	}
	if len(rec.Titles) == 1 {
		view["Heading"] = rec.Titles[0].Title
	}
	if len(rec.Queues) > 0 {
		steps, groups := rec.measured("123456"), rec.Score()
		view["Score"] = groups[:len(groups)-1] // the last one is part of the matrix, which stands below
		view["Measured"], view["Sizes"] = steps, scored(min(rec.Largest, 100))
		view["Charts"], view["Releases"] = rec.Charts(drawn, rec.Largest), rec.releases(drawn)
		view["HandOvers"], view["Spread"] = handOvers, spread(words.Of("Hand-over in milliseconds"), steps).Page
	}
	return page.Execute(w, view)
}

// cell is a cell of a table, as the page has it: with commas, and without what is noise.
func cell(label string, value any) string {
	text := withCommas(value)
	n, err := strconv.ParseFloat(text, 64)
	isBelowOne := err == nil && n < 1
	if isBelowOne && strings.HasSuffix(label, "quiet") {
		return "≤ 1"
	}
	return text
}

// withCommas is a cell with commas, if it is a large number.
func withCommas(value any) string {
	text := fmt.Sprint(value)
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return number(n)
	}
	return text
}

// releases is the table of what a release costs in crowds of several sizes.
func (rec *Recording) releases(keys string) (rows [][]any) {
	for _, q := range rec.measured(keys) {
		for _, c := range q.Crowds {
			rows = append(
				rows,
				[]any{q.Step.Subject.Name, c.Waiters, c.median(notifications), c.median(requests), c.median(received)},
			)
		}
	}
	return rows
}

// Charts draws how the cost of a release grows with the crowd.
func (rec *Recording) Charts(keys string, largest int) (drawings []picture) {
	costs := []func(Release) int{notifications, requests, received}
	for i, title := range []string{
		"Notifications for one release",
		"Requests for one release",
		"Bytes to clients for one release",
	} {
		var curves []Curve
		for _, q := range rec.measured(keys) {
			curve := Curve{Step: q.Step.Key}
			for _, crowd := range q.Crowds {
				if crowd.Waiters <= largest {
					curve.X = append(curve.X, float64(crowd.Waiters))
					curve.Y = append(curve.Y, float64(crowd.median(costs[i])))
				}
			}
			curves = append(curves, curve)
		}
		if len(curves) > 0 {
			drawings = append(drawings, logLog(words.Whole(title), "clients that wait", curves))
		}
	}
	return drawings
}

// In the page's data, what there are thousands of is a row of numbers.

// MarshalJSON tells the watch as numbers.
func (w Watch) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int{w.Client, w.Node, w.From, w.To})
}

// MarshalJSON tells the flight as numbers.
func (f Flight) MarshalJSON() ([]byte, error) {
	return json.Marshal(
		[]int{f.Client, int(f.Kind), f.Op, f.Node, f.From, f.To, f.Bytes, f.Names, f.Err, f.Flags, f.At},
	)
}
