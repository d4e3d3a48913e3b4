package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
)

// screen is the number of columns that everything printed fits into.
const screen = 100

// A Score is all that one run of the tour has measured.
type Score struct {
	Origin  string // of the ZooKeeper
	Began   time.Time
	Took    time.Duration
	Crowds  []int // how many wait, the smallest first
	Columns []column
	Numbers []Numbers // one a column
}

// A group of rows of the scoreboard, under a common title.
type group struct {
	title string
	rows  []row
}

// A cell of a row is a string or an int, where it is the same in every run,
// and else a chapter.Rough.
type row struct {
	label string
	cells []any
}

const none = "–"

// print writes the scoreboard.
func (s Score) print(w io.Writer) {
	fmt.Fprintf(w, "zklock, the tour: one lock, step by step, and the Go client's own beside it\n\n")
	fmt.Fprintf(w, "  on    %s\n", s.Origin)
	fmt.Fprintf(w, "  date  %s, measured within %.0f s\n\n", s.Began.Format("2 January 2006, 15:04 MST"), s.Took.Seconds())

	label, width := labelWidth, s.width()
	line := func(first string, cells []any) {
		fmt.Fprintf(w, "%-*s", label, first)
		for _, c := range cells {
			fmt.Fprintf(w, "%*v", width, c)
		}
		fmt.Fprintln(w)
	}
	var names, titles []any
	for _, c := range s.Columns {
		names, titles = append(names, c.subject.Name), append(titles, c.title)
	}
	line("", names)
	line("", titles)
	fmt.Fprintln(w, strings.Repeat("─", label+width*len(names)))
	for _, g := range s.groups() {
		fmt.Fprintln(w, g.title)
		for _, r := range g.rows {
			line("  "+r.label, r.cells)
		}
	}
	fmt.Fprintln(w, strings.Repeat("─", label+width*len(names)))
	fmt.Fprintf(w, "%s  does not arise: these waiters are never told, they ask\n", none)
	fmt.Fprintf(w, "A write is one round of consensus of the servers, also when it fails. All is counted on the wire.\n")
	fmt.Fprintf(w, "make matrix shows every property of every lock; each step's README.md tells its story.\n\n")
	for _, c := range s.Columns {
		fmt.Fprintf(w, "%-8s %s\n", c.subject.Name, c.lesson)
	}
}

const labelWidth = 38

func (s Score) width() int { return min(12, (screen-labelWidth)/len(s.Columns)) }

// groups are the rows of the scoreboard.
func (s Score) groups() []group {
	groups := []group{{"one client, alone", []row{
		s.row("requests to lock and unlock", func(n Numbers) any { return n.Alone.All() }),
	}}}
	for i, waiters := range s.Crowds {
		crowd := number(waiters)
		if s.anyPolls(waiters) {
			waiting := group{crowd + " clients wait for one second", []row{
				s.crowdRow("requests", waiters, func(c *Crowd) any { return often(c.Waiting.All()) }),
				s.crowdRow("of these, writes", waiters, func(c *Crowd) any { return often(writes(c.Waiting)) }),
				s.crowdRow("kilobytes sent to them", waiters, func(c *Crowd) any { return kilobytes(c.Waiting.Received, 10) }),
			}}
			groups = append(groups, waiting)
		}
		if i == 0 {
			groups = append(groups, group{"one more comes, " + crowd + " wait", []row{
				s.crowdRow("notifications", waiters, told(func(c *Crowd) any { return c.Arrival.Notifications })),
			}})
		}
		released := group{"the holder releases, " + crowd + " wait", []row{
			s.crowdRow("notifications", waiters, told(func(c *Crowd) any { return c.median(notifications) })),
			s.crowdRow("requests until all is quiet", waiters, told(func(c *Crowd) any { return c.median(requests) })),
			s.crowdRow("kilobytes sent to them", waiters, told(func(c *Crowd) any { return kilobytes(c.median(received), 1.1) })),
			s.crowdRow("milliseconds until the next is in", waiters, func(c *Crowd) any {
				return chapter.About(float64(c.median(delay))/1e6, 500) // a time is the machine's
			}),
		}}
		groups = append(groups, released)
	}
	promises := group{title: "does it keep its promises?"}
	for i, r := range s.Numbers[0].Answers {
		promises.rows = append(promises.rows, s.row(r.Property.Name, func(n Numbers) any { return string(n.Answers[i].Verdict) }))
	}
	return append(groups, promises)
}

