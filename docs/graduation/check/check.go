// Package check holds the graduation exercises against what they are to do. As
// in internal/lockcheck, each property is a story that is arranged on a real
// server, and its answer comes with evidence.
package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Property is something that the exercise is to have.
type Property struct {
	Name string
	Hint string // a question that leads to the code
	tell func(*story)
}

// Ask tells the property's story. The verdict is ✓, ✗, or ? when something was
// waited for in vain.
func (p Property) Ask(server *zkserver.Server, patience time.Duration) (verdict, evidence string) {
	told := make(chan *story, 1)
	err := zktest.PlayWithin(patience, func(t zktest.T) {
		s := &story{T: t, Zoo: zktest.NewOn(t, server)}
		defer func() { told <- s }()
		ctx, cancel := context.WithTimeout(s.Ctx, patience)
		defer cancel()
		s.Ctx = ctx
		p.tell(s)
	})
	select {
	case s := <-told:
		if err != nil {
			s.verdict, s.evidence = "?", err.Error()
		}
		return s.verdict, strings.ReplaceAll(s.evidence, s.Root, "") // nobody can tell it from another
	default: // it has not begun, or it hangs
		return "?", err.Error()
	}
}

// All tests that the properties hold.
func All(t *testing.T, properties []Property) {
	for _, p := range properties {
		t.Run(strings.ReplaceAll(p.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			server, err := zktest.Shared()
			if err != nil {
				t.Fatal(err)
			}
			if verdict, evidence := p.Ask(server, zktest.Patience); verdict != "✓" {
				t.Errorf("%s %s\nask yourself: %s", verdict, evidence, p.Hint)
			}
		})
	}
}

// A story is one run of a property's check.
type story struct {
	zktest.T
	*zktest.Zoo
	verdict, evidence string
}

// holds and fails end the story.
func (s *story) holds(evidence string, args ...any) { s.say("✓", evidence, args) }
func (s *story) fails(evidence string, args ...any) { s.say("✗", evidence, args) }

func (s *story) say(verdict, evidence string, args []any) {
	s.verdict, s.evidence = verdict, fmt.Sprintf(evidence, args...)
	s.FailNow()
}

// A call is running in the background.
type call struct {
	*zktest.Turn
	s *story
}

func (s *story) start(c *zktest.Client, f func(context.Context) error) *call {
	return &call{s.Go(c, f), s}
}

// isServed fails the story unless the call comes back, and does not wait.
func (c *call) isServed(why string) {
	if c.Waits() != zktest.Returned {
		c.s.fails("%s, and %s waits", why, c.Name)
	}
	c.succeeds()
}

// succeeds returns once the call has come back without an error.
func (c *call) succeeds() {
	if err := c.Err(); err != nil {
		c.s.fails("%s was told: %v", c.Name, err)
	}
}

// mustWait fails the story unless the call waits, with a watch and no request.
func (c *call) mustWait(why string) {
	c.Waits()
	switch c.StillWaits() {
	case zktest.Returned:
		if err := c.Err(); err != nil {
			c.s.fails("%s, and %s was told: %v", why, c.Name, err)
		}
		c.s.fails("%s, and %s was let in", why, c.Name)
	case zktest.Polling:
		c.s.fails("%s, and %s asks again and again", why, c.Name)
	}
}

// givesUp cancels the call, which must say so.
func (c *call) givesUp() {
	if err := c.Cancel(); !errors.Is(err, context.Canceled) {
		c.s.fails("%s gave up, and was told: %v", c.Name, err)
	}
}

// leftNothing fails the story if a client has left znodes behind. It may clean up
// in the background.
func (s *story) leftNothing(c *zktest.Client) {
	var left []string
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ephemerals, err := s.Ephemerals()
		if left = ephemerals[c.ID]; err == nil && len(left) == 0 {
			return
		}
	}
	s.fails("%s gave up, and left %v behind", c.Name, left)
}
