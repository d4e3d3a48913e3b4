// Package page records the locks at work on a real ZooKeeper and writes what
// was recorded into one page: a replay, the scoreboard, the growth.
package page

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/zkserver"
)

//go:embed page.html.tmpl
var markup string

//go:embed colours.css
var drawingColours string

//go:embed drawing.css
var drawingCSS string

//go:embed page.css
var css string

//go:embed page.js
var script string

var page = template.Must(template.New("page").Parse(markup))

// A Recording is all that the page shows.
type Recording struct {
	Origin string // of the ZooKeeper
	Began  time.Time
	Crowd  int // the largest

	Steps     []Step
	Titles    []story
	Stories   []Story
	Releases  []Release
	Waits     []Wait
	HandOvers []HandOvers

	// The caller's, if it has them.
	Score   *Score
	Answers [][]lockcheck.Result // of each lock, in the order of the properties
}

// A Score is the scoreboard: a column a lock.
type Score struct {
	Columns []string
	Groups  []Group
}

// A Group of rows has a title of its own.
type Group struct {
	Title string
	Rows  []Row
}

// A Row of the scoreboard.
type Row struct {
	Label string
	Cells []string
}

// Record records all stories of the steps ("1" to "6") on a server. The largest
// crowd has so many waiting. say is told what is going on.
//
// What is measured is recorded one after the other, so that nothing disturbs
// it. Stories that wait for a session to expire, most of the time, run side by
// side.
func Record(ctx context.Context, server *zkserver.Server, steps []string, crowd int, say func(format string, args ...any)) (Recording, error) {
	rec := Recording{Origin: server.Origin, Began: time.Now(), Crowd: crowd, Steps: Steps}
	var mu sync.Mutex
	var failed error
	tell := func(key string, s story) Story {
		mu.Lock()
		if failed = cmp.Or(failed, ctx.Err()); failed != nil {
			mu.Unlock()
			return Story{}
		}
		say("for the page: %s, step %s", s.Title, key)
		mu.Unlock()
		told, err := record(server, Steps[slices.IndexFunc(Steps, func(s Step) bool { return s.Key == key })], s)
		mu.Lock()
		defer mu.Unlock()
		failed = cmp.Or(failed, err)
		if s.ID != "" {
			rec.Stories = append(rec.Stories, told)
		}
		return told
	}
	var expiring sync.WaitGroup
	for _, s := range stories(crowd) {
		left := func(keys []string) []string {
			return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !slices.Contains(steps, key) })
		}
		if s.Steps, s.Pair = left(s.Steps), left(s.Pair); len(s.Steps) == 0 {
			continue
		}
		rec.Titles = append(rec.Titles, s)
		for _, key := range s.Steps {
			if s.expires {
				expiring.Go(func() { tell(key, s) })
			}
		}
	}
	expiring.Wait()
	for _, s := range rec.Titles {
		for _, key := range s.Steps {
			if !s.expires {
				tell(key, s)
			}
		}
	}
	for _, key := range steps {
		rec.growth(key, crowd, tell)
	}
	return rec, failed
}

// growth measures what one step costs in crowds of several sizes.
func (rec *Recording) growth(key string, crowd int, tell func(string, story) Story) {
	h := HandOvers{Step: key}
	tell(key, story{Title: "hand-overs", tell: handOver(&h)})
	rec.HandOvers = append(rec.HandOvers, h)
	sizes := slices.DeleteFunc([]int{10, 30, 100, 300, 1000}, func(n int) bool { return n >= crowd })
	for _, n := range append(sizes, crowd) {
		if n <= 100 && n != 30 {
			w := Wait{Step: key}
			tell(key, story{Title: number(n) + " wait", tell: waitAmong(n, &w)})
			rec.Waits = append(rec.Waits, w)
		}
		if key == "1" || key == "2" || n > 300 && key > "4" {
			continue // nobody is told of a release; steps 5 and 6 cost what step 4 costs
		}
		i := slices.IndexFunc(rec.Stories, func(s Story) bool {
			return s.Step == key && (s.ID == "release" || s.ID == "crowd") && len(s.Clients) == n+1
		})
		if i >= 0 {
			rec.Releases = append(rec.Releases, rec.Stories[i].release())
			continue
		}
		rec.Releases = append(rec.Releases, tell(key, story{Title: "a release, " + number(n) + " waiting", tell: releaseAmong(n)}).release())
	}
}

