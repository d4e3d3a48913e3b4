package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// A Line is a sentence about something that happened in an interleaving.
type Line struct {
	Choice int    // the number of the choice; 0: an effect of the last choice
	Client string // the client that it is about
	Text   lang.Text
}

// account is the story of an interleaving. It is safe for use by many goroutines.
type account struct {
	path string // of the interleaving's directory

	mu      sync.Mutex
	lines   []Line
	choices int
	since   int // the lines from here on are effects of the last choice
}

// sessions matches the session IDs that a lock may put into names. It does not match the number of
// a znode, which has ten digits.
var sessions = regexp.MustCompile(`[0-9a-f]{12,}`)

// short replaces what differs when the interleaving is played again: the directory is always called
// /lock, and random numbers and sessions are left out.
func (s *account) short(text string) string {
	text = strings.ReplaceAll(text, s.path, "/lock")
	return sessions.ReplaceAllString(wiretap.WithoutGuid(text), "…")
}

// add adds a line about an effect of the last choice. The caller has made paths and errors short.
func (s *account) add(client, en, zh string, args ...any) {
	text := lang.Of(en, zh, append([]any{client}, args...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, Line{Client: client, Text: text})
}

// chosen adds a line about a choice.
func (s *account) chosen(client, en, zh string, args ...any) {
	s.endChoice()
	text := lang.Of(en, zh, append([]any{client}, args...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices++
	s.lines = append(s.lines, Line{s.choices, client, text})
	s.since = len(s.lines)
}

// endChoice sorts the effects of the last choice by client, because clients that act at the same
// time add their lines in any order.
func (s *account) endChoice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	byClient := func(a, b Line) int { return strings.Compare(a.Client, b.Client) }
	slices.SortStableFunc(s.lines[s.since:], byClient)
	s.since = len(s.lines)
}

// told returns the lines so far.
func (s *account) told() []Line {
	s.endChoice()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// Tell returns the run as a numbered story, one sentence a line.
func (r Run) Tell() (lines []string) {
	for _, line := range r.Told {
		number := "    "
		if line.Choice > 0 {
			number = fmt.Sprintf("%3d.", line.Choice)
		}
		lines = append(lines, number+" "+line.Text.EN)
	}
	return append(lines, "     "+fmt.Sprintf("In the end: %s", r.Outcome))
}

// briefly describes a frame in a few words.
func (s *account) briefly(f wiretap.Frame) lang.Text { return f.Briefly(s.short(f.Path)) }

func (s *account) replied(client string, f wiretap.Frame) {
	if f.Lost {
		s.add(client, "%s does not get the reply: %s", "%s 没有收到响应：%s", s.briefly(f))
		return
	}
	s.add(client, "%s gets the reply: %s", "%s 收到响应：%s", s.briefly(f))
}

func (s *account) notified(client string, f wiretap.Frame) {
	s.add(client, "%s is notified: %s", "%s 收到通知：%s", s.briefly(f))
}

func (s *account) returned(client, call string, err error) {
	switch {
	case err != nil && call == "Lock":
		s.add(client, "%s's Lock fails: %s", "%s 的 Lock 失败：%s", s.short(err.Error()))
	case err != nil:
		s.add(client, "%s's Unlock fails: %s", "%s 的 Unlock 失败：%s", s.short(err.Error()))
	case call == "Lock":
		s.add(client, "%s holds the lock", "%s 持有锁")
	default:
		s.add(client, "%s's Unlock is done", "%s 的 Unlock 完成")
	}
}
