// Package check holds the graduation exercises against what they are to do. As
// in internal/lockcheck, each property is a story that is arranged on a real
// server, and its answer comes with evidence.
package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
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
func (p Property) Ask(server *zktest.Server, patience time.Duration) (verdict, evidence string) {
	s := &story{told: make(chan [2]string, 1)}
	go func() {
		defer s.cleanUp()
		s.Zoo = zktest.NewOn(s, server)
		ctx, cancel := context.WithTimeout(s.Ctx, patience)
		defer cancel()
		s.Ctx = ctx
		p.tell(s)
	}()
	select {
	case answer := <-s.told:
		return answer[0], strings.ReplaceAll(answer[1], s.root(), "")
	case <-time.After(patience + 2*time.Second):
		return "?", fmt.Sprintf("a call without a context has not come back within %v", patience)
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
			verdict, evidence := p.Ask(server, zktest.Patience)
			t.Log(verdict, evidence)
			if verdict != "✓" {
				t.Errorf("ask yourself: %s", p.Hint)
			}
		})
	}
}

// A story is one run of a property's check. It is a zktest.T.
type story struct {
	*zktest.Zoo
	told     chan [2]string // the first word counts
	mu       sync.Mutex
	cleanups []func()
}

func (s *story) say(verdict, evidence string, args []any) {
	select {
	case s.told <- [2]string{verdict, fmt.Sprintf(evidence, args...)}:
	default:
	}
}

func (s *story) holds(evidence string, args ...any) { s.say("✓", evidence, args) }

// fails ends the story.
func (s *story) fails(evidence string, args ...any) {
	s.say("✗", evidence, args)
	runtime.Goexit()
}

// Errorf is what a wait in vain ends in.
func (s *story) Errorf(format string, args ...any) { s.say("?", format, args) }
func (s *story) FailNow()                          { runtime.Goexit() }
func (s *story) Helper()                           {}

func (s *story) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *story) cleanUp() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// root is the path that nobody can tell from another.
func (s *story) root() string {
	if s.Zoo == nil {
		return "\x00"
	}
	return s.Root
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
func (s *story) notified(happens func(), clients ...*zktest.Client) (n int) {
	marks := map[*zktest.Client]int{}
	for _, c := range clients {
		marks[c] = c.Tap.Mark()
	}
	happens()
	for _, c := range clients {
		s.Barrier(c)
		n += wiretap.Count(c.Tap.Since(marks[c])).Notifications
	}
	return n
}

// makes puts a persistent znode there.
func (s *story) makes(path string) {
	if _, err := s.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		s.Errorf("create %s: %v", path, err)
		s.FailNow()
	}
}
