package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/semaphore/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter and the wrong ones.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Semaphore, exercise.OverSemaphore(New))
	asItIs := altering(func(*altered) {})
	asItIs.Name = "the solution in another form"
	exercise.Accepts(t, exercise.Semaphore, asItIs)
	exercise.Refuses(t, exercise.Semaphore, exercise.Semaphore.Properties[0], exercise.OverSemaphore(starter.New))

	wrong := func(by, name string, alter func(s *altered)) exercise.Wrong {
		return exercise.Semaphore.Wrong(by, name, altering(alter))
	}
	exercise.RefusesByOne(t, exercise.Semaphore,
		wrong("at most two at a time", "takes a low number", func(s *altered) { s.first = s.lowNumber }),
		wrong("whichever holder leaves, its permit is free again", "watches the latest permit", func(s *altered) { s.watch = s.watchLatest }),
		wrong("a crashed holder's permit is free again", "a persistent permit", func(s *altered) { s.mode = zk.FlagSequence }),
		wrong("first come, first served", "looks before it stands in line", func(s *altered) { s.first = s.anyFree }),
		wrong("a release wakes one", "step 3's lock is the line", func(s *altered) { s.line = herd }),
		wrong("giving up leaves nothing behind", "stays in the line", func(s *altered) { s.staysInLine = true }),
	)
}

// altered is the solution, open in the places where it can go wrong.
type altered struct {
	*Semaphore
	first       func() (node string)                           // a permit without the line, or ""
	line        func(conn *zk.Conn, path string) zktest.Locker // whose holder looks for a permit
	watch       func(out []string, changed <-chan zk.Event) (<-chan zk.Event, error)
	mode        int32 // of a permit
	staysInLine bool  // when it gives up
}

// altering is such a semaphore with one change.
func altering(alter func(s *altered)) property.Subject {
	return exercise.OverSemaphore(func(conn *zk.Conn, path string, permits int) *altered {
		s := &altered{
			Semaphore: New(conn, path, permits),
			first:     func() string { return "" },
			line:      func(conn *zk.Conn, path string) zktest.Locker { return predecessorwatch.New(conn, path) },
			watch:     func(_ []string, changed <-chan zk.Event) (<-chan zk.Event, error) { return changed, nil },
			mode:      zk.FlagEphemeralSequential,
		}
		alter(s)
		return s
	})
}

func (s *altered) Acquire(ctx context.Context) (release func() error, err error) {
	if node := s.first(); node != "" {
		return func() error { return s.conn.Delete(node, -1) }, nil
	}
	line := s.line(s.conn, s.path+"/line")
	if err := line.Lock(ctx); err != nil {
		return nil, err
	}
	node, err := s.take(ctx)
	if err != nil && s.staysInLine {
		return nil, err
	}
	if err := errors.Join(err, line.Unlock()); err != nil {
		return nil, err
	}
	return func() error { return s.conn.Delete(node, -1) }, nil
}

func (s *altered) take(ctx context.Context) (node string, err error) {
	_, err = s.conn.Create(s.path+"/permits", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	for {
		out, _, changed, err := s.conn.ChildrenW(s.path + "/permits")
		if err != nil {
			return "", err
		}
		if len(out) < s.permits {
			return s.conn.Create(s.path+"/permits/permit-", nil, s.mode, zk.WorldACL(zk.PermAll))
		}
		left, err := s.watch(out, changed)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return "", err
		}
		select {
		case event := <-left:
			if event.Err != nil {
				return "", event.Err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// "When nobody waits, I need no line: there are permits 0 and 1, and one of them may be free." A client
// that has waited has a higher number.
func (s *altered) lowNumber() (node string) {
	if waiting, _, _ := s.conn.Children(s.path + "/line"); len(waiting) > 0 {
		return ""
	}
	for n := range s.permits {
		node := fmt.Sprintf("%s/permits/permit-%010d", s.path, n)
		_, err := s.conn.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err == nil {
			return node
		}
	}
	return ""
}

// "When a permit is free, there is nothing to wait for." A client that has been notified of it is slower.
func (s *altered) anyFree() (node string) {
	out, _, err := s.conn.Children(s.path + "/permits")
	if err != nil || len(out) >= s.permits {
		return ""
	}
	node, _ = s.conn.Create(s.path+"/permits/permit-", nil, s.mode, zk.WorldACL(zk.PermAll))
	return node
}

// "As in step 4 I watch the one directly before me."
func (s *altered) watchLatest(out []string, _ <-chan zk.Event) (<-chan zk.Event, error) {
	_, _, left, err := s.conn.GetW(s.path + "/permits/" + slices.Max(out))
	return left, err
}

// "The line is any lock that serves in order."
func herd(conn *zk.Conn, path string) zktest.Locker { return childrenwatch.New(conn, path) }
