package exercise

import (
	"context"
	"fmt"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// A story is a property.Story for the exercises after the steps. Lock and Unlock of its members are
// the exercise's own pair of calls.
type story struct{ *property.Story }

// asked makes a property of such an exercise.
func asked(name, question lang.Text, tell func(story)) *property.Property {
	return property.New(name, lang.Text{}, question, func(s *property.Story) { tell(story{s}) })
}

// enters starts a member's call, which must succeed without a wait.
func (s story) enters(m *zktest.Member, why string) *zktest.Turn {
	t := m.Start()
	s.FailsIf(!s.Soon(t.Returned), "%s, and %s waits", why, m.Name)
	s.succeeds(t)
	return t
}

// succeeds fails the story unless the call soon returns without an error.
func (s story) succeeds(t *zktest.Turn) {
	s.FailsIf(!s.Soon(t.Returned),
		"it is %[1]s's turn, and %[1]s still waits; its last requests: %[2]v", t.Name, t.LastAsked())
	s.FailsIf(t.Err() != nil, "%s got an error: %v", t.Name, t.Err())
}

// stands starts a member's call, which must wait.
func (s story) stands(m *zktest.Member, why string, args ...any) *zktest.Turn {
	t := m.Start()
	t.Waits()
	s.stillStands(t, why, args...)
	return t
}

// stillStands fails the story unless the call still waits, and does not poll.
func (s story) stillStands(t *zktest.Turn, because string, args ...any) {
	why := fmt.Sprintf(because, args...)
	switch t.StillWaits() {
	case zktest.Returned:
		s.FailsIf(t.Err() != nil, "%s, and %s got an error: %v", why, t.Name, t.Err())
		s.Fails("%s, and %s did not wait", why, t.Name)
	case zktest.Polling:
		s.Fails("%s, and %s polls", why, t.Name)
	}
}

// givesUp ends the call's context, and fails the story unless the call returns the context's error
// and leaves nothing behind.
func (s story) givesUp(t *zktest.Turn) {
	t.GiveUp()
	s.FailsIf(!s.Soon(t.Returned), "%s's context has ended, and its call does not return", t.Name)
	s.GaveUp(t.Member, t.Err(), context.Canceled)
}

// leaves releases what the call has acquired, and fails the story if that returns an error.
func (s story) leaves(t *zktest.Turn) {
	if err := t.Unlock(); err != nil {
		s.Fails("%s released, and got an error: %v", t.Name, err)
	}
}
