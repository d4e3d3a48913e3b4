package tour

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"zklock/internal/property"
)

// screen is the width, in columns, of what is printed.
const screen = 110

// PrintScore writes the scoreboard.
func (rec *Recording) PrintScore(w io.Writer) {
	fmt.Fprintf(w, "zklock, the tour: the lock of each step, compared with other locks\n\n")
	fmt.Fprintf(w, "  on    %s\n", rec.Origin)
	fmt.Fprintf(w, "  date  %s, measured within %.0f s\n\n", rec.date(), rec.Took.Seconds())
	if len(rec.measured("3w")) > 0 {
		fmt.Fprintf(w, "Step 3w is NewWatched of step 3: a watch, and no queue.\n\n")
	}

	const label = 38
	width := min(12, (screen-label)/len(rec.Locks))
	line := columns(w, label, width)
	var names, titles []any
	for _, lock := range rec.Locks {
		names, titles = append(names, lock.Subject.Name), append(titles, lock.Title)
	}
	rule := strings.Repeat("─", label+width*len(names))
	line("", names)
	line("", titles)
	fmt.Fprintln(w, rule)
	for _, g := range rec.Score() {
		fmt.Fprintln(w, g.Title)
		for _, r := range g.Rows {
			var cells []any
			for _, c := range r.Cells {
				cells = append(cells, withCommas(c))
			}
			line("  "+r.Label.EN, cells)
		}
	}
	fmt.Fprintln(w, rule)
	fmt.Fprintf(w, "%s  these waiters poll, and are never notified. More than 100 do not wait there, nor at leased.\n",
		none)
	fmt.Fprintln(w, "A blank: not measured for this lock.")
	fmt.Fprintln(w, "Each write, even one that fails, needs a majority of the servers. All counts are taken on the wire.")
	if rec.Largest > 100 {
		fmt.Fprintln(w, "A bystander does not use the lock. "+
			"Relative to quiet: its wait, divided by its wait while the crowd is quiet.")
	}
	fmt.Fprintf(w, "make tour MATRIX=1 shows every property of every lock; each step's README.md explains it.\n\n")
	for _, lock := range rec.Locks {
		fmt.Fprintf(w, "%-8s %s\n", lock.Subject.Name, lock.Lesson)
	}
}

func (rec *Recording) date() string { return rec.Began.Format("2006-01-02 15:04 MST") }

// columns returns a function that writes one line of a table.
func columns(w io.Writer, label, width int) func(first string, cells []any) {
	return func(first string, cells []any) {
		fmt.Fprintf(w, "%-*s", label, first)
		for _, c := range cells {
			fmt.Fprintf(w, " %*v", width-1, c)
		}
		fmt.Fprintln(w)
	}
}

// PrintMatrix writes which lock has which property. Below, it writes the evidence for each verdict
// that is not property.Yes.
func (rec *Recording) PrintMatrix(w io.Writer) {
	label := 0
	for _, p := range property.Properties {
		label = max(label, len(p.Name.EN))
	}
	line := columns(w, label, min(10, (screen-label)/len(rec.Locks)))
	var names []any
	for _, lock := range rec.Locks {
		names = append(names, strings.TrimPrefix(lock.Subject.Name, "step "))
	}
	line("", names)
	for j, p := range property.Properties {
		line(p.Name.EN, rec.verdicts(j))
	}
	fmt.Fprintf(w, "\n%s it holds   %s it does not   %s the question does not arise\n",
		property.Yes, property.No, property.Void)
	for i, lock := range rec.Locks {
		fmt.Fprintf(w, "\n%s, %s: what was seen\n", lock.Subject.Name, lock.Title)
		for _, r := range rec.Answers[i] {
			if r.Verdict != property.Yes {
				wrap(w, r.String())
			}
		}
	}
}

// wrap writes a text as an item of a list, in lines that fit the screen.
func wrap(w io.Writer, text string) {
	line := " "
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line+" "+word) > screen {
			fmt.Fprintln(w, line)
			line = "   "
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}
