package page

import (
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
)

// A message is a frame between a client and the server, in words.
type message struct {
	client int
	wiretap.Frame
	text string
}

// messages puts the frames of all clients in the order of their passing.
func messages(lines []lockcheck.Line) (all []message) {
	for i, line := range lines {
		connected := false
		for _, f := range line.Frames {
			greeting := f.Op == wiretap.Connect && !connected // every client's first
			connected = connected || f.Kind == wiretap.Reply
			if aside(f) || greeting || f.Op == wiretap.Close {
				continue
			}
			all = append(all, message{i, f, inWords(f)})
		}
	}
	slices.SortStableFunc(all, func(a, b message) int { return a.At.Compare(b.At) })
	return all
}

var (
	guid   = regexp.MustCompile(`_c_[0-9a-f-]{16,36}-`)
	zeroes = regexp.MustCompile(`0{3,9}(\d)`)
)

// short is a path as people would tell it to each other: lock-3.
func short(name string) string {
	return zeroes.ReplaceAllString(guid.ReplaceAllString(path.Base(name), ""), "$1")
}

// inWords says in a few words what a frame is.
func inWords(f wiretap.Frame) string {
	what := strings.TrimSpace(f.Op.String() + " " + short("/"+f.Path))
	if f.Path == "" {
		what = f.Op.String()
	}
	switch {
	case f.Kind == wiretap.Notification:
		event := map[int32]string{wiretap.NodeCreated: "created", wiretap.NodeDeleted: "is deleted",
			wiretap.NodeDataChanged: "has changed", wiretap.ChildrenChanged: "has other children"}[f.Event]
		return short(f.Path) + " " + event
	case f.Kind == wiretap.Request && f.Watch:
		return what + ", watch"
	case f.Kind == wiretap.Request:
		return what
	case f.Err == wiretap.NoNode:
		return "no such znode"
	case f.Err == wiretap.NodeExists:
		return "it exists"
	case f.Err != wiretap.OK:
		return fmt.Sprintf("error %d", f.Err)
	case f.Op == wiretap.GetChildren:
		return plural(f.Names, "name")
	case f.Op == wiretap.Create:
		return "made " + short(f.Path)
	}
	return "done"
}

// Measures of a sequence diagram, in pixels.
const (
	laneGap = 165
	rowGap  = 21
	timeGap = 62
)

// Sequence draws what passed as a sequence diagram: a lane for the server, and
// one a client. Of more than limit messages it draws the last. The same is
// returned in words.
func Sequence(title string, lines []lockcheck.Line, limit int) (svg string, words []string) {
	all := messages(lines)
	left := max(0, len(all)-limit)
	shown := all[left:]
	if left > 0 {
		words = append(words, fmt.Sprintf("%s came before.", plural(left, "message")))
	}
	width := timeGap + 60 + laneGap*len(lines) + 40
	height := 46 + rowGap*len(shown) + 28
	lane := func(i int) int { return timeGap + 50 + laneGap*(i+1) } // -1: the server
	var b strings.Builder
	open(&b, title, width, height)
	for i := -1; i < len(lines); i++ {
		name := "ZooKeeper"
		if i >= 0 {
			name = lines[i].Client
		}
		fmt.Fprintf(&b, `<path class="l" d="M%d 28V%d"/>`, lane(i), height-22)
		for _, y := range []int{20, height - 8} {
			fmt.Fprintf(&b, `<text class="b m" x="%d" y="%d">%s</text>`, lane(i), y, html.EscapeString(name))
		}
	}
	for row, m := range shown {
		y := 50 + row*rowGap
		from, to := lane(m.client), lane(-1)
		who, whom := lines[m.client].Client, "the server"
		if m.Kind != wiretap.Request {
			from, to = to, from
			who, whom = "the server", lines[m.client].Client
		}
		class := [...]string{"q", "r", "n"}[m.Kind]
		sentence := fmt.Sprintf("%s to %s: %s", who, whom, m.text)
		fmt.Fprintf(&b, `<text class="s e" x="%d" y="%d">%.1f</text>`, timeGap, y+4, float64(m.At.Sub(all[0].At).Microseconds())/1000)
		text := m.text
		if m.Kind == wiretap.Notification {
			text = "! " + text
		}
		if m.Lost {
			to = (from + to) / 2
			text += ": lost"
			sentence += ", lost on the way"
		}
		head := 7
		if to > from {
			head = -7
		}
		fmt.Fprintf(&b, `<path class="%s" d="M%d %dH%d"/>`, class, from, y, to)
		fmt.Fprintf(&b, `<text class="h m" x="%d" y="%d">%s</text>`, lane(m.client)-laneGap/2, y-3, html.EscapeString(text))
		if m.Lost {
			fmt.Fprintf(&b, `<path class="x" d="M%d %dl10 10m0-10l-10 10"/>`, to-5, y-5)
		} else {
			fmt.Fprintf(&b, `<path class="%sf" d="M%d %dl%d-4v8z"/>`, class, to, y, head)
		}
		words = append(words, sentence+".")
	}
	b.WriteString("</svg>")
	return b.String(), words
}

// open begins a drawing. Standing alone, it is a file of its own.
func open(b *strings.Builder, title string, width, height int) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		width, height, width, height, html.EscapeString(title))
}
