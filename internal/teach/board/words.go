package board

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"zklock/internal/check/actor"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// A line of the log. What several clients do at a time has one line.
type line struct {
	At   int        `json:"at"`
	Text words.Text `json:"text"`
	form string     // what is the same of all clients, in English
	who  []int
}

// A sentence says something of a client, or of several. Its formats take who that is, and
// then the arguments.
type sentence struct {
	one, several string
	args         []any
}

// of is the sentence about somebody.
func (s sentence) of(who words.Text, several bool) words.Text {
	format := s.one
	if several {
		format = s.several
	}
	return words.Of(format, append([]any{who}, s.args...)...)
}

// atATime is for how long others are put into the line of the first.
const atATime = 20_000

// loses says what is lost.
func (b *Board) loses(now int, c *Client, f wiretap.Frame) {
	switch {
	case f.Kind == wiretap.Reply && f.Op == wiretap.Create && f.Err == wiretap.OK:
		c.lostCreate = true
		c.Disarm("losecreate")
		b.Say(
			now,
			"The reply to %d's create is lost: the server has made %s, and %[1]d does not know it.",
			c.Number,
			path.Base(f.Path),
		)
	case f.Kind == wiretap.Reply && f.Op == wiretap.Create:
		c.Disarm("losecreate")
		b.Say(now, "The reply to %d's create is lost: it was a refusal.", c.Number)
	case f.Kind == wiretap.Reply && f.Op == wiretap.Delete:
		c.Disarm("losedelete")
		b.Say(now, "The reply to %d's delete of %s is lost.", c.Number, path.Base(f.Path))
	}
}

// tell says what has arrived, if it is worth it. What a client does again and again
// is said twice.
func (b *Board) tell(now int, c *Client, f wiretap.Frame) {
	said, worthIt := b.sentence(c, f)
	if !worthIt {
		return
	}
	if form := said.of(words.Text{}, false).EN; c.last != form {
		c.last, c.times = form, 0
	}
	switch c.times++; c.times {
	case 1:
		b.sayOf(now, c, said, "%s.")
	case 2:
		b.sayOf(now, c, said, "%s, again and again.")
	}
}

// sayOf says something of a client, and how often. Of several at a time it is said once.
func (b *Board) sayOf(now int, c *Client, said sentence, often string) {
	form := words.Of(often, said.of(words.Text{}, false)).EN
	i := -1
	for at, l := range b.log.kept {
		if l.form == form && now-l.At < atATime && !slices.Contains(l.who, c.Number) {
			i = at
		}
	}
	if i < 0 {
		i = b.note(line{At: now, form: form})
	}
	l := b.log.change(i)
	l.who = append(l.who, c.Number)
	slices.Sort(l.who)
	who := words.Of("client %d", l.who[0])
	switch n := len(l.who); {
	case n > 8:
		who = words.Of("%d clients", n)
	case n > 1:
		others := strings.ReplaceAll(strings.Trim(fmt.Sprint(l.who[:n-1]), "[]"), " ", ", ")
		who = words.Of("clients %s and %d", others, l.who[n-1])
	}
	l.Text = words.Of(often, said.of(who, len(l.who) > 1)).Capital()
}

func (b *Board) sentence(c *Client, f wiretap.Frame) (said sentence, worthIt bool) {
	say := func(one, several string, args ...any) (sentence, bool) { return sentence{one, several, args}, true }
	name, ok := path.Base(f.Path), f.Err == wiretap.OK
	switch {
	case f.Kind == wiretap.Notification && f.Event == wiretap.NodeDeleted:
		const gone = "the server tells %v that %v is gone"
		return say(gone, gone, name)
	case f.Kind == wiretap.Notification && f.Event == wiretap.ChildrenChanged:
		const changed = "the server tells %v that the queue has changed"
		return say(changed, changed)
	case f.Kind == wiretap.Notification:
		const changed = "the server tells %v of a change of %v"
		return say(changed, changed, name)
	case f.Kind == wiretap.Reply && f.Op == wiretap.Connect && c.Joined:
		return say("%v has connected again", "%v have connected again")
	case f.Kind != wiretap.Reply || actor.IsFree(f) || !b.ours(f.Path) && f.Path != b.Dir:
		return said, false
	case f.Op == wiretap.Create && ok:
		return say("%v makes %v", "%v make %v", name)
	case f.Op == wiretap.Create && f.Err == wiretap.NodeExists:
		return say("%v tries to make %v: it is there already", "%v try to make %v: it is there already", name)
	case f.Op == wiretap.Delete && ok:
		return say("%v deletes %v", "%v delete %v", name)
	case f.Op == wiretap.Delete && f.Err == wiretap.NoNode:
		return say("%v tries to delete %v: it is not there", "%v try to delete %v: it is not there", name)
	case f.Op == wiretap.GetChildren && ok:
		own := b.newest(c.Number)
		return listed(f.Names, own != nil && own == b.Queue()[0], f.Watch), true
	case ok && f.Watch:
		return say("%v watches %v", "%v watch %v", name)
	case f.Op != wiretap.Create && f.Err == wiretap.NoNode:
		return say("%v looks at %v: it is not there", "%v look at %v: it is not there", name)
	case !ok:
		const refused = "the server refuses %v's %v of %s: error %d"
		return say(refused, refused, f.Op, name, f.Err)
	}
	return said, false
}

// listed says what a list has shown. Each form is whole, for in another language it is another.
func listed(names int, isFirst, watch bool) sentence {
	found := words.Of("%d znodes", names)
	if names == 1 {
		found = words.Of("one znode")
	}
	one, several := "%v lists: %v", "%v list: %v"
	switch {
	case isFirst && watch:
		one = "%v lists: %v, its own is the first, with a watch"
		several = "%v list: %v, their own is the first, with a watch"
	case isFirst:
		one, several = "%v lists: %v, its own is the first", "%v list: %v, their own is the first"
	case watch:
		one, several = "%v lists: %v, with a watch", "%v list: %v, with a watch"
	}
	return sentence{one, several, []any{found}}
}

// Hears notes what a client believes of itself, and says what is new of it.
func (b *Board) Hears(now int, c *Client, w actor.Word) {
	was, is := c.Mood, w.Mood
	believed := c.Believes()
	c.Mood, c.Token = is, w.Token
	c.Said = w.Said.Changed(func(text string) string { return strings.ReplaceAll(text, b.Path, "/lock") })
	switch {
	case c.Said.EN != "" && is == actor.Told:
		b.Say(now, "%d is told: %s.", c.Number, c.Said)
	case c.Said.EN != "":
		b.Say(now, "%d gets an error: %s.", c.Number, c.Said)
	case c.Believes() && believed:
		b.Say(now, "%d %s once more.", c.Number, is)
	case c.Believes() && c.Token != 0:
		b.Say(now, "%d %s, with the token %d.", c.Number, is, c.Token)
	case c.Believes():
		b.Say(now, "%d now %s.", c.Number, is)
	case is == zktest.MoodIdle && was == zktest.MoodWaits:
		b.Say(now, "%d has given up.", c.Number)
	}
	c.Shows(now)
}
