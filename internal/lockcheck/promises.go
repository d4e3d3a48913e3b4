package lockcheck

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Promises are what every step keeps from the first one on.
var Promises = []*Property{ParentsMade, ManyShare, WhateverIsInIt, LostWhileWaiting}

// The promises, and one that only a lock with watches can keep.
var (
	ParentsMade = &Property{
		Name: "missing parents are made",
		Why:  "somebody would have to prepare the server for each new lock",
		Hint: "the create is answered with NoNode: what is missing, and who else may be making it?",
		tell: tellParentsMade,
	}
	ManyShare = &Property{
		Name: "many goroutines share one lock",
		Why:  "two goroutines that use one lock would be inside together",
		Hint: "which of the lock's fields do two callers at once read and write?",
		tell: tellManyShare,
	}
	WhateverIsInIt = &Property{
		Name: "a znode is deleted whatever is in it",
		Why:  "a note that somebody wrote into a znode would keep it for ever",
		Hint: "which version does the delete ask for?",
		tell: tellWhateverIsInIt,
	}
	LostWhileWaiting = &Property{
		Name: "a waiter whose session expires says so or queues again",
		Why:  "its znode and its watch are gone, and it would wait for ever",
		Hint: "the session has ended: what wakes the waiter now?",
		tell: tellLostWhileWaiting,
	}
	ReleasedWhileCutOff = &Property{
		Name: "a release is not missed while the line is down",
		Why:  "the waiter would wait for a notification that was sent to nobody",
		Hint: "who sets the watch again on the new connection, and what if its znode has gone meanwhile?",
		tell: tellReleasedWhileCutOff,
	}
)

// A finds that the lock's parents are missing. Before A can make the second of
// them, B has made it, and holds the lock.
func tellParentsMade(s *story) {
	s.path = s.Root + "/shop/locks/orders"
	a, b := s.join("A"), s.join("B")
	slow := a.Tap.HoldRequest(wiretap.Create, 2)
	second := a.Start()
	zktest.AwaitChan(s.Zoo, "A to make a parent", slow.Sprung())
	first := b.Acquire()
	slow.Let()
	s.mustWait(second, second.Waits(), "made the lock's parents together with B")
	first.Release()
	second.Release()
	if names := s.Names(s.Root + "/shop"); len(names) != 1 || names[0] != "locks" {
		s.fails("the lock is /shop/locks/orders, and below /shop stands %v", names)
	}
	s.holds("two made the parents of /shop/locks/orders at once, and were let in one after the other")
}

// Eight goroutines take turns with one lock.
func tellManyShare(s *story) {
	const goroutines, rounds = 8, 5
	a := s.join("A")
	var inside, together atomic.Int32
	var all []*zktest.Turn
	for range goroutines {
		all = append(all, s.Go(a.Client, func(ctx context.Context) error {
			for range rounds {
				held, err := a.Lock(ctx)
				if err != nil {
					return err
				}
				if inside.Add(1) > 1 {
					together.Add(1)
				}
				inside.Add(-1)
				if err := a.Unlock(held); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, turns := range all {
		turns.Acquired()
	}
	if n := together.Load(); n > 0 {
		s.fails("%d goroutines had %d turns each with one lock, and %d times there were two inside", goroutines, rounds, n)
	}
	s.holds("%d goroutines had %d turns each with one lock, and never were there two inside", goroutines, rounds)
}

// A holds, B waits, and somebody writes into their znodes. B gives up, A releases.
func tellWhateverIsInIt(s *story) {
	a, b := s.join("A"), s.join("B")
	held := a.Acquire()
	waiting := s.queue(b)[0]
	written := append(s.left(a), s.left(b)...)
	for _, znode := range written {
		if _, err := s.Observer().Set(znode, []byte("a note"), -1); err != nil {
			s.Fatalf("write into %s: %v", znode, err)
		}
	}
	waiting.StillWaits() // it has looked again
	if err := waiting.Cancel(); !errors.Is(err, context.Canceled) {
		s.fails("somebody wrote into the znodes; B gave up, and its Lock answered: %v", err)
	}
	if err := a.Unlock(held.Held()); err != nil {
		s.fails("somebody wrote into the znodes, and A's Unlock answered: %v", err)
	}
	for _, znode := range written {
		s.gone(znode, "somebody wrote into it")
	}
	s.holds("somebody wrote into %v; one gave up, one released, and nothing was left", written)
}

// gone fails the story if a znode stays.
func (s *story) gone(znode, why string) {
	s.Await(znode+" to be gone, though "+why, func() bool {
		_, there := s.Owner(znode)
		return !there
	})
}

// A holds, B waits, and B's session expires.
func tellLostWhileWaiting(s *story) {
	a, b := s.join("A"), s.joinMortal("B")
	held := a.Acquire()
	waiting := s.queue(b)[0]
	told := zk.ErrSessionExpired
	if waiting.Waits() == zktest.Polling {
		told = zk.ErrConnectionClosed
	}
	b.Crash()
	s.AwaitExpiry(b.Client)
	b.Tap.Restore()
	if b.Token == nil { // it knows no other session than the one it had
		if err := waiting.Err(); !errors.Is(err, told) {
			s.fails("B's session expired while it waited, and its Lock answered: %v", err)
		}
		if left := s.left(b); len(left) > 0 {
			s.fails("B's session expired while it waited, B was told, and left %v", left)
		}
		s.holds("B's session expired while it waited: its Lock answered %q, and nothing was left", waiting.Err())
	}
	s.Await("B to queue again", func() bool { return len(b.Queue()) == 2 || waiting.Returned() })
	s.mustWait(waiting, waiting.StillWaits(), "lost its session")
	held.Release()
	waiting.Acquired()
	if owner, _ := s.Owner(b.Znode()); owner != b.SessionID() || owner == b.ID {
		s.fails("B lost session %#x while it waited, and holds the lock by a znode of session %#x", b.ID, owner)
	}
	s.holds("B's session expired while it waited, and B was served under its new one")
}

// A holds, B waits and is cut off, and A releases. B's session lives on.
func tellReleasedWhileCutOff(s *story) {
	a, b := s.join("A"), s.join("B")
	held := a.Acquire()
	waiting := s.queue(b)[0]
	s.needsWatches([]*zktest.Turn{waiting})
	b.Tap.Cut()
	held.Release()
	b.Tap.Restore()
	waiting.Acquired()
	if id := b.SessionID(); id != b.ID {
		s.fails("B was let in, with session %#x in place of %#x", id, b.ID)
	}
	s.holds("A released while B's line was down, and B was let in when it was back")
}
