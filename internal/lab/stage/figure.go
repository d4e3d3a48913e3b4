package stage

import (
	"fmt"
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lang"
)

// Timeout is the session timeout: short enough for a user to wait until the session of a dead
// client ends.
const Timeout = 5 * time.Second

// The states of a client's process and of its connection.
const (
	Starting = "starting"
	Running  = "running"
	Stopped  = "stopped"
	Dead     = "dead"

	Up  = "up"
	Cut = "cut"
)

// A Figure is what is seen of a client. The page shows the fields that have a name in JSON.
type Figure struct {
	Is      string   `json:"is"` // its state, combined with a fault if there is one
	Process string   `json:"process"`
	Line    string   `json:"line"`
	Armed   []string `json:"armed"` // faults that are set, but have not happened yet
	Token   int64    `json:"token"`
	Said    string   `json:"said"`    // an error
	Reads   bool     `json:"reads"`   // its lock has readers
	Since   int      `json:"since"`   // when Is changed last
	Can     []string `json:"can"`     // the commands that make sense now
	Heard   int      `json:"heard"`   // when the server last heard from its session; 0: never, or not shown
	Server  int      `json:"server"`  // the server that it is connected to, from 1; 0: unknown
	Over    int      `json:"over"`    // when the server ended its session; 0: it has not
	Pending bool     `json:"pending"` // it is stopped, and will write to the store when it continues

	Number   int       `json:"-"`
	Called   lang.Text `json:"-"` // its name, if that is not its number
	Session  int64     `json:"-"`
	Joined   bool      `json:"-"`
	State    string    `json:"-"` // the last state that it reported
	Answered bool      `json:"-"` // the server has answered it since it called Lock

	shown      []State
	beats      []int // when the server heard from it
	hadNode    bool  // it has created a znode since its last call of Lock
	lostCreate bool
	last       Arrival
	times      int
}

// Add adds a client that is starting.
func (r *Recorder) Add(now int) *Figure {
	c := &Figure{Number: len(r.Clients), Process: Starting, Line: Up}
	r.Clients = append(r.Clients, c)
	c.Shows(now)
	return c
}

// name returns what the page calls the client.
func (c *Figure) name() lang.Text {
	if c.Called.EN != "" {
		return c.Called
	}
	return lang.Text{EN: fmt.Sprintf("client %d", c.Number), ZH: fmt.Sprintf("客户端 %d", c.Number)}
}

// IsInside reports whether the client is between Lock and Unlock, as far as the client knows.
func (c *Figure) IsInside() bool { return actor.IsInside(c.State) }

// Disarm removes a fault from those that are set, and reports whether it was set.
func (c *Figure) Disarm(fault string) (was bool) {
	n := len(c.Armed)
	c.Armed = slices.DeleteFunc(c.Armed, func(f string) bool { return f == fault })
	return len(c.Armed) < n
}

// Shows brings Is up to date. If Is has changed, Shows notes when.
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
