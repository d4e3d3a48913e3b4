package page

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"zklock/internal/lockcheck"
)

// screen is the number of columns that everything printed fits into.
const screen = 100

// PrintScore writes the scoreboard.
func (rec *Recording) PrintScore(w io.Writer) {
	fmt.Fprintf(w, "zklock, the tour: one lock, step by step, and the Go client's own beside it\n\n")
	fmt.Fprintf(w, "  on    %s\n", rec.Origin)
	fmt.Fprintf(w, "  date  %s, measured within %.0f s\n\n", rec.Began.Format("2 January 2006, 15:04 MST"), rec.Took.Seconds())

	const label = 38
	width := min(12, (screen-label)/len(rec.Locks))
	line := func(first string, cells []any) {
		fmt.Fprintf(w, "%-*s", label, first)
		for _, c := range cells {
			fmt.Fprintf(w, "%*v", width, c)
		}
		fmt.Fprintln(w)
	}
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
			line("  "+r.Label, r.Cells)
		}
	}
	fmt.Fprintln(w, rule)
	fmt.Fprintf(w, "%s  does not arise: these waiters are never told, they ask\n", none)
	fmt.Fprintf(w, "A write is one round of consensus of the servers, also when it fails. All is counted on the wire.\n")
	fmt.Fprintf(w, "make matrix shows every property of every lock; each step's README.md tells its story.\n\n")
	for _, lock := range rec.Locks {
		fmt.Fprintf(w, "%-8s %s\n", lock.Subject.Name, lock.Lesson)
	}
}

// PrintMatrix writes which lock has which property, and below what was seen where
// it lacks one.
func (rec *Recording) PrintMatrix(w io.Writer) {
	label := 0
	for _, p := range lockcheck.Properties {
		label = max(label, utf8.RuneCountInString(p.Name))
	}
	width := min(10, (screen-label)/len(rec.Locks))
	fmt.Fprintf(w, "%*s", label, "")
	for _, lock := range rec.Locks {
		fmt.Fprintf(w, "%*s", width, strings.TrimPrefix(lock.Subject.Name, "step "))
	}
	fmt.Fprintln(w)
	for j, p := range lockcheck.Properties {
		fmt.Fprintf(w, "%-*s", label, p.Name)
		for i := range rec.Locks {
			fmt.Fprintf(w, "%*s", width, rec.Answers[i][j].Verdict)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%s it holds   %s it does not   %s the question does not arise\n", lockcheck.Yes, lockcheck.No, lockcheck.Void)
	for i, lock := range rec.Locks {
		fmt.Fprintf(w, "\n%s, %s: what was seen\n", lock.Subject.Name, lock.Title)
		for _, r := range rec.Answers[i] {
			if r.Verdict != lockcheck.Yes {
				wrap(w, r.String())
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
