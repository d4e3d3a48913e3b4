package board

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"zklock/internal/check/actor"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// A line of the log. What several clients do at a time has one line: form is its
// sentence, in which {who} stands for them.
type line struct {
	At   int    `json:"at"`
	Text string `json:"text"`
	form string
	who  []int
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
	text := b.sentence(c, f)
	if text == "" {
		return
	}
	if c.last != text {
		c.last, c.times = text, 0
	}
	switch c.times++; c.times {
	case 1:
		b.sayOf(now, c, text+".")
	case 2:
		b.sayOf(now, c, text+", again and again.")
	}
}

// plural makes a sentence one of several clients.
var plural = strings.NewReplacer(
	"{who} makes",
	"{who} make",
	"{who} lists",
	"{who} list",
	"{who} watches",
	"{who} watch",
	"{who} has",
	"{who} have",
	"{who} tries",
	"{who} try",
	"{who} looks",
	"{who} look",
	"{who} deletes",
	"{who} delete",
	"its own",
	"their own",
)

// sayOf says something of a client, in which {who} stands for it. Of several at a time
// it is said once.
func (b *Board) sayOf(now int, c *Client, form string) {
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
	who := fmt.Sprintf("client %d", l.who[0])
	switch n := len(l.who); {
	case n > 8:
		who = fmt.Sprintf("%d clients", n)
	case n > 1:
		others := strings.ReplaceAll(strings.Trim(fmt.Sprint(l.who[:n-1]), "[]"), " ", ", ")
		who = fmt.Sprintf("clients %s and %d", others, l.who[n-1])
	}
	if len(l.who) > 1 {
		form = plural.Replace(form)
	}
	l.Text = capital(strings.ReplaceAll(form, "{who}", who))
}

func (b *Board) sentence(c *Client, f wiretap.Frame) string {
	name, ok := path.Base(f.Path), f.Err == wiretap.OK
	switch {
	case f.Kind == wiretap.Notification && f.Event == wiretap.NodeDeleted:
		return "the server tells {who} that " + name + " is gone"
	case f.Kind == wiretap.Notification && f.Event == wiretap.ChildrenChanged:
		return "the server tells {who} that the queue has changed"
	case f.Kind == wiretap.Notification:
		return "the server tells {who} of a change of " + name
	case f.Kind == wiretap.Reply && f.Op == wiretap.Connect && c.Joined:
		return "{who} has connected again"
	case f.Kind != wiretap.Reply || actor.IsFree(f) || !b.ours(f.Path) && f.Path != b.Dir:
		return ""
	case f.Op == wiretap.Create && ok:
		return "{who} makes " + name
	case f.Op == wiretap.Create && f.Err == wiretap.NodeExists:
		return "{who} tries to make " + name + ": it is there already"
	case f.Op == wiretap.Delete && ok:
		return "{who} deletes " + name
	case f.Op == wiretap.Delete && f.Err == wiretap.NoNode:
		return "{who} tries to delete " + name + ": it is not there"
	case f.Op == wiretap.GetChildren && ok:
		own := b.newest(c.Number)
		return listed(f.Names, own != nil && own == b.Queue()[0], f.Watch)
	case ok && f.Watch:
		return "{who} watches " + name
	case f.Op != wiretap.Create && f.Err == wiretap.NoNode:
		return "{who} looks at " + name + ": it is not there"
	case !ok:
		return fmt.Sprintf("the server refuses {who}'s %v of %s: error %d", f.Op, name, f.Err)
	}
	return ""
}

// listed says what a list has shown. Each form is whole, for in another language it is another.
func listed(names int, isFirst, watch bool) string {
	one, many := "{who} lists: one znode", "{who} lists: %d znodes"
	switch {
	case isFirst && watch:
		one, many = "{who} lists: one znode, its own is the first, with a watch", "{who} lists: %d znodes, its own is the first, with a watch"
	case isFirst:
		one, many = "{who} lists: one znode, its own is the first", "{who} lists: %d znodes, its own is the first"
	case watch:
		one, many = "{who} lists: one znode, with a watch", "{who} lists: %d znodes, with a watch"
	}
	if names == 1 {
		return one
	}
	return fmt.Sprintf(many, names)
}

// Hears notes what a client believes of itself, and says what is new of it.
func (b *Board) Hears(now int, c *Client, w actor.Word) {
	was, is := c.Mood, w.Mood
	believed := c.Believes()
	c.Mood, c.Token, c.Said = is, w.Token, strings.ReplaceAll(w.Said, b.Path, "/lock")
	switch {
	case c.Said != "" && is == actor.Told:
		b.Say(now, "%d is told: %s.", c.Number, c.Said)
	case c.Said != "":
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
