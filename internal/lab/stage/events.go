package stage

import (
	"slices"

	"zklock/internal/actor"
	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// An Event is something that has happened, without words: the page's script describes it in the
// reader's language. Equal arrivals at several clients at about the same time are one event.
type Event struct {
	At      int    `json:"at"`
	What    What   `json:"what"`
	Clients []int  `json:"clients,omitempty"`
	Text    string `json:"text,omitempty"` // an error, or what was printed; in English
	Znode   string `json:"znode,omitempty"`

	Action *Action  `json:"action,omitempty"`
	Frame  *Arrival `json:"frame,omitempty"`
	State  string   `json:"state,omitempty"`
	Token  int64    `json:"token,omitempty"`
	Again  bool     `json:"again,omitempty"` // it has happened before
	Banner *Banner  `json:"banner,omitempty"`
	Write  *write   `json:"write,omitempty"`
}

// What is the kind of an event.
type What string

// The kinds of events.
const (
	Acted   What = "acted"   // the user has done something
	Arrived What = "arrived" // a frame has arrived
	LostIt  What = "lost"    // a frame was lost
	Changed What = "state"   // a client is in a new state
	Wrote   What = "wrote"   // a client has written to the store
	Gone    What = "gone"    // the server no longer lists a znode
	Expired What = "expired" // the server has ended a session, and deleted its znode if it had one
	Warns   What = "warns"   // there is a new banner
	Ended   What = "ended"   // a client's process has ended by itself
	Printed What = "printed" // a client's process has printed something
	Failed  What = "failed"  // a command of the user has failed
	Late    What = "late"    // a list will arrive late
	Later   What = "later"   // a stopped client will carry out a command when it continues
)

// An Action is something that the user has asked for. Do is the command of the button on the page.
type Action struct {
	Do     string `json:"do"`
	N      int    `json:"n,omitempty"`      // how many clients, or the number of a lesson or a server
	Client *int   `json:"client,omitempty"` // nil: all clients that the action concerns
}

// An Arrival describes a frame for a client.
type Arrival struct {
	Did   lang.Text `json:"did"`   // what the client has done, or received
	First bool      `json:"first"` // the client's znode is the first in the queue
}

// atATime is for how long after an event equal arrivals are added to it, in microseconds.
const atATime = 20_000

// Say adds an event to the log, and returns its number.
func (r *Recorder) Say(e Event) int {
	r.log.forget(keptEvents, func(*Event) bool { return true })
	return r.log.add(e)
}

// loses notes a frame that was lost. Only the lost reply to a create or a delete becomes an event.
func (r *Recorder) loses(now int, c *Figure, f wiretap.Frame) {
	if f.Kind != wiretap.Reply {
		return
	}
	switch f.Op {
	case wiretap.Create:
		c.Disarm("losecreate")
		c.lostCreate = c.lostCreate || f.Err == wiretap.OK
	case wiretap.Delete:
		c.Disarm("losedelete")
	default:
		return
	}
	arrival := r.arrival(c, f)
	r.Say(Event{At: now, What: LostIt, Clients: []int{c.Number}, Frame: &arrival})
}

// tell logs an arrival if it is part of what the lock does. If the same arrival repeats, tell logs
// it twice at most.
func (r *Recorder) tell(now int, c *Figure, f wiretap.Frame) {
	if !r.isWorthTelling(c, f) {
		return
	}
	arrival := r.arrival(c, f)
	if c.last != arrival {
		c.last, c.times = arrival, 0
	}
	c.times++
	if c.times <= 2 {
		r.reaches(now, c, arrival, c.times == 2)
	}
}

// isWorthTelling reports whether a frame that has arrived is part of what the lock does.
func (r *Recorder) isWorthTelling(c *Figure, f wiretap.Frame) bool {
	switch {
	case f.Kind == wiretap.Request:
		return false
	case f.Kind == wiretap.Notification, f.Op == wiretap.SetWatches:
		return true
	case f.Op == wiretap.Connect:
		return c.Joined
	}
	isOfQueue := r.ours(f.Path) || r.isDirectory(f.Path)
	isLook := f.Op == wiretap.GetData || f.Op == wiretap.Exists
	hasFound := isLook && f.Err == wiretap.OK && !f.Watch
	hasWords := f.Did("").EN != ""
	return isOfQueue && hasWords && !hasFound
}

// arrival returns what the log records of a frame.
func (r *Recorder) arrival(c *Figure, f wiretap.Frame) Arrival {
	hasListed := f.Op == wiretap.GetChildren && f.Err == wiretap.OK
	a := Arrival{Did: f.Did(r.name(f.Path)), First: hasListed && r.isFirst(c)}
	if f.Op == wiretap.Connect {
		a.Did = lang.Text{EN: "connected again", ZH: "又连上了"}
	}
	return a
}

// reaches logs an arrival at a client. If an equal arrival at another client was logged shortly
// before, reaches adds the client to that event.
func (r *Recorder) reaches(now int, c *Figure, a Arrival, again bool) {
	for i, e := range r.log.kept {
		isSame := e.What == Arrived && e.Again == again && *e.Frame == a
		isOther := isSame && !slices.Contains(e.Clients, c.Number)
		if isOther && now-e.At < atATime {
			e = r.log.change(i)
			e.Clients = append(e.Clients, c.Number)
			slices.Sort(e.Clients)
			return
		}
	}
	r.Say(Event{At: now, What: Arrived, Clients: []int{c.Number}, Frame: &a, Again: again})
}

// isFirst reports whether a client's newest znode is the first in the queue.
func (r *Recorder) isFirst(c *Figure) bool {
	own := r.newest(c.Number)
	return own != nil && own == r.Queue()[0]
}

// Hears notes a new state of a client, as the client reports it.
func (r *Recorder) Hears(now int, c *Figure, s actor.State) {
	was, wasInside := c.State, c.IsInside()
	c.State, c.Token, c.Said = s.Name, s.Token, s.Err
	if c.State == actor.Waits {
		c.hadNode = false
	}
	hasGivenUp := s.Name == actor.Idle && was == actor.Waits
	if s.Err != "" || c.IsInside() || hasGivenUp {
		again := wasInside && c.IsInside()
		r.Say(Event{
			At: now, What: Changed, Clients: []int{c.Number},
			State: s.Name, Token: s.Token, Text: s.Err, Again: again,
		})
	}
	c.Shows(now)
}