// Write writes the page. It needs nothing beside itself.
func (rec Recording) Write(w io.Writer) error {
	view := map[string]any{
		"CSS":    template.CSS(drawingColours + drawingCSS + css),
		"Script": template.JS(script),
		"Origin": rec.Origin,
		"Date":   rec.Began.Format("2 January 2006, 15:04 MST"),
		"Crowd":  number(rec.Crowd + 1),
		"Sides":  []string{"left", "right"},
		"Data":   map[string]any{"steps": rec.Steps, "titles": rec.Titles, "stories": rec.Stories},
	}
	if rec.Score != nil {
		view["Score"], view["ScoreWidth"] = rec.Score, len(rec.Score.Columns)+1
	}
	if len(rec.Answers) > 0 {
		view["Matrix"] = matrix(rec.Answers)
	}
	var charts []template.HTML
	for _, c := range rec.Charts() {
		charts = append(charts, template.HTML(c))
	}
	view["Charts"], view["Releases"] = charts, rec.Releases
	if len(rec.HandOvers) > 0 {
		view["HandOvers"], view["Spread"] = handOvers, template.HTML(Spread("Hand-over in milliseconds", rec.HandOvers))
		view["WaitColumns"], view["WaitRows"] = rec.waits()
	}
	return page.Execute(w, view)
}

// Charts draws how the cost of a release grows.
func (rec Recording) Charts() (drawings []string) {
	if len(rec.Releases) == 0 {
		return nil
	}
	for _, c := range []struct {
		title string
		cost  func(Release) int
	}{
		{"Notifications for one release", func(r Release) int { return r.Notifications }},
		{"Requests for one release", func(r Release) int { return r.Requests }},
		{"Bytes to clients for one release", func(r Release) int { return r.Bytes }},
	} {
		var curves []Curve
		for _, r := range rec.Releases {
			if len(curves) == 0 || curves[len(curves)-1].Step != r.Step {
				curves = append(curves, Curve{Step: r.Step})
			}
			last := &curves[len(curves)-1]
			last.X, last.Y = append(last.X, float64(r.Waiters)), append(last.Y, float64(c.cost(r)))
		}
		drawings = append(drawings, LogLog(c.title, "clients that wait", curves))
	}
	return drawings
}

// waits is the table of what waiting costs.
func (rec Recording) waits() (columns []string, rows [][]string) {
	for _, w := range rec.Waits {
		if column := "step " + w.Step; !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		row := slices.IndexFunc(rows, func(r []string) bool { return r[0] == number(w.Waiters) })
		if row < 0 {
			row = len(rows)
			rows = append(rows, []string{number(w.Waiters)})
		}
		rows[row] = append(rows[row], number(int(math.Round(w.PerSecond))))
	}
	return columns, rows
}

// cell is one answer in the matrix. It has an ID if there is evidence to show.
type cell struct {
	ID, Subject, Property, Why, Hint, Evidence string
	Verdict                                    lockcheck.Verdict
	Drawing                                    template.HTML
	Words                                      []string
}

// matrixRow is a property with the answer of each lock.
type matrixRow struct {
	Name  string
	Cells []cell
}

const evidenceLimit = 60 // messages of a diagram

func matrix(answers [][]lockcheck.Result) (m struct {
	Columns []string
	Rows    []matrixRow
}) {
	for i, answer := range answers {
		m.Columns = append(m.Columns, answer[0].Subject)
		for j, r := range answer {
			if i == 0 {
				m.Rows = append(m.Rows, matrixRow{Name: r.Property.Name})
			}
			c := cell{Subject: r.Subject, Property: r.Property.Name, Verdict: r.Verdict, Evidence: r.Evidence, Why: r.Property.Why, Hint: r.Property.Hint}
			if r.Verdict != lockcheck.Yes {
				c.ID = fmt.Sprintf("evidence-%d-%d", j, i)
			}
			if r.Verdict == lockcheck.No {
				var svg string
				svg, c.Words = Sequence(c.Subject+": "+c.Property, r.Lines, evidenceLimit)
				c.Drawing = template.HTML(svg)
			}
			m.Rows[j].Cells = append(m.Rows[j].Cells, c)
		}
	}
	return m
}

// In the page's data, what there are thousands of is a row of numbers.

// MarshalJSON tells the watch as numbers.
func (w Watch) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int{w.Client, w.Node, w.From, w.To})
}

// MarshalJSON tells the flight as numbers.
func (f Flight) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int{f.Client, int(f.Kind), f.Op, f.Node, f.From, f.To, f.Bytes, f.Names, f.Err, f.Flags, f.At})
}
