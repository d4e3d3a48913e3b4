package main

import (
	"iter"
	"math/rand/v2"
	"time"

	"zklock/internal/wiretap"
)

// What can happen. Those up to serverFaults befall the servers, the others one
// client's network, one connection of it, or one client process.
const (
	leaderKilled = iota
	followerPaused
	followerCutOff
	ensembleRestarted
	leaderDeposed     // by followers that it cannot reach, and that start again
	stalledThenCutOff // a client, then its server
	serverFaults      // how many there are

	cutBriefly
	cutForLong
	silentBriefly
	silentForLong
	stoppedBriefly
	stoppedForLong
	stoppedInHandshakeBriefly
	stoppedInHandshakeForLong
	createReplyLost
	deleteReplyLost
	createReplyLostThenCut
	deleteReplyLostThenCut
	resetAtCreate
	resetAtDelete
	resetAtList
	resetAtWatch
	resetAtSearch
	resetAtPing
	resetAtSetWatches
	resetAtConnect
	resetAtAny // what the two before, and those in a handshake, are if their moment did not come
	allFaults

	finish // not a fault: the orders to come to rest, and to leave
	leave
)

var faultNames = [allFaults]string{
	leaderKilled:              "leader killed",
	followerPaused:            "follower paused",
	followerCutOff:            "follower cut off from the others",
	ensembleRestarted:         "whole ensemble restarted",
	leaderDeposed:             "leader cut off, followers started again",
	stalledThenCutOff:         "a line stalled, then its follower cut off",
	cutBriefly:                "client cut off, for less than its time-out",
	cutForLong:                "client cut off, for more",
	silentBriefly:             "client's network silent, for less",
	silentForLong:             "client's network silent, for more",
	stoppedBriefly:            "process of a holder stopped, for less",
	stoppedForLong:            "process of a holder stopped, for more",
	stoppedInHandshakeBriefly: "process stopped in a handshake, for less",
	stoppedInHandshakeForLong: "process stopped in a handshake, for more",
	createReplyLost:           "reply to create lost",
	deleteReplyLost:           "reply to delete lost",
	createReplyLostThenCut:    "reply to create lost, then cut off for more",
	deleteReplyLostThenCut:    "reply to delete lost, then cut off for more",
	resetAtCreate:             "connection reset at create",
	resetAtDelete:             "connection reset at delete",
	resetAtList:               "connection reset at getChildren",
	resetAtWatch:              "connection reset at getData",
	resetAtSearch:             "connection reset at the search for a znode",
	resetAtPing:               "connection reset at ping",
	resetAtSetWatches:         "connection reset at setWatches",
	resetAtConnect:            "connection reset at connect",
	resetAtAny:                "connection reset at some request",
}

// An Order is a fault for a client's process, or finish or leave.
type Order struct {
	Number int // of the fault
	What   int
	Client int
	Kind   int // which of the client's locks, if it matters
	For    time.Duration
	InHold bool   // it comes when the client holds that lock next: see locks
	Server string // that the client is to be connected to; "": any
}

// locks are those of the client that it holds meanwhile, or whose connection the
// fault is about. Where much depends on the moment, a holder of step 5 waits for
// step 6, too, and the other way round.
func (o Order) locks() []int {
	switch o.What {
	case leaderDeposed, stalledThenCutOff, cutBriefly, silentBriefly, stoppedBriefly, stoppedInHandshakeBriefly:
		if o.InHold && trusted(o.Kind) {
			return []int{o.Kind, 3 - o.Kind}
		}
	}
	return []int{o.Kind}
}

// witnessed tells whether a fault of the servers needs a client that holds its
// locks at one of them.
func (o Order) witnessed() bool { return o.What == leaderDeposed || o.What == stalledThenCutOff }

