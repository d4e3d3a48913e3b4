package play

import (
	"errors"
	"fmt"

	"zklock/internal/lab/locks"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A sweep is what one release costs in step 3, and in step 4, while so many clients wait. The clients
// are sessions of this process. Each sweep is a run of its own.
type sweep struct {
	Waiters       int    `json:"waiters"`
	Notifications [2]int `json:"notifications"`
	Bytes         [2]int `json:"bytes"` // to all clients
}

// sweeps is what has been measured so far.
type sweeps struct {
	Busy int     `json:"busy"` // the size of the crowd that is being measured; 0: none
	Done []sweep `json:"done"`
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
	made := sweep{Waiters: waiters}
	err := zktest.Tell(func(t zktest.T) {
		for i, key := range []string{"3", "4"} {
			z := zktest.NewOn(t, s.server)
			line := locks.Of(key).Line(z, waiters)
			marks := make([]int, len(line))
			for j, turn := range line {
				marks[j] = turn.Tap.Mark()
			}
			z.Pass(line)
			for j, turn := range line {
				passed := wiretap.Count(turn.Tap.Since(marks[j]))
				made.Notifications[i] += passed.Notifications
				made.Bytes[i] += passed.Received
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept.Busy = 0
	if err == nil {
		s.swept.Done = append(s.swept.Done, made)
	}
}
