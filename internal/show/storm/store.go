package main

import (
	"maps"
	"sync"
	"time"
)

// The store is what the locks protect: for each, a number that holders add one
// to. It checks tokens as a store should, and keeps the record of the storm. The
// client processes reach it on a line that no fault touches.
type store struct {
	began time.Time

	mu       sync.Mutex
	numbers  []number // one for each of kinds
	breaches breaches
	Record
}

func newStore() *store {
	return &store{began: time.Now(), numbers: make([]number, len(kinds)), Record: Record{Sessions: map[int64]int{}}}
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
	Read         bool  // by one who lets others read meanwhile
	Token        int64 // 0: the lock has none
	Write        bool
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
	isTakenByAnother := a.Token == floor.token && a.Client != floor.client
	if isTakenByAnother || a.Token < floor.token {
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

// Use gives a holder the number or, to write, sets it to one more than the holder
// has read.
func (s *store) Use(a Access, v *Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.numbers[a.Kind]
	v.Refused = !n.admit(a)
	switch {
	case a.Write && !v.Refused:
		if n.value != a.Base {
			s.breaches.broken(
				noLostIncrement,
				a.Kind,
				[]int{a.Client},
				time.Now(),
				"client %d wrote over %d as if it were %d",
				a.Client,
				n.value,
				a.Base,
			)
		}
		n.value = a.Base + 1
	case !a.Write && n.last != a.Client:
		n.last = a.Client
		n.handOvers++
	}
	v.Number = n.value
	return nil
}

// A Record is what clients tell of themselves.
type Record struct {
	Turns    []Turn
	Stalls   []Stall
	Sessions map[int64]int // whose they are
}

// Note adds to the record.
func (s *store) Note(r Record, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Turns = append(s.Turns, r.Turns...)
	s.Stalls = append(s.Stalls, r.Stalls...)
	maps.Copy(s.Sessions, r.Sessions)
	return nil
}

// A Turn is one call for the lock and, if it came to that, the hold, as the client
// saw it.
type Turn struct {
	Kind, Client int
	Read         bool
	Waited       time.Duration
	From, Until  time.Time // at both moments it held the lock, for all it could know; zero: it never did
	Unlocked     time.Time // when it called Unlock
	Lived        bool      // its session lived on until then
	Wrote        bool
	Lost         bool      // it was told that it had lost the lock
	RefusedAlive time.Time // the store refused it while it held the lock for all it could know
	GaveUp       bool
	Failure      string // of a call to the lock
	At           time.Time
}

// held tells whether it came to a hold.
func (t Turn) held() bool { return !t.From.IsZero() }

// inside tells whether nobody else may have been let in at that time, for the
// session lived and the holder had not called Unlock. That the holder was told, or
// stopped, is no excuse.
func (t Turn) inside(at time.Time) bool { return t.Lived && at.Before(t.Unlocked) }

// A Stall is a time for which a process did not run: it was stopped, or the
// machine was busy with others.
type Stall struct {
	Process  int
	From, To time.Time
}
