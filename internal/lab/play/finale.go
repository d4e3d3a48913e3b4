package play

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"zklock/internal/lab/locks"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A finale compares the six steps at the end of the lessons. All of it is measured now: its clients are sessions of
// this process.
type finale struct {
	Busy bool       `json:"busy"`
	Rows []measured `json:"rows"` // one for each step that is done
}

// measured is what waiting, a release and a crash cost in one step, while waitersOfFinale clients wait, and what else
// tells the steps apart.
type measured struct {
	Step     string `json:"step"`
	Waiting  int    `json:"waiting"`  // requests of the waiters in one second
	Writes   int    `json:"writes"`   // how many of them are writes
	Polls    bool   `json:"polls"`    // the waiters poll, so a release notifies none of them
	Notified int    `json:"notified"` // how many notifications one release causes
	Requests int    `json:"requests"` // of all clients, from that release until all wait silently; 0 if they poll
	IsFree   bool   `json:"isFree"`   // after the session of a crashed holder another client gets the lock
	IsFound  bool   `json:"isFound"`  // after a lost reply to create another client gets the lock in the end
	Shares   bool   `json:"shares"`   // two clients that only read hold the lock at the same time
}

const waitersOfFinale = 10

// compares starts to measure the six steps, one after the other.
func (s *service) compares() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finale.Busy {
		return errors.New("the steps are being measured: wait a moment")
	}
	if err := s.goes(s.measuresSteps); err != nil {
		return err
	}
	s.finale = finale{Busy: true, Rows: []measured{}}
	return nil
}

// measuresSteps ends early if the service does, or if a step cannot be measured.
func (s *service) measuresSteps() {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finale.Busy = false
	}()
	for _, l := range locks.Steps() {
		var m measured
		if err := zktest.TellUntil(s.ctx, func(t zktest.T) { m = s.measuresStep(t, l) }); err != nil {
			return
		}
		s.mu.Lock()
		s.finale.Rows = append(slices.Clone(s.finale.Rows), m)
		s.mu.Unlock()
	}
}

func (s *service) measuresStep(t zktest.T, l locks.Entry) measured {
	z, subject := zktest.NewOn(t, s.server), locks.Of(l.Key)
	holder := subject.Join(z, "the holder").Acquire()
	var waiting []*zktest.Turn
	for i := range waitersOfFinale {
		turn := subject.Join(z, fmt.Sprintf("waiter %d", i+1)).Start()
		turn.Waits()
		waiting = append(waiting, turn)
	}
	m := measured{Step: l.Key, Polls: l.Polls}
	if !m.Polls {
		z.Settle(waiting...)
	}
	second := countsInASecond(waiting)
	m.Waiting, m.Writes = second.All(), second.Writes()

	counted := z.Count(append(waiting, holder)...)
	holder.Release()
	at := -1
	isNext := func() bool {
		at = slices.IndexFunc(waiting, (*zktest.Turn).Returned)
		return at >= 0
	}
	z.Await("the next client to get the lock", isNext)
	next := waiting[at]
	next.Acquired()
	waiting = slices.Delete(waiting, at, at+1)
	if !m.Polls {
		z.Settle(waiting...)
		release := counted()
		m.Notified, m.Requests = release.Notifications, release.All()
	}

	z.Expire(next.Client)
	m.IsFree = slices.ContainsFunc(waiting, func(turn *zktest.Turn) bool { return turn.StillWaits() == zktest.Returned })
	m.IsFound = survivesALostReply(zktest.NewOn(t, s.server), subject)
	m.Shares = shares(zktest.NewOn(t, s.server), subject)
	return m
}

// survivesALostReply loses the reply to a create, and reports whether the next client gets the lock.
func survivesALostReply(z *zktest.Zoo, subject property.Subject) bool {
	unlucky, next := subject.Join(z, "the unlucky client"), subject.Join(z, "the next client")
	next.Acquire().Release() // makes the directory
	unlucky.Tap.LoseReply(wiretap.Create, 1)
	if turn := unlucky.Start(); turn.Err() == nil {
		turn.Release()
	}
	return next.Start().Waits() == zktest.Returned
}

// shares reports whether a second client that only reads gets the lock beside the first.
func shares(z *zktest.Zoo, subject property.Subject) bool {
	var how zktest.Wait
	for _, name := range []string{"reader 1", "reader 2"} {
		m := subject.Join(z, name)
		if m.Reader != nil {
			m = m.Reader
		}
		how = m.Start().Waits()
	}
	return how == zktest.Returned
}

// countsInASecond counts what passes between the waiters and the server in one second.
func countsInASecond(waiting []*zktest.Turn) wiretap.Counts {
	var marks []int
	for _, turn := range waiting {
		marks = append(marks, turn.Tap.Mark())
	}
	end := time.Now().Add(time.Second)
	time.Sleep(time.Until(end)) // this does not wait for a state: the time itself is measured
	var frames [][]wiretap.Frame
	for i, turn := range waiting {
		isLater := func(f wiretap.Frame) bool { return f.At.After(end) }
		frames = append(frames, slices.DeleteFunc(turn.Tap.Since(marks[i]), isLater))
	}
	return wiretap.Count(frames...)
}
