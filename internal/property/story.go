package property

import (
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
	s.FailsIf(t.Err() != nil, "%s, and %s's Lock returned: %v", why, t.Name, t.Err())
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

// comesToAStop reports whether a call makes no more progress by itself: a trap has caught its
// frame, it has returned, or it waits, judged by the record since a Mark.
func comesToAStop(call *zktest.Turn, trap *wiretap.Trap, mark int) bool {
	if trap.IsSprung() || call.Returned() {
		return true
	}
	silently, polls := call.Tap.Waiting(mark)
	return silently || polls
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
