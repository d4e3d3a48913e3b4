package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

// A banner says aloud what is wrong.
type banner struct {
	Text     string `json:"text"`
	Property string `json:"property"` // which the lock lacks
	Link     string `json:"link"`
}

// settled is for how long something has to be wrong before it is said: what is told of
// in two messages may be seen between them.
const settled = 400 * time.Millisecond

// warn finds what is wrong on the board now.
func (b *board) warn(now time.Time) {
	var found []banner
	suspects := map[string]time.Time{}
	suspect := func(p *lockcheck.Property, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		since, ok := b.suspects[text]
		if !ok {
			since = now
		}
		suspects[text] = since
		if now.Sub(since) >= settled {
			found = append(found, banner{text, p.Name, b.chapter()})
		}
	}
	b.twoInside(suspect)
	b.blocked(suspect)
	b.unaware(suspect)
	b.suspects = suspects
	if !slices.Equal(found, b.warned) {
		for _, f := range found {
			if !slices.Contains(b.warned, f) {
				b.say(b.us(now), "Wrong: %s.", f.Text)
			}
		}
		b.warned, b.warnings = found, true
	}
}

type suspicion func(p *lockcheck.Property, format string, args ...any)

// twoInside: more than one believes that it holds the lock, and they do not all read.
func (b *board) twoInside(suspect suspicion) {
	var inside []string
	writers := 0
	for _, c := range b.clients {
		if c.process != dead && believes(c.mood) {
			inside = append(inside, fmt.Sprint(c.number))
			if c.mood == zktest.MoodHolds {
				writers++
			}
		}
	}
	if len(inside) > 1 && writers > 0 {
		suspect(lockcheck.OneHolder, "two inside: each of %s believes that it holds the lock", strings.Join(inside, ", "))
	}
}

// blocked: somebody waits, and the first znode belongs to no one who waits or holds.
func (b *board) blocked(suspect suspicion) {
	queue := b.queue()
	waits := slices.ContainsFunc(b.clients, func(c *client) bool { return c.process == running && c.mood == zktest.MoodWaits })
	if len(queue) == 0 || !waits {
		return
	}
	first := queue[0]
	if first.Owner < 0 {
		suspect(lockcheck.CrashFrees, "%s blocks everybody: it belongs to nobody here", first.Name)
		return
	}
	switch c := b.clients[first.Owner]; {
	case c.process == dead && b.znode:
		suspect(lockcheck.CrashFrees, "%s blocks everybody: %d, which made it, is dead, and nobody will delete it", first.Name, c.number)
	case c.process == dead:
		suspect(lockcheck.CrashFrees, "%s blocks everybody: %d, whose it is, is dead, and the server does not know it yet", first.Name, c.number)
	case b.newest(c.number) != first && c.lostCreate:
		suspect(lockcheck.LostCreateReply, "%s blocks everybody: it is %d's, which does not know it", first.Name, c.number)
	case believes(c.mood), c.mood == zktest.MoodWaits && b.newest(c.number) == first, c.mood == actor.Releases, c.mood == actor.Told:
	case c.lostCreate:
		suspect(lockcheck.LostCreateReply, "%s blocks everybody: it is %d's, which does not know it", first.Name, c.number)
	default:
		suspect(lockcheck.GivingUp, "%s blocks everybody: it is %d's, which neither waits nor holds", first.Name, c.number)
	}
}

// unaware: a client believes that it holds the lock, and has no znode.
func (b *board) unaware(suspect suspicion) {
	for _, c := range b.clients {
		if c.process != dead && believes(c.mood) && b.newest(c.number) == nil {
			suspect(lockcheck.ToldOfLoss, "%d believes that it holds the lock, and has lost it: its znode is gone", c.number)
		}
	}
}