// list is the seed's list of faults between two numbers of those above. It is
// shuffled like cards: each comes once before any comes twice.
func list(seed uint64, from, to int) iter.Seq[Order] {
	return func(yield func(Order) bool) {
		random := rand.New(rand.NewPCG(seed, uint64(from)))
		for {
			for _, card := range random.Perm(to - from) {
				o := Order{
					What: from + card, Client: random.IntN(clients),
					Kind:   []int{0, 1, 1, 2, 2, 3}[random.IntN(6)], // steps 5 and 6 have more to prove
					InHold: random.IntN(4) > 0,
				}
				span := time.Duration(random.Int64N(int64(sessionTimeout)))
				if o.What == ensembleRestarted && random.IntN(2) == 0 { // it keeps everybody from working for long
					o.What = leaderKilled
				}
				switch o.What {
				case cutBriefly, silentBriefly, stoppedBriefly, stoppedInHandshakeBriefly:
					o.For = sessionTimeout/4 + span/2 // often longer than a lease that has just begun
				case cutForLong, silentForLong, stoppedForLong, stoppedInHandshakeForLong, createReplyLostThenCut, deleteReplyLostThenCut, leaderDeposed, stalledThenCutOff:
					o.For = sessionTimeout*5/4 + span/2
				default: // how long a server is away
					o.For = span
				}
				switch o.What {
				case leaderDeposed, stalledThenCutOff:
					o.InHold = true
					fallthrough
				case resetAtSearch: // steps 5 and 6 alone do
					o.Kind = 1 + o.Kind%2
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

// patience is how long a fault waits for its moment.
const patience = 4 * time.Second

// An Outcome is what became of an order.
type Outcome struct {
	Number   int
	What     int
	Happened bool // its moment came
	From, To time.Time
}

// fault carries out an order, and tells what became of it.
func (w *worker) fault(o Order) {
	l := w.lines[[2]int{o.Client, o.Kind}]
	result := Outcome{Number: o.Number, What: o.What}
	begun := func() {
		if !result.Happened {
			result.Happened, result.From = true, time.Now()
		}
	}
	cut := func(how func(*wiretap.Tap)) {
		for k := range kinds {
			how(w.lines[[2]int{o.Client, k}].tap)
		}
		time.Sleep(o.For)
		for k := range kinds {
			w.lines[[2]int{o.Client, k}].tap.Restore()
		}
	}
	var lines []*line
	for _, k := range o.locks() {
		lines = append(lines, w.lines[[2]int{o.Client, k}])
	}
	// inHold lets do happen when the client holds the locks, if that matters. The
	// first must do if the second does not come soon, for it blocks all others.
	inHold := func(do func()) {
		over := make(chan struct{})
		defer close(over)
		if o.InHold {
			wait := patience
			for i, l := range lines {
				select {
				case l.inHold <- over:
				case <-time.After(wait):
					if lines = lines[:i]; i == 0 {
						return
					}
				}
				wait = sessionTimeout / 2
			}
		}
		begun()
		do()
	}
	// sprung waits for a trap's frame.
	sprung := func(t *wiretap.Trap) bool {
		select {
		case <-t.Sprung():
			begun()
			return true
		case <-time.After(patience):
			l.tap.Restore()
			return false
		}
	}
	// both waits for a first fault that brings about the moment of a second.
	both := func(first int, bringsAbout, then *wiretap.Trap) {
		if sprung(bringsAbout) && !sprung(then) {
			result.What = first
		}
	}

	switch o.What {
	case cutBriefly, cutForLong:
		inHold(func() { cut((*wiretap.Tap).Cut) })
	case silentBriefly, silentForLong:
		inHold(func() { cut((*wiretap.Tap).Silence) })
	case stoppedBriefly, stoppedForLong:
		inHold(func() { w.tell("Stop", Stop{w.process, o.For}) })
	case stoppedInHandshakeBriefly, stoppedInHandshakeForLong:
		inHold(func() {
			reset(lines)
			answer := func(t *wiretap.Tap) *wiretap.Trap { return t.HoldReply(wiretap.Connect, 1) }
			if !holding(lines, answer, func() { w.tell("Stop", Stop{w.process, o.For}) }) {
				result.What = resetAtAny
			}
		})
	case leaderDeposed, stalledThenCutOff: // the conductor's, which tells what became of it
		for _, l := range lines {
			l.server.Store(o.Server)
			defer l.server.Store("")
		}
		reset(lines)
		inHold(func() {
			if o.What == stalledThenCutOff {
				question := func(t *wiretap.Tap) *wiretap.Trap { return t.HoldRequest(wiretap.Any, 1) }
				holding(lines, question, func() { time.Sleep(o.For / 4) })
			}
			w.tell("Witness", o.Number) // comes back when the fault is over
		})
		return
	case createReplyLost:
		sprung(l.tap.LoseReply(wiretap.Create, 1))
	case deleteReplyLost:
		sprung(l.tap.LoseReply(wiretap.Delete, 1))
	case createReplyLostThenCut, deleteReplyLostThenCut:
		op := wiretap.Create
		if o.What == deleteReplyLostThenCut {
			op = wiretap.Delete
		}
		if sprung(l.tap.LoseReply(op, 1)) {
			cut((*wiretap.Tap).Cut)
		}
	case resetAtCreate:
		sprung(l.tap.LoseRequest(wiretap.Create, 1))
	case resetAtDelete:
		sprung(l.tap.LoseRequest(wiretap.Delete, 1))
	case resetAtList:
		sprung(l.tap.LoseRequest(wiretap.GetChildren, 1))
	case resetAtWatch:
		sprung(l.tap.LoseRequest(wiretap.GetData, 1))
	case resetAtPing:
		sprung(l.tap.LoseRequest(wiretap.Ping, 1))
	case resetAtSearch: // which begins with a write in vain
		both(createReplyLost, l.tap.LoseReply(wiretap.Create, 1), l.tap.LoseRequest(wiretap.Delete, 1))
	case resetAtSetWatches: // what sends it is a reconnection
		both(resetAtAny, l.tap.LoseRequest(wiretap.Any, 1), l.tap.LoseRequest(wiretap.SetWatches, 1))
	case resetAtConnect:
		both(resetAtAny, l.tap.LoseRequest(wiretap.Any, 1), l.tap.LoseReply(wiretap.Connect, 1))
	}
	if result.Happened {
		result.To = time.Now()
	}
	w.tell("Happened", result)
}

// reset closes connections. The lines are up: a client that is refused would rest
// for a second.
func reset(lines []*line) {
	for _, l := range lines {
		l.tap.HangUp()
	}
}

// holding lets do happen when the next frame of a kind is on hold on all lines, and
// then lets these go on.
func holding(lines []*line, next func(*wiretap.Tap) *wiretap.Trap, do func()) (all bool) {
	var traps []*wiretap.Trap
	for _, l := range lines {
		traps = append(traps, next(l.tap))
		defer l.tap.Restore()
	}
	late := time.After(patience)
	for _, trap := range traps {
		select {
		case <-trap.Sprung():
		case <-late:
			return false
		}
	}
	do()
	return true
}
