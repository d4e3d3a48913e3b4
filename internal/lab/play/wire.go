package play

import (
	"slices"
	"time"

	"zklock/internal/lab/stage"
	"zklock/internal/wiretap"
)

// The paces of the wire.
const (
	real   = "real"
	slow   = "slow"
	paused = "pause"
	step   = "step"   // lets one frame pass, and holds the others
	onward = "onward" // the last pace that was real or slow

	slowly   = 700 * time.Millisecond // how long slow holds each frame
	lateList = 3 * time.Second        // how long a delayed list is held
)

// rest is how long the wire goes on without a command while frames still pass. After that the
// service holds the wire, because nobody seems to look at the page, and a page that draws takes a
// tenth of a core. The next command lets the wire go on. The service does not hold the wire while a
// task of a lesson is open, because the reader may be reading.
const rest = time.Minute

// held is a frame on the wire.
type held struct {
	came time.Time
	goes bool // a step lets it pass, although the wire is held
}

// setPace sets the pace of the wire. A step lets one frame pass if the wire is held, and holds the
// wire otherwise.
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

// idles holds the wire when there was no command for a while, and frames still pass.
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

// goesOn notes that there was a command. If the service holds the wire because there was none, it
// sets the pace from before.
func (s *service) goesOn() {
	s.mu.Lock()
	rested := s.rests
	s.acted = time.Now()
	s.mu.Unlock()
	if rested {
		s.setPace(onward)
	}
}

// wake makes the frames on the wire check, after some time, whether they can pass.
func (s *service) wake(after time.Duration) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
}

// hold returns when a frame of a client can pass. The caller holds mu, which hold releases while it
// waits.
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
