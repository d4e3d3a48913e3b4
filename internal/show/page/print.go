package page

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"zklock/internal/property"
	"zklock/internal/upkeep/words"
)

// screen is the number of columns that everything printed fits into.
const screen = 102

// PrintScore writes the scoreboard.
func (rec *Recording) PrintScore(w io.Writer) {
	words.Fprintf(w, "zklock, the tour: one lock, step by step, and the Go client's own beside it\n\n")
	words.Fprintf(w, "  on    %s\n", rec.Origin)
	words.Fprintf(
		w,
		"  date  %s, measured within %.0f s\n\n",
		words.Of("2 January 2006, 15:04 MST").Changed(rec.Began.Format),
		rec.Took.Seconds(),
	)

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
		words.Fprintln(w, g.Title)
		for _, r := range g.Rows {
			var cells []any
			for _, c := range r.Cells {
				cells = append(cells, withCommas(c))
			}
			line("  "+r.Label, cells)
		}
	}
	fmt.Fprintln(w, rule)
	words.Fprintf(
		w,
		"%s  does not arise: these waiters are never told, they ask. A blank: not measured of this lock.\n",
		none,
	)
	words.Fprintf(
		w,
		"A write is one round of consensus of the servers, also when it fails. All is counted on the wire.\n",
	)
	words.Fprintf(w, "make matrix shows every property of every lock; each step's README.md tells its story.\n\n")
	for _, lock := range rec.Locks {
		words.Fprintf(w, "%-8s %s\n", lock.Subject.Name, lock.Lesson)
	}
}

// columns writes the lines of a table.
func columns(w io.Writer, label, width int) func(first string, cells []any) {
	return func(first string, cells []any) {
		words.Fprintf(w, "%-*s", label, first)
		for _, c := range cells {
			words.Fprintf(w, " %*v", width-1, c)
		}
		fmt.Fprintln(w)
	}
}

// PrintMatrix writes which lock has which property, and below what was seen where
// it lacks one.
func (rec *Recording) PrintMatrix(w io.Writer) {
	label := 0
	for _, p := range property.Properties {
		label = max(label, utf8.RuneCountInString(p.Name.EN))
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
	words.Fprintf(
		w,
		"\n%s it holds   %s it does not   %s the question does not arise\n",
		property.Yes,
		property.No,
		property.Void,
	)
	for i, lock := range rec.Locks {
		words.Fprintf(w, "\n%s, %s: what was seen\n", lock.Subject.Name, lock.Title)
		for _, r := range rec.Answers[i] {
			if r.Verdict != property.Yes {
				wrap(w, r.String())
			}
		}
	}
}

// wrap writes a text as an item of a list, in lines that fit the screen. A line
// breaks at a blank, and before a Chinese character.
func wrap(w io.Writer, text string) {
	line, used := "  ", 2
	for _, piece := range pieces.FindAllString(text, -1) {
		wide := utf8.RuneCountInString(piece) + words.Wide(piece)
		if used+utf8.RuneCountInString(strings.TrimRight(piece, " "))+words.Wide(piece) > screen {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line, used = "    ", 4
		}
		line, used = line+piece, used+wide
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

var pieces = regexp.MustCompile(`\p{Han}[，。：；、）]*|[^\s\p{Han}]+ *`)
