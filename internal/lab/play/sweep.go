package play

import (
	"errors"
	"fmt"

	"zklock/internal/lab/herd"
	"zklock/internal/lab/locks"
	"zklock/internal/zktest"
)

// A sweep measures a crowd now: its clients are sessions of this process.
type sweep struct {
	Busy int         `json:"busy"` // the size of the crowd that is being measured; 0: none
	Last *herd.Crowd `json:"last"` // the crowd that was measured last; nil: none
}

// How many clients can wait in a sweep.
const (
	fewestSwept = 2
	mostSwept   = 200
)

// sweeps starts to measure one release while so many clients wait.
func (s *service) sweeps(waiters int) error {
	if waiters < fewestSwept || waiters > mostSwept {
		return fmt.Errorf("%d to %d clients can wait", fewestSwept, mostSwept)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swept.Busy > 0 {
		return errors.New("a crowd is being measured: wait a moment")
	}
	if err := s.goes(func() { s.measures(waiters) }); err != nil {
		return err
	}
	s.swept.Busy = waiters
	return nil
}

func (s *service) measures(waiters int) {
	made := &herd.Crowd{Waiters: waiters}
	err := zktest.Tell(func(t zktest.T) {
		for i, key := range []string{"3", "4"} {
			z := zktest.NewOn(t, s.server)
			line := locks.Of(key).Line(z, waiters)
			caused := herd.Watch(line[1:])
			z.Pass(line)
			made.Releases[i] = caused()
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept.Busy = 0
	if err == nil {
		s.swept.Last = made
	}
}
