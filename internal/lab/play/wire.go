package play

import (
	"slices"
	"time"

	"zklock/internal/lab/stage"
	"zklock/internal/wiretap"
)

// What the wire does with a frame.
const (
	real   = "real"
	slow   = "slow"
	paused = "pause"
	step   = "step"   // one frame may go
	onward = "onward" // as it was before all was held

	slowly   = 700 * time.Millisecond
	lateList = 3 * time.Second // a list that is delayed
)

// rest is after how much time without a command the wire is held, if clients ask all the
// time: nobody looks at it, and a page that draws takes a tenth of a core. Whatever is
// pressed next lets it go on. It is not held while a task of a lesson is open: somebody reads.
const rest = time.Minute

// held is a frame on the wire.
type held struct {
	came time.Time
	goes bool // it may go, though all others stand
}

// setPace sets what the wire does from now on. A step lets one frame go.
func (s *service) setPace(pace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch pace {
	case onward:
		pace = s.moves
	case real, slow:
		s.moves = pace
	case step:
		pace = paused
		if i := slices.IndexFunc(s.held, func(h *held) bool { return !h.goes }); i >= 0 && s.pace == paused {
			s.held[i].goes = true
		}
	}
	s.pace, s.rests, s.acted = pace, false, time.Now()
	s.changed.Broadcast()
	s.wake(slowly)
}

// idles holds the wire when nobody has done anything for a while, and clients still ask.
func (s *service) idles() {
	s.mu.Lock()
	passed := 0
	for _, b := range s.laid() {
		passed += b.Passed()
	}
	c := s.course
	isOpen := c.Begun && c.Done < len(lessons[c.Lesson-1].Tasks)
	still := passed == s.passed || s.pace == paused || isOpen || time.Since(s.acted) < s.rest
	s.passed = passed
	s.mu.Unlock()
	if !still {
		s.setPace(paused)
		s.mu.Lock()
		s.rests = true
		s.mu.Unlock()
	}
}

// goesOn notes that somebody does something, and ends the rest: the pace is the one before it.
func (s *service) goesOn() {
	s.mu.Lock()
	rested := s.rests
	s.acted = time.Now()
	s.mu.Unlock()
	if rested {
		s.setPace(onward)
	}
}

// wake has the frames on the wire look, after a while, whether they can go.
func (s *service) wake(after time.Duration) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
}

// hold returns when a frame of a client can go on. The caller holds mu.
func (s *service) hold(c *client, f wiretap.Frame) {
	if f.Class() != wiretap.OfLock {
		return
	}
	h := &held{came: time.Now()}
	due := h.came
	isList := f.Kind == wiretap.Reply && f.Op == wiretap.GetChildren
	if isList && c.Disarm("delaylist") {
		due = due.Add(lateList)
		s.wake(lateList)
		c.Say(stage.Event{At: s.now(), What: stage.Late, Clients: []int{c.Number}})
	}
	if s.pace == slow {
		s.wake(slowly)
	}
	stands := func() bool {
		switch s.pace {
		case paused:
			return true
		case slow:
			return time.Since(h.came) < slowly
		}
		return false
	}
	waits := func() bool {
		if time.Now().Before(due) {
			return true
		}
		return !h.goes && stands()
	}
	s.held = append(s.held, h)
	for c.lives() && waits() {
		s.changed.Wait()
	}
	s.held = slices.DeleteFunc(s.held, func(other *held) bool { return other == h })
}
