package stage

import (
	"slices"
	"time"

	"zklock/internal/actor"
)

// A Banner is a warning about something that is wrong. The page's script has the words for it.
type Banner struct {
	Wrong   Wrong  `json:"wrong"`
	Breaks  Breaks `json:"breaks"` // "": no property is broken
	Clients []int  `json:"clients"`
	Znode   string `json:"znode"`
}

// Wrong names something that can be wrong.
type Wrong string

// What can be wrong: two clients hold the lock at once, a znode blocks all clients, or a client
// believes that it holds the lock and has no znode.
const (
	TwoInside   Wrong = "two inside"
	OfNobody    Wrong = "blocks: of nobody"
	DeadsNode   Wrong = "blocks: of a dead client, and nobody deletes it"
	DeadsYet    Wrong = "blocks: of a dead client, and the server does not know it yet"
	DeadsLong   Wrong = "blocks: of a client that has been dead for long"
	UnknownNode Wrong = "blocks: of a client that does not know it"
	OldNode     Wrong = "blocks: of a client that waits with a newer one"
	LeftNode    Wrong = "blocks: of a client that neither waits nor holds"
	NotToldYet  Wrong = "has lost it: learns it when it resumes"
	NotTold     Wrong = "has lost it: is not notified"
	NoNode      Wrong = "holds it, and has no znode"
)

// Breaks names the property that something wrong breaks.
type Breaks string

// The properties that a recorder can see to be broken.
const (
	OneHolder       Breaks = "one holder"
	CrashFrees      Breaks = "crash frees"
	LostCreateReply Breaks = "lost create reply"
	GivingUp        Breaks = "giving up"
	ToldOfLoss      Breaks = "told of loss"
)

// settled is how long something has to be wrong before the page says so, in microseconds. The page
// waits because two messages may belong to one change, and the recorder may look between them.
const settled = 400_000

// Warn finds what is wrong now, and sets the banners to what has been wrong for at least settled.
func (r *Recorder) Warn(now int) {
	suspects := slices.Concat(r.twoInside(), r.blocked(now), r.unaware())
	since := make([]int, len(suspects))
	banners := []Banner{}
	for i, b := range suspects {
		since[i] = now
		if before := indexOf(r.suspects, b); before >= 0 {
			since[i] = r.since[before]
		}
		if now-since[i] < settled {
			continue
		}
		banners = append(banners, b)
		if indexOf(r.Banners, b) < 0 {
			r.Say(Event{At: now, What: Warns, Banner: &b})
		}
	}
	r.suspects, r.since, r.Banners = suspects, since, banners
}

func indexOf(all []Banner, b Banner) int {
	return slices.IndexFunc(all, func(other Banner) bool {
		isSame := other.Wrong == b.Wrong && other.Znode == b.Znode
		return isSame && slices.Equal(other.Clients, b.Clients)
	})
}

// unheard reports whether the client will learn only when it continues that it has lost the lock:
// it is stopped, and its lock gives tokens. A lock that gives tokens also notifies its client of a
// loss.
func (c *Figure) unheard() bool { return c.Process == Stopped && c.Token != 0 }

// twoInside warns if more than one client believes that it holds the lock, and not all of them are
// readers.
func (r *Recorder) twoInside() []Banner {
	var inside []int
	writers := 0
	for _, c := range r.Clients {
		isInside := c.Process != Dead && c.IsInside()
		if isInside && !c.unheard() {
			inside = append(inside, c.Number)
			if c.State == actor.Holds {
				writers++
			}
		}
	}
	if len(inside) < 2 || writers == 0 {
		return nil
	}
	return []Banner{{Wrong: TwoInside, Breaks: OneHolder, Clients: inside}}
}

// overdue is how long after the death of a client its session must have ended, in microseconds.
const overdue = int(2 * Timeout / time.Microsecond)

// blocked warns if a client waits, and the first znode belongs to no client that waits for the
// lock, holds it, or is about to release it.
func (r *Recorder) blocked(now int) []Banner {
	queue := r.Queue()
	waits := slices.ContainsFunc(r.Clients, func(c *Figure) bool {
		return c.Process == Running && c.State == actor.Waits
	})
	if len(queue) == 0 || !waits {
		return nil
	}
	first := queue[0]
	if first.Owner < 0 {
		return []Banner{{Wrong: OfNobody, Breaks: CrashFrees, Znode: first.Name}}
	}
	c := r.Clients[first.Owner]
	itsLast := r.newest(c.Number) == first
	knows := itsLast || !c.lostCreate
	waitsItsTurn := itsLast && c.State == actor.Waits
	isAboutToLeave := c.State == actor.Releases || c.State == actor.Told
	hasAUseForIt := c.IsInside() || waitsItsTurn || isAboutToLeave
	banner := Banner{Clients: []int{c.Number}, Znode: first.Name}
	switch {
	case c.Process == Dead && r.Znode && c.Over > 0:
		banner.Wrong, banner.Breaks = DeadsNode, CrashFrees
	case c.Process == Dead && now-c.Since < overdue:
		banner.Wrong = DeadsYet // no property is broken: a session takes this long to expire
	case c.Process == Dead:
		banner.Wrong, banner.Breaks = DeadsLong, CrashFrees
	case knows && hasAUseForIt:
		return nil
	case c.lostCreate:
		banner.Wrong, banner.Breaks = UnknownNode, LostCreateReply
	case c.State == actor.Waits:
		banner.Wrong, banner.Breaks = OldNode, GivingUp
	default:
		banner.Wrong, banner.Breaks = LeftNode, GivingUp
	}
	return []Banner{banner}
}

// unaware warns if a client believes that it holds the lock although it has no znode, either
// because the znode is gone or because the client has never had one.
func (r *Recorder) unaware() (all []Banner) {
	for _, c := range r.Clients {
		isInside := c.Process != Dead && c.IsInside()
		switch {
		case !isInside || r.newest(c.Number) != nil:
		case c.unheard():
			all = append(all, Banner{Wrong: NotToldYet, Clients: []int{c.Number}})
		case !c.hadNode:
			all = append(all, Banner{Wrong: NoNode, Breaks: OneHolder, Clients: []int{c.Number}})
		default:
			all = append(all, Banner{Wrong: NotTold, Breaks: ToldOfLoss, Clients: []int{c.Number}})
		}
	}
	return all
}
