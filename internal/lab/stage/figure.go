package stage

import (
	"fmt"
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lang"
)

// Timeout is that of the sessions: short enough to wait for, when a client is dead.
const Timeout = 5 * time.Second

// What a client's process and its line can be.
const (
	Starting = "starting"
	Running  = "running"
	Stopped  = "stopped"
	Dead     = "dead"

	Up  = "up"
	Cut = "cut"
)

// A Figure is what is seen of a client. What has a name in JSON, the page shows.
type Figure struct {
	Is      string   `json:"is"` // its state, and what has befallen it
	Process string   `json:"process"`
	Line    string   `json:"line"`
	Armed   []string `json:"armed"` // faults that wait for their moment
	Token   int64    `json:"token"`
	Said    string   `json:"said"`   // an error
	Reads   bool     `json:"reads"`  // its lock has readers
	Since   int      `json:"since"`  // when Is changed last
	Can     []string `json:"can"`    // which commands make sense
	Heard   int      `json:"heard"`  // when the server has heard of its session last, if that is shown
	Server  int      `json:"server"` // which it is connected to, from 1; 0: that is not known
	Over    int      `json:"over"`   // when the server has ended its session; 0: it has not

	Number   int       `json:"-"`
	Called   lang.Text `json:"-"` // if it has another name than its number
	Session  int64     `json:"-"`
	Joined   bool      `json:"-"`
	State    string    `json:"-"` // what it has told last
	Answered bool      `json:"-"` // by the server, since it called Lock

	shown      []State
	beats      []int // when the server has heard of it
	hadNode    bool  // since it has called Lock last
	lostCreate bool
	last       Arrival
	times      int
}

// Add brings a client to the board.
func (r *Recorder) Add(now int) *Figure {
	c := &Figure{Number: len(r.Clients), Process: Starting, Line: Up}
	r.Clients = append(r.Clients, c)
	c.Shows(now)
	return c
}

// name is what it is called on the page.
func (c *Figure) name() lang.Text {
	if c.Called.EN != "" {
		return c.Called
	}
	return lang.Text{EN: fmt.Sprintf("client %d", c.Number), ZH: fmt.Sprintf("客户端 %d", c.Number)}
}

// IsInside tells whether the client is between Lock and Unlock, as far as it knows.
func (c *Figure) IsInside() bool { return actor.IsInside(c.State) }

// Disarm takes a fault off those that wait.
func (c *Figure) Disarm(fault string) (was bool) {
	n := len(c.Armed)
	c.Armed = slices.DeleteFunc(c.Armed, func(f string) bool { return f == fault })
	return len(c.Armed) < n
}

// Shows notes how the client is from now on.
func (c *Figure) Shows(now int) {
	befallen, inside := "", ""
	switch {
	case c.Process == Stopped:
		befallen, inside = "stopped", "stopped, believes it holds"
	case c.Line == Cut:
		befallen, inside = "cut off", actor.CutOff
	}
	c.Is = c.State
	idlesOrWaits := c.State == actor.Idle || c.State == actor.Waits
	switch {
	case c.Process == Starting:
		c.Is = Starting
	case c.Process == Dead:
		c.Is = actor.Crashed
	case befallen != "" && c.IsInside():
		c.Is = inside
	case befallen != "" && idlesOrWaits:
		c.Is = befallen
	}
	if n := len(c.shown); n == 0 || c.shown[n-1].Is != c.Is {
		c.Since = now
		c.shown = append(c.shown, State{At: now, Is: c.Is})
		c.shown = c.shown[max(0, len(c.shown)-keptStates):]
	}
}