func (s Score) row(label string, cell func(Numbers) any) row {
	r := row{label: label}
	for _, n := range s.Numbers {
		r.cells = append(r.cells, cell(n))
	}
	return r
}

// crowdRow is a row about the crowds of a size. Not every lock has one.
func (s Score) crowdRow(label string, waiters int, cell func(*Crowd) any) row {
	return s.row(label, func(n Numbers) any {
		if c := n.crowd(waiters); c != nil {
			return cell(c)
		}
		return none
	})
}

// told leaves a cell empty if the waiters ask instead of being told.
func told(cell func(*Crowd) any) func(*Crowd) any {
	return func(c *Crowd) any {
		if c.Polls {
			return none
		}
		return cell(c)
	}
}

func (s Score) anyPolls(waiters int) bool {
	return slices.ContainsFunc(s.Numbers, func(n Numbers) bool {
		c := n.crowd(waiters)
		return c != nil && c.Polls
	})
}

func (n Numbers) crowd(waiters int) *Crowd {
	for i := range n.Crowds {
		if n.Crowds[i].Waiters == waiters {
			return &n.Crowds[i]
		}
	}
	return nil
}

func notifications(r Release) int { return r.Waiters.Notifications }
func requests(r Release) int      { return r.Requests }
func received(r Release) int      { return r.Waiters.Received }
func delay(r Release) int         { return int(r.Delay) }

// median of what the crowd's releases have in common.
func (c *Crowd) median(of func(Release) int) int {
	var all []int
	for _, r := range c.Releases {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// often is how often something was done that depends on the clock: 0 does not.
func often(n int) any {
	if n == 0 {
		return n
	}
	return chapter.About(n, 10)
}

func kilobytes(bytes int, factor float64) any {
	if bytes == 0 {
		return bytes
	}
	return chapter.About(float64(bytes)/1000, factor)
}

// number writes 1000 as 1,000.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}

// printMatrix writes which properties hold for which subject, and below what
// was seen where one does not.
func printMatrix(w io.Writer, properties []*lockcheck.Property, columns []column, results [][]lockcheck.Result) {
	label := 0
	for _, p := range properties {
		label = max(label, utf8.RuneCountInString(p.Name))
	}
	width := min(10, (screen-label)/len(columns))
	fmt.Fprintf(w, "%*s", label, "")
	for _, c := range columns {
		fmt.Fprintf(w, "%*s", width, strings.TrimPrefix(c.subject.Name, "step "))
	}
	fmt.Fprintln(w)
	for j, p := range properties {
		fmt.Fprintf(w, "%-*s", label, p.Name)
		for i := range columns {
			fmt.Fprintf(w, "%*s", width, results[i][j].Verdict)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%s it holds   %s it does not   %s the question does not arise\n", lockcheck.Yes, lockcheck.No, lockcheck.Void)
	for i, c := range columns {
		fmt.Fprintf(w, "\n%s, %s: what was seen\n", c.subject.Name, c.title)
		for _, r := range results[i] {
			if r.Verdict != lockcheck.Yes {
				wrap(w, fmt.Sprintf("%s %s: ", r.Verdict, r.Property.Name)+r.Evidence)
			}
		}
	}
}

// wrap writes a text as an item of a list, in lines that fit the screen.
func wrap(w io.Writer, text string) {
	line := " "
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > screen {
			fmt.Fprintln(w, line)
			line = "   "
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}
