package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zklock/internal/check/actor"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/upkeep/words"
)

// A Banner says aloud what is wrong.
type Banner struct {
	Text     words.Text `json:"text"`
	Property string     `json:"property"` // which the lock lacks; "": none
}

// settled is for how long something has to be wrong before it is said: what is told of
// in two messages may be seen between them.
const settled = 400_000

// Warn finds what is wrong on the board now.
func (b *Board) Warn(now int) {
	found, suspects := []Banner{}, map[string]int{}
	suspect := func(p string, format string, args ...any) {
		text := words.Of(format, args...)
		since, ok := b.suspects[text.EN]
		if !ok {
			since = now
		}
		suspects[text.EN] = since
		if now-since >= settled {
			found = append(found, Banner{text, p})
		}
	}
	b.twoInside(suspect)
	b.blocked(now, suspect)
	b.unaware(suspect)
	b.suspects = suspects
	for _, f := range found {
		if !slices.Contains(b.Banners, f) {
			if f.Property == "" {
				b.Say(now, "%s.", f.Text)
			} else {
				b.Say(now, "Wrong: %s.", f.Text)
			}
		}
	}
	b.Banners = found
}

type suspicion func(property, format string, args ...any)

// unheard tells whether a client will be told of its loss when it goes on: its lock gives
// tokens, and so tells, and the client is stopped.
func (c *Client) unheard() bool { return c.Process == Stopped && c.Token != 0 }

// twoInside: more than one believes that it holds the lock, and they do not all read.
func (b *Board) twoInside(suspect suspicion) {
	var inside []string
	writers := 0
	for _, c := range b.Clients {
		isInside := c.Process != Dead && c.Believes()
		if isInside && !c.unheard() {
			inside = append(inside, fmt.Sprint(c.Number))
			if c.Mood == zktest.MoodHolds {
				writers++
			}
		}
	}
	if len(inside) > 1 && writers > 0 {
		suspect(
			property.OneHolder.Name.EN,
			"%d inside at a time: each of %s believes that it holds the lock",
			len(inside),
			strings.Join(inside, ", "),
		)
	}
}

// overdue is when the session of a client that is dead has long ended, in microseconds.
const overdue = int(2 * Timeout / time.Microsecond)

// blocked: somebody waits, and the first znode belongs to no one who waits or holds.
func (b *Board) blocked(now int, suspect suspicion) {
	queue := b.Queue()
	waits := slices.ContainsFunc(
		b.Clients,
		func(c *Client) bool { return c.Process == Running && c.Mood == zktest.MoodWaits },
	)
	if len(queue) == 0 || !waits {
		return
	}
	first := queue[0]
	if first.Owner < 0 {
		suspect(property.CrashFrees.Name.EN, "%s blocks everybody: it belongs to nobody here", first.Name)
		return
	}
	c := b.Clients[first.Owner]
	itsLast := b.newest(c.Number) == first
	knows := itsLast || !c.lostCreate
	waitsItsTurn := itsLast && c.Mood == zktest.MoodWaits
	isAboutToLeave := c.Mood == actor.Releases || c.Mood == actor.Told
	hasAUseForIt := c.Believes() || waitsItsTurn || isAboutToLeave
	switch {
	case c.Process == Dead && b.Znode:
		suspect(
			property.CrashFrees.Name.EN,
			"%s blocks everybody: %d, which made it, is dead, and nobody will delete it",
			first.Name,
			c.Number,
		)
	case c.Process == Dead && now-c.Since < overdue: // nothing is wrong: that is what a session costs
		suspect(
			"",
			"%s blocks everybody: %d, whose it is, is dead, and the server does not know it yet",
			first.Name,
			c.Number,
		)
	case c.Process == Dead:
		suspect(
			property.CrashFrees.Name.EN,
			"%s blocks everybody: %d, whose it is, has been dead for long",
			first.Name,
			c.Number,
		)
	case knows && hasAUseForIt:
	case c.lostCreate:
		suspect(
			property.LostCreateReply.Name.EN,
			"%s blocks everybody: it is %d's, which does not know it",
			first.Name,
			c.Number,
		)
	default:
		suspect(
			property.GivingUp.Name.EN,
			"%s blocks everybody: it is %d's, which neither waits nor holds",
			first.Name,
			c.Number,
		)
	}
}

// unaware: a client believes that it holds the lock, and has no znode.
func (b *Board) unaware(suspect suspicion) {
	for _, c := range b.Clients {
		isInside := c.Process != Dead && c.Believes()
		switch {
		case !isInside || b.newest(c.Number) != nil:
		case c.unheard():
			suspect("", "%d has lost the lock and is stopped: it is told of that when it goes on", c.Number)
		default:
			suspect(
				property.ToldOfLoss.Name.EN,
				"%d believes that it holds the lock, and has lost it: its znode is gone",
				c.Number,
			)
		}
	}
}
