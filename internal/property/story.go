package property

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// letIn fails the story unless the call soon returns with the lock.
func (s *Story) letIn(t *zktest.Turn, because string, args ...any) {
	why := fmt.Sprintf(because, args...)
	if !s.Soon(t.Returned) {
		s.Fails("%s, and %s does not get the lock; its last requests: %s%s",
			why, t.Name, t.LastAsked(), s.queueNow())
	}
	s.FailsIf(t.Err() != nil, "%s, and %s got an error: %v", why, t.Name, t.Err())
}

// queueNow returns the end of a sentence, which names the queue. For a lock that is one znode it is
// empty.
func (s *Story) queueNow() string {
	if s.subject.Znode {
		return ""
	}
	return fmt.Sprintf("; the queue: %v", s.Names(s.dir))
}

// givesUp ends the call's context, and fails the story unless the call soon returns.
func (s *Story) givesUp(t *zktest.Turn, why string) error {
	t.GiveUp()
	s.FailsIf(
		!s.Soon(t.Returned),
		"%s: its context has ended, and its Lock does not return; it has left %v",
		why,
		s.left(t.Member),
	)
	return t.Err()
}

// comesToAStop returns a condition: whether a call makes no more progress by itself. A trap has caught its
// frame, it has returned, or it waits, judged by the record since a Mark.
func comesToAStop(call *zktest.Turn, trap *wiretap.Trap, mark int) func() bool {
	rests := call.Rests(mark)
	return func() bool { return trap.IsSprung() || call.Returned() || rests() }
}

// left lists the znodes that a client has created and that still exist, except directories.
func (s *Story) left(c *zktest.Member) []string {
	made := c.Tap.Done(wiretap.Create)
	return slices.DeleteFunc(slices.Clone(made), func(path string) bool {
		_, there := s.Owner(path)
		directory := slices.ContainsFunc(made, func(other string) bool { return strings.HasPrefix(other, path+"/") })
		return !there || directory
	})
}

// says fails the story unless err is an error, is want if want is not nil, and contains all the
// words.
func (s *Story) says(call string, err, want error, words ...string) {
	isAnotherKind := want != nil && !errors.Is(err, want)
	s.FailsIf(err == nil || isAnotherKind, "%s returned %v; wanted: %v", call, err, want)
	for _, word := range words {
		s.FailsIf(!strings.Contains(err.Error(), word), "%s returned %q, which does not say %q", call, err, word)
	}
}

// deletes deletes a znode of the lock, as somebody else might.
func (s *Story) deletes(znode string) {
	if err := s.Observer().Delete(znode, -1); err != nil {
		s.Fatalf("delete %s: %v", znode, err)
	}
}

// breaks counts how often a client's connection has broken since a mark, except by a frame that the story lost.
func breaks(m *zktest.Member, mark int) (n int) {
	for _, f := range m.Tap.Since(mark) {
		if f.Lost {
			n--
		}
		if f.Kind == wiretap.Request && f.Op == wiretap.Connect {
			n++
		}
	}
	return n
}

// A lockCall is one of the calls that take a lock, such as Lock or TryRLock.
type lockCall struct {
	name string
	lock func(context.Context) (zktest.Hold, error)
}

// blocking lists the calls of a client that wait for the lock. Lock is the first.
func blocking(m *zktest.Member) []lockCall {
	all := []lockCall{{"Lock", m.Lock}}
	if m.Reader != nil {
		all = append(all, lockCall{"RLock", m.Reader.Lock})
	}
	return all
}

// tries lists the calls of a client that take the lock if they need not wait.
func tries(m *zktest.Member) (all []lockCall) {
	if m.TryLock != nil {
		all = append(all, lockCall{"TryLock", m.TryLock})
	}
	if m.Reader != nil {
		all = append(all, lockCall{"TryRLock", m.Reader.TryLock})
	}
	return all
}

// The letters of a queue: R for a reader, W for a writer.
var named = map[byte]string{'R': "a reader", 'W': "a writer"}

// inWords says who is in a queue.
func inWords(queue string) string {
	var all []string
	for i := range queue {
		all = append(all, named[queue[i]])
	}
	return strings.Join(all, ", ")
}

// as is a client as the reader or the writer that the letter asks for.
func (s *Story) as(letter byte, m *zktest.Member) *zktest.Member {
	if letter == 'R' {
		return m.Reader
	}
	return m
}
