package model

import (
	"fmt"
	"strings"
)

// Tell returns the order of a result as a time line: one action a line, with its time as a part of the
// timeout in front. It leaves out questions that are not answered, and those that are under way behind
// another one.
func (m *model) Tell(r Result) string {
	if r.Order == nil {
		return ""
	}
	var lines []string
	now := uint8(0)
	for i, here := range r.Order {
		switch {
		case strings.HasPrefix(here.action.name, "time passes"):
			now++
		case isQuestion(here, 0) && !isAnswered(r.Order[i:], 0):
		case isQuestion(here, 1) && !isAnswered(r.Order[i:], 1):
		default:
			lines = append(lines, m.partOfTimeout(now)+"  "+m.say(here))
		}
	}
	end := r.Order[len(r.Order)-1].after
	last := "B may get the lock; A relies on its lease for another " + m.partOfTimeout(m.overlap(&end))
	lines = append(lines, m.partOfTimeout(now)+"  "+last)
	return strings.Join(lines, "\n")
}

func (m *model) partOfTimeout(units uint8) string {
	return fmt.Sprintf("%.2f", float64(units)/float64(m.clock.timeout))
}

// isQuestion reports whether a moment is a question to that server.
func isQuestion(here moment, server int) bool {
	asker := []string{"{leader} asks", "the follower asks"}[server]
	return strings.HasPrefix(here.action.name, asker)
}

// isAnswered reports whether the order contains the answer to the question in its first moment.
func isAnswered(order []moment, server int) bool {
	before := order[0].before.between[server].down
	if order[0].after.between[server].down == before {
		return false // there is an earlier question right before it, and the answer is counted for that one
	}
	length, _ := before.end()
	earlier := length - int(before.count())
	answerer := []string{"the follower answers", "the observer answers"}[server]
	for _, later := range order {
		if strings.HasPrefix(later.action.name, answerer) {
			earlier--
		}
	}
	return earlier < 0
}

// say fills in the braces in the name of an action.
func (m *model) say(here moment) string {
	s := &here.before
	return strings.NewReplacer(
		"{server}", serverAt(s),
		"{leader}", leaderOf(s),
		"{real leader}", realLeader(s),
		"{next}", m.nameOf(s.sent),
		"{to A}", m.nameOf(s.nextToClient()),
		"{down}", m.nameOf(s.nextDown()),
		"{down at follower}", m.nameOf(s.nextDownAtFollower()),
		"{at server}", m.nameOf(s.nextAtServer()),
		"{at follower}", m.nameOf(s.nextAtFollower()),
		"{at leader}", m.nameOf(s.nextAtLeader()),
		"{passes it on}", m.passesOn(s),
		"{answers}", m.answers(s),
		"{why}", whyItEnds(s),
		"{heard 0}", heard(s.between[0]),
		"{heard 1}", heard(s.between[1]),
	).Replace(here.action.name)
}

// nameOf returns "write 2", or "the write" if the rule counts on only one request.
func (m *model) nameOf(number uint8) string {
	kind := m.kindOf(number).String()
	if len(m.requests) == 1 {
		return "the " + kind
	}
	return fmt.Sprint(kind, " ", number+1)
}

func serverAt(s *state) string {
	switch s.place {
	case atFollower:
		return "the follower"
	case atObserver:
		return "the observer"
	}
	return leaderOf(s)
}

func leaderOf(s *state) string {
	if s.deposed {
		return "the deposed leader"
	}
	return realLeader(s)
}

func realLeader(s *state) string {
	if s.elected {
		return "the new leader"
	}
	return "the leader"
}

func (m *model) passesOn(s *state) string {
	if m.kindOf(s.nextAtServer()) == ping {
		return "answers it alone"
	}
	return "passes it on"
}

func (m *model) answers(s *state) string {
	needsMajority := m.kindOf(s.nextAtLeader()) == write || m.kindOf(s.nextAtLeader()) == newSession
	switch {
	case !m.leaderAnswers(s):
		return "does not answer"
	case needsMajority:
		return "answers it: a majority agrees"
	}
	return "answers it alone"
}

func whyItEnds(s *state) string {
	if s.condemned {
		return ""
	}
	return "has not heard of A for too long, and "
}

func heard(s server) string {
	if s.heard {
		return "heard"
	}
	return "not heard"
}
