package stage

import (
	"slices"
	"time"

	"zklock/internal/actor"
)

// A Banner says aloud what is wrong: the page's script has the words.
type Banner struct {
	Wrong   Wrong  `json:"wrong"`
	Breaks  Breaks `json:"breaks"` // "": no property
	Clients []int  `json:"clients"`
	Znode   string `json:"znode"`
}

// Wrong is what can be wrong.
type Wrong string

// What can be wrong: two are inside, a znode blocks everybody, or a client does not know
// that it has lost the lock.
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

// Breaks is the property that something wrong breaks.
type Breaks string

// The properties that are seen to be broken.
const (
	OneHolder       Breaks = "one holder"
	CrashFrees      Breaks = "crash frees"
	LostCreateReply Breaks = "lost create reply"
	GivingUp        Breaks = "giving up"
	ToldOfLoss      Breaks = "told of loss"
)

// settled is how long something has to be wrong before the page says so, in microseconds. Two
// messages may belong to one change, and the recorder may look between them.
const settled = 400_000

// Warn finds what is wrong now.
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

// unheard tells whether a client will be told of its loss when it goes on: its lock gives
// tokens, and so tells, and the client is stopped.
func (c *Figure) unheard() bool { return c.Process == Stopped && c.Token != 0 }

// twoInside: more than one believes that it holds the lock, and they do not all read.
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

// overdue is when the session of a client that is dead has long ended, in microseconds.
const overdue = int(2 * Timeout / time.Microsecond)

// blocked: somebody waits, and the first znode belongs to no one who waits or holds.
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
		banner.Wrong = DeadsYet // no property is broken: that is what a session costs
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

// unaware: a client believes that it holds the lock, and has no znode, or has never had one.
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
