package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"zklock/internal/server/wiretap"
)

// A Line tells something that happened in an order.
type Line struct {
	Choice int // the number of the choice; 0: it is what came of the last one
	Text   string
}

// story is what happens in an order. It is safe for use by many goroutines.
type story struct {
	path string // of the order's directory

	mu      sync.Mutex
	lines   []Line
	choices int
	since   int // the lines from here on came since the last choice
}

// sessions are what a lock may have in a name, too. A znode's number has ten digits.
var sessions = regexp.MustCompile(`[0-9a-f]{12,}`)

// short is a text in which nothing differs when the order is played again: the directory has
// always the same name, and random numbers and sessions are left out.
func (s *story) short(text string) string {
	text = strings.ReplaceAll(text, s.path, "/lock")
	return sessions.ReplaceAllString(wiretap.WithoutGuid(text), "…")
}

// add tells what came of a choice. Paths and errors are short.
func (s *story) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, Line{Text: text})
}

// chosen tells of a choice.
func (s *story) chosen(format string, args ...any) {
	s.endChoice()
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices++
	s.lines = append(s.lines, Line{s.choices, text})
	s.since = len(s.lines)
}

// endChoice brings what came of the last choice into an order: clients that do something at
// the same time are told one after the other.
func (s *story) endChoice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	byClient := func(a, b Line) int { return strings.Compare(a.Text[:1], b.Text[:1]) }
	slices.SortStableFunc(s.lines[s.since:], byClient)
	s.since = len(s.lines)
}

// told are the lines until now.
func (s *story) told() []Line {
	s.endChoice()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// Tell is the order as a numbered story, a line each.
func (r Run) Tell() (lines []string) {
	for _, line := range r.Told {
		number := "    "
		if line.Choice > 0 {
			number = fmt.Sprintf("%3d.", line.Choice)
		}
		lines = append(lines, number+" "+line.Text)
	}
	return append(lines, "     "+fmt.Sprintf("In the end: %s", r.Outcome))
}

// briefly is a frame in a few words.
func (s *story) briefly(f wiretap.Frame) string { return f.Briefly(s.short(f.Path)).EN }

func (s *story) replied(client string, f wiretap.Frame) {
	if f.Lost {
		s.add("%s does not get the reply: %s", client, s.briefly(f))
		return
	}
	s.add("%s gets the reply: %s", client, s.briefly(f))
}

func (s *story) notified(client string, f wiretap.Frame) {
	s.add("%s is notified: %s", client, s.briefly(f))
}

func (s *story) returned(client, call string, err error) {
	switch {
	case err != nil && call == "Lock":
		s.add("%s's Lock fails: %s", client, s.short(err.Error()))
	case err != nil:
		s.add("%s's Unlock fails: %s", client, s.short(err.Error()))
	case call == "Lock":
		s.add("%s is inside", client)
	default:
		s.add("%s's Unlock is done", client)
	}
}
