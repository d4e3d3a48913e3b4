package storm

import (
	"slices"
	"sync"
	"time"
)

// A store has what the locks protect: a number for each, to which holders add one. It checks
// tokens, as a store should. It also keeps the records of the storm. The client processes call it
// on a connection that no fault affects.
type store struct {
	mu      sync.Mutex
	numbers []number // one for each of locks
	orphans []int    // znodes left behind, of each of locks
	turns   []Turn
	faults  []*happening
	hung    []int // locks of calls that did not return
}

func newStore() store {
	return store{numbers: make([]number, len(locks)), orphans: make([]int, len(locks))}
}

type number struct {
	value   int64
	token   int64 // the greatest so far
	refused int   // uses with a smaller one
	lost    int   // increments that another one has overwritten
	holder  *Use  // the use that began the present hold; nil: its holder has written
}

// A Use is one use of a number by a client that holds its lock.
type Use struct {
	Lock, Client int
	Server       string // to which the client is connected
	Token        int64  // 0: the lock has none
	Write        bool
	Base         int64 // to write: the number that was read
	IsLong       bool  // the hold will be long
}

// An Answer is the store's answer to a Use.
type Answer struct {
	Number  int64
	Refused bool
}

// Use gives a holder the number or, to write, sets it to one more than the holder has read.
func (s *store) Use(u Use, answer *Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.numbers[u.Lock]
	if u.Token > 0 && u.Token < n.token {
		n.refused++
		answer.Refused = true
		return nil
	}
	n.token = max(n.token, u.Token)
	n.holder = nil
	if u.Write {
		if n.value != u.Base {
			n.lost++
		}
		n.value = u.Base + 1
	} else {
		n.holder = &u
	}
	answer.Number = n.value
	return nil
}

// Note adds a turn to the records.
func (s *store) Note(t Turn, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, t)
	return nil
}

// holder returns the client that is in a long hold of the lock now, and its server.
func (s *store) holder(lock int) (client int, server string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.numbers[lock].holder
	if u == nil || !u.IsLong {
		return 0, "", false
	}
	return u.Client, u.Server, true
}

// orphan counts a znode that was left behind.
func (s *store) orphan(lock int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans[lock]++
}

// everybody stands for all clients: a fault of the servers affects them all.
const everybody = -1

// A happening is a fault that has begun.
type happening struct {
	what     string
	client   int
	from, to time.Time // to is zero while the fault lasts
}

// begin records that a fault begins, and end that it is over. ok is false if the client already has a fault.
func (s *store) begin(what string, client int) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client != everybody && s.befallen(client, false) {
		return nil, false
	}
	f := &happening{what: what, client: client, from: time.Now()}
	s.faults = append(s.faults, f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.to = time.Now()
	}, true
}

// Befallen reports to a client whether there is a fault, of its own or of the servers.
func (s *store) Befallen(client int, answer *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*answer = s.befallen(client, true)
	return nil
}

// befallen is like Befallen, for a caller that has mu.
func (s *store) befallen(client int, alsoByServers bool) bool {
	return slices.ContainsFunc(s.faults, func(f *happening) bool {
		isOthers := f.client == everybody && !alsoByServers
		return f.to.IsZero() && f.befalls(client) && !isOthers
	})
}

// befalls reports whether a fault is of this client, of its process, or of the servers.
func (f *happening) befalls(client int) bool {
	ofProcess := f.what == stopped && processOf(f.client) == processOf(client)
	return f.client == client || f.client == everybody || ofProcess
}

// faultAt returns the fault that affected a client at a time, or just before: the last one that began.
func (s *store) faultAt(client int, at time.Time) string {
	for _, f := range slices.Backward(s.faults) {
		isOver := !f.to.IsZero() && f.to.Add(sessionTimeout).Before(at)
		if f.befalls(client) && f.from.Before(at) && !isOver {
			return f.what
		}
	}
	return "no fault at that time"
}
