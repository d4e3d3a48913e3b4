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

	"github.com/go-zookeeper/zk"

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
		ctx, cancel := context.WithTimeout(s.Ctx, patience)
		defer cancel()
		s.Ctx = ctx
		defer func() { told <- s }()
		p.tell(s)
	})
	if err != nil {
		verdict, evidence = "?", err.Error()
	}
	select {
	case s := <-told:
		if err == nil {
			verdict, evidence = s.verdict, s.evidence
		}
		evidence = strings.ReplaceAll(evidence, s.Root, "") // nobody can tell it from another
	default: // it has not begun, or it hangs
	}
	return verdict, evidence
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
			verdict, evidence := p.Ask(server, zktest.Patience)
			t.Log(verdict, evidence)
			if verdict != "✓" {
				t.Errorf("ask yourself: %s", p.Hint)
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
	*zktest.Attempt
	s      *story
	client *zktest.Client
}

func (s *story) start(c *zktest.Client, f func(context.Context) error) *call {
	return &call{s.Go(c, f), s, c}
}

// isServed fails the story unless the call comes back, and does not wait.
func (c *call) isServed(why string) {
	if c.Waits() != zktest.Returned {
		c.s.fails("%s, and %s waits", why, c.client.Name)
	}
	c.succeeds()
}

// succeeds returns once the call has come back without an error.
func (c *call) succeeds() {
	if err := c.Err(); err != nil {
		c.s.fails("%s was told: %v", c.client.Name, err)
	}
}

// mustWait fails the story unless the call waits, with a watch and no request.
func (c *call) mustWait(why string) {
	c.Waits()
	switch c.StillWaits() {
	case zktest.Returned:
		if err := c.Err(); err != nil {
			c.s.fails("%s, and %s was told: %v", why, c.client.Name, err)
		}
		c.s.fails("%s, and %s was let in", why, c.client.Name)
	case zktest.Polling:
		c.s.fails("%s, and %s asks again and again", why, c.client.Name)
	}
}

// givesUp cancels the call, which must say so.
func (c *call) givesUp() {
	if err := c.Cancel(); !errors.Is(err, context.Canceled) {
		c.s.fails("%s gave up, and was told: %v", c.client.Name, err)
	}
}

// below lists all znodes at and below a path that belong to a session.
func (s *story) below(path string, session int64) (owned []string) {
	if owner, there := s.Owner(path); there && owner == session {
		owned = append(owned, path)
	}
	for _, name := range s.Names(path) {
		owned = append(owned, s.below(path+"/"+name, session)...)
	}
	return owned
}

// leftNothing fails the story if a client has left znodes behind.
func (s *story) leftNothing(c *zktest.Client) {
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(time.Millisecond) {
		left := s.below(s.Root, c.ID)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) { // it may clean up in the background
			s.fails("%s gave up, and left %v behind", c.Name, left)
		}
	}
}

// notified counts the notifications that the clients get for what happens.
func (s *story) notified(happens func(), clients ...*zktest.Client) int {
	count := s.CountClients(clients...)
	happens()
	return count().Notifications
}

// makes puts a persistent znode there.
func (s *story) makes(path string) {
	if _, err := s.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		s.Fatalf("create %s: %v", path, err)
	}
}
