package page

import (
	"path"
	"regexp"
	"slices"

	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// A message is a frame between a client and the server.
type message struct {
	client int
	wiretap.Frame
}

// messages puts the frames of all clients in the order of their passing.
func messages(lines []property.Line) (all []message) {
	for i, line := range lines {
		connected := false
		for _, f := range line.Frames {
			greeting := f.Op == wiretap.Connect && !connected // every client's first
			connected = connected || f.Kind == wiretap.Reply
			if !isDrawn(f) || greeting || f.Op == wiretap.Close {
				continue
			}
			all = append(all, message{i, f})
		}
	}
	slices.SortStableFunc(all, func(a, b message) int { return a.At.Compare(b.At) })
	return all
}

var zeroes = regexp.MustCompile(`0{3,9}(\d)`)

// short is a path as people would tell it to each other: lock-3.
func short(name string) string {
	return zeroes.ReplaceAllString(wiretap.WithoutGuid(path.Base(name)), "$1")
}

// Measures of a sequence diagram, in pixels.
const (
	laneGap = 165
	rowGap  = 21
	timeGap = 62
)

// sequence draws what passed as a sequence diagram: a lane for the server, and
// one a client. Of very many messages it draws the last. The same is returned in words.
func sequence(title words.Text, lines []property.Line) (drawn picture, told []words.Text) {
	const most = 60
	all := messages(lines)
	left := max(0, len(all)-most)
	shown := all[left:]
	if left > 0 {
		told = append(told, words.Of("%s came before.", Plural(left, "%s message", "%s messages")))
	}
	height := 46 + rowGap*float64(len(shown)) + 28
	d := draw(title, timeGap+60+laneGap*len(lines)+40, int(height))
	const server = timeGap + 50
	lane := func(client int) float64 { return server + laneGap*float64(client+1) }
	for i, line := range slices.Concat([]property.Line{{Client: "ZooKeeper"}}, lines) {
		d.path("l", "M%v 28V%v", lane(i-1), height-22)
		d.text("b m", lane(i-1), 20, "%s", line.Client)
		d.text("b m", lane(i-1), height-8, "%s", line.Client)
	}
	for row, m := range shown {
		y, x := 50+rowGap*float64(row), lane(m.client)
		from, to, head, class := x, float64(server), 7.0, [...]string{"q", "r", "n"}[m.Kind]
		text := words.Text(m.Briefly(short(m.Path)))
		said := words.Of("%s to the server: %s", lines[m.client].Client, text)
		if m.Kind != wiretap.Request {
			from, to, head = to, from, -head
			said = words.Of("the server to %s: %s", lines[m.client].Client, text)
		}
		if m.Kind == wiretap.Notification {
			text = words.Of("! %s", text)
		}
		if m.Lost {
			to = (from + to) / 2
			text = words.Of("%v: lost", text)
			said = words.Of("%v, lost on the way", said)
		}
		told = append(told, words.Of("%s.", said))
		d.text("s e", timeGap, y+4, "%.1f", millis(m.At.Sub(all[0].At)))
		d.path(class, "M%v %vH%v", from, y, to)
		d.text("h m", x-laneGap/2, y-3, "%s", text)
		if m.Lost {
			d.path("x", "M%v %vl10 10m0-10l-10 10", to-5, y-5)
		} else {
			d.path(class+"f", "M%v %vl%v-4v8z", to, y, head)
		}
	}
	return d.end(), told
}
