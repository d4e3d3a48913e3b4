package board

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"zklock/internal/check/actor"
	"zklock/internal/check/zktest"
	"zklock/internal/lang"
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

// atATime is for how long others are put into the line of the first.
const atATime = 20_000

// loses says what is lost.
func (b *Board) loses(now int, c *Client, f wiretap.Frame) {
	switch {
	case f.Kind == wiretap.Reply && f.Op == wiretap.Create:
		c.Disarm("losecreate")
		c.lostCreate = c.lostCreate || f.Err == wiretap.OK
	case f.Kind == wiretap.Reply && f.Op == wiretap.Delete:
		c.Disarm("losedelete")
	default:
		return
	}
	b.Say(now, "%v, but the reply is lost: %v does not know it.", words.Text(f.Sentence(lang.Text(c.Name()), path.Base(f.Path))), c.Name())
}

// tell says what has arrived, if it is worth it. What a client does again and again
// is said twice.
func (b *Board) tell(now int, c *Client, f wiretap.Frame) {
	form := b.sentence(words.Text{}, c, f).EN
	if form == "" {
		return
	}
	if c.last != form {
		c.last, c.times = form, 0
	}
	switch c.times++; c.times {
	case 1:
		b.sayOf(now, c, f, "%s.")
	case 2:
		b.sayOf(now, c, f, "%s, again and again.")
	}
}

// sayOf says what has arrived at a client, and how often. Of several at a time it is said once.
func (b *Board) sayOf(now int, c *Client, f wiretap.Frame, often string) {
	form := words.Of(often, b.sentence(words.Text{}, c, f)).EN
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
	l.Text = words.Of(often, b.sentence(who, c, f)).Capital()
}

// sentence says what has arrived at a client, or at several; it is empty if that is not
// worth it.
func (b *Board) sentence(who words.Text, c *Client, f wiretap.Frame) words.Text {
	isReply := f.Kind == wiretap.Reply
	isOfQueue := b.ours(f.Path) || f.Path == b.Dir
	isLook := f.Op == wiretap.GetData || f.Op == wiretap.Exists
	hasFound := isLook && f.Err == wiretap.OK && !f.Watch
	isLeftOut := actor.IsFree(f) || !isOfQueue || hasFound
	hasListed := f.Op == wiretap.GetChildren && f.Err == wiretap.OK
	switch {
	case isReply && f.Op == wiretap.Connect && c.Joined:
		return words.Of("%v connected again", who)
	case isReply && isLeftOut:
		return words.Text{}
	case hasListed && b.isFirst(c):
		who = words.Of("%v, first in the queue,", who)
	}
	return words.Whole(words.Text(f.Sentence(lang.Text(who), path.Base(f.Path))).EN)
}

// isFirst tells whether a client's znode is the first in the queue.
func (b *Board) isFirst(c *Client) bool {
	own := b.newest(c.Number)
	return own != nil && own == b.Queue()[0]
}

// Hears notes what a client believes of itself, and says what is new of it.
func (b *Board) Hears(now int, c *Client, w actor.Word) {
	was, is := c.Mood, w.Mood
	believed := c.Believes()
	c.Mood, c.Token = is, w.Token
	c.Said = words.Whole(strings.ReplaceAll(w.Said, b.Path, "/lock"))
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
