package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"zklock/internal/actor"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// loses says what is lost.
func (b *board) loses(now int, c *client, f wiretap.Frame) {
	switch {
	case f.Kind == wiretap.Reply && f.Op == wiretap.Create && f.Err == wiretap.OK:
		c.lostCreate = true
		c.disarm("losecreate")
		b.say(now, "The reply to %d's create is lost: the server has made %s, and %[1]d does not know it.", c.number, path.Base(f.Path))
	case f.Kind == wiretap.Reply && f.Op == wiretap.Create:
		c.disarm("losecreate")
		b.say(now, "The reply to %d's create is lost: it was a refusal.", c.number)
	case f.Kind == wiretap.Reply && f.Op == wiretap.Delete:
		c.disarm("losedelete")
		b.say(now, "The reply to %d's delete of %s is lost.", c.number, path.Base(f.Path))
	}
	b.rows = true
}

// tell says what has arrived, if it is worth it. What a client does again and again
// is said twice.
func (b *board) tell(now int, c *client, f wiretap.Frame) {
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

// sayOf says something of a client, in which {who} stands for it. Of several at a time
// it is said once.
func (b *board) sayOf(now int, c *client, text string) {
	i := slices.IndexFunc(b.lines[:b.said], func(l line) bool { return l.form == text && !slices.Contains(l.who, c.number) })
	if i < 0 {
		b.say(now, "of somebody")
		i = 0
	}
	l := &b.lines[i]
	l.form, l.who = text, append(l.who, c.number)
	slices.Sort(l.who)
	who := fmt.Sprint(l.who[0])
	switch n := len(l.who); {
	case n > 8:
		who = fmt.Sprintf("%d clients", n)
	case n > 1:
		who = strings.ReplaceAll(strings.Trim(fmt.Sprint(l.who[:n-1]), "[]"), " ", ", ") + fmt.Sprintf(" and %d", l.who[n-1])
	}
	if len(l.who) > 1 {
		text = strings.NewReplacer("{who} makes", "{who} make", "{who} lists", "{who} list", "{who} watches", "{who} watch", "{who} has", "{who} have", "{who} tries", "{who} try", "{who} looks", "{who} look", "{who} deletes", "{who} delete", "its own", "their own").Replace(text)
	}
	text = strings.ReplaceAll(text, "{who}", who)
	l.Text = strings.ToUpper(text[:1]) + text[1:]
}

func (b *board) sentence(c *client, f wiretap.Frame) string {
	name, ok := path.Base(f.Path), f.Err == wiretap.OK
	switch {
	case f.Kind == wiretap.Notification && f.Event == wiretap.NodeDeleted:
		return "the server tells {who} that " + name + " is gone"
	case f.Kind == wiretap.Notification && f.Event == wiretap.ChildrenChanged:
		return "the server tells {who} that the queue has changed"
	case f.Kind == wiretap.Notification:
		return "the server tells {who} of a change of " + name
	case f.Kind == wiretap.Reply && f.Op == wiretap.Connect && c.joined:
		return "{who} has connected again"
	case f.Kind != wiretap.Reply || actor.Aside(f) || !b.ours(f.Path) && f.Path != b.dir:
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
		text := fmt.Sprintf("{who} lists: %d znodes", f.Names)
		if f.Names == 1 {
			text = "{who} lists: one znode"
		}
		if all := b.queue(); len(all) > 0 && all[0] == b.newest(c.number) {
			text += ", its own is the first"
		}
		if f.Watch {
			text += ", with a watch"
		}
		return text
	case ok && f.Watch:
		return "{who} watches " + name
	case f.Op != wiretap.Create && f.Err == wiretap.NoNode:
		return "{who} looks at " + name + ": it is not there"
	case !ok:
		return fmt.Sprintf("the server refuses {who}'s %v of %s: error %d", f.Op, name, f.Err)
	}
	return ""
}

// tells says what a client believes of itself.
func (b *board) tells(now int, c *client, was string, w actor.Word) {
	switch {
	case w.Said != "" && w.Mood == actor.Told:
		b.say(now, "%d is told: %s.", c.number, w.Said)
	case w.Said != "":
		b.say(now, "%d gets an error: %s.", c.number, w.Said)
	case believes(w.Mood) && believes(was):
		b.say(now, "%d %s once more.", c.number, w.Mood)
	case believes(w.Mood) && w.Token != 0:
		b.say(now, "%d %s, with the token %d.", c.number, w.Mood, w.Token)
	case believes(w.Mood):
		b.say(now, "%d now %s.", c.number, w.Mood)
	case w.Mood == zktest.MoodIdle && was == zktest.MoodWaits:
		b.say(now, "%d has given up.", c.number)
	}
}
