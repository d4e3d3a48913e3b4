package main

import (
	"fmt"
	"sync"
	"time"
)

// The store is what the locks protect: for each, a number that holders add one
// to. It checks tokens as a store should, and keeps the record of the storm. The
// client processes reach it, and take their orders, by remote calls on a line
// that no fault touches.
type store struct {
	began time.Time

	mu       sync.Mutex
	numbers  []number // one for each of kinds
	holds    [][]Hold
	gaveUp   []int
	sessions map[int64]int // the client that a session is
	stalls   []Stall
	breaches []breach
}

func newStore() *store {
	return &store{
		began:   time.Now(),
		numbers: make([]number, len(kinds)), holds: make([][]Hold, len(kinds)), gaveUp: make([]int, len(kinds)),
		sessions: map[int64]int{},
	}
}

type number struct {
	value     int64
	refused   int // stale writes and reads
	handOvers int
	last      int   // the client that used it last
	any       fence // the greatest token seen
	writer    fence // the same among writers
}

// A fence is the greatest token that the store has seen, and whose it was.
type fence struct {
	token  int64
	client int
}

// An Access is a holder's use of a number.
type Access struct {
	Kind, Client int
	Read         bool
	Token        int64 // 0: the lock has none
	Base         int64 // to write: the number that was read
}

// admit checks the token. A writer's has to be greater than all before it, a
// reader's greater than those of the writers before it; a holder comes again
// with the same one.
func (n *number) admit(a Access) bool {
	if a.Token == 0 {
		return true
	}
	floor := n.any
	if a.Read {
		floor = n.writer
	}
	if a.Token < floor.token || a.Token == floor.token && a.Client != floor.client {
		n.refused++
		return false
	}
	if a.Token > n.any.token {
		n.any = fence{a.Token, a.Client}
	}
	if a.Token > n.writer.token && !a.Read {
		n.writer = fence{a.Token, a.Client}
	}
	return true
}

// Value is what the store answers to an Access.
type Value struct {
	Number  int64
	Refused bool
}

// Read is a holder's first access.
func (s *store) Read(a Access, v *Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.numbers[a.Kind]
	v.Refused = !n.admit(a)
	v.Number = n.value
	if n.last != a.Client {
		n.last = a.Client
		n.handOvers++
	}
	return nil
}

// Write sets the number to one more than the holder has read.
func (s *store) Write(a Access, v *Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.numbers[a.Kind]
	v.Refused = !n.admit(a)
	if v.Refused {
		return nil
	}
	if n.value != a.Base {
		s.breach(noLostIncrement, a.Kind, a.Client, fmt.Sprintf("client %d wrote over %d as if it were %d", a.Client, n.value, a.Base))
	}
	n.value = a.Base + 1
	v.Number = n.value
	return nil
}

// A Hold is one tenure, as the holder saw it.
type Hold struct {
	Kind, Client int
	Read         bool
	Waited       time.Duration
	From, Until  time.Time // at both moments it held the lock, for all it could know
	Unlocked     time.Time // when it called Unlock
	Lived        bool      // its session lived on until then
	Wrote        bool
	Lost         bool      // it was told that it had lost the lock
	RefusedAlive time.Time // the store refused it while it held the lock for all it could know
}

// inside tells whether nobody else may have been let in at that time, for the
// session lived and the holder had not called Unlock. That the holder was told, or
// stopped, is no excuse.
func (h Hold) inside(at time.Time) bool { return h.Lived && at.Before(h.Unlocked) }

// Done records a hold that is over.
func (s *store) Done(h Hold, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h.Kind] = append(s.holds[h.Kind], h)
	return nil
}

// A Turn is a call for the lock that did not end with a hold.
type Turn struct {
	Kind, Client int
	Failure      string // "": the client gave up
}

// TurnedAway records such a call.
func (s *store) TurnedAway(t Turn, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Failure == "" {
		s.gaveUp[t.Kind]++
		return nil
	}
	s.breach(served, t.Kind, t.Client, fmt.Sprintf("client %d: %s", t.Client, t.Failure))
	return nil
}

// A Name is what a session's number belongs to.
type Name struct {
	Client  int
	Session int64
}

// Session records it.
func (s *store) Session(n Name, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[n.Session] = n.Client
	return nil
}

// A Stall is a time for which a process did not run: it was stopped, or the
// machine was busy with others.
type Stall struct {
	Process  int
	From, To time.Time
}

// Stalled records it.
func (s *store) Stalled(stall Stall, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalls = append(s.stalls, stall)
	return nil
}

// Left records goroutines that a process could not get rid of.
func (s *store) Left(t Turn, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breach(nothingRuns, t.Kind, t.Client, t.Failure)
	return nil
}

// breach records that a property was broken. The caller holds mu.
func (s *store) breach(property, kind, client int, detail string) {
	s.breaches = append(s.breaches, breach{property, kind, []int{client}, time.Now(), detail})
}
