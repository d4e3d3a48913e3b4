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
	serverFaults // how many there are

	cutBriefly
	cutForLong
	silentBriefly
	silentForLong
	stoppedBriefly
	stoppedForLong
	createReplyLost
	deleteReplyLost
	createReplyLostThenCut
	deleteReplyLostThenCut
	resetAtCreate
	resetAtDelete
	resetAtList
	resetAtWatch
	resetAtSync
	resetAtPing
	resetAtSetWatches
	resetAtConnect
	resetAtAny // what the two before are if their moment did not come
	allFaults

	finish // not a fault: the orders to come to rest, and to leave
	leave
)

var faultNames = [allFaults]string{
	leaderKilled:           "leader killed",
	followerPaused:         "follower paused",
	followerCutOff:         "follower cut off from the others",
	ensembleRestarted:      "whole ensemble restarted",
	cutBriefly:             "client cut off, for less than its time-out",
	cutForLong:             "client cut off, for more",
	silentBriefly:          "client's network silent, for less",
	silentForLong:          "client's network silent, for more",
	stoppedBriefly:         "process of a holder stopped, for less",
	stoppedForLong:         "process of a holder stopped, for more",
	createReplyLost:        "reply to create lost",
	deleteReplyLost:        "reply to delete lost",
	createReplyLostThenCut: "reply to create lost, then cut off for more",
	deleteReplyLostThenCut: "reply to delete lost, then cut off for more",
	resetAtCreate:          "connection reset at create",
	resetAtDelete:          "connection reset at delete",
	resetAtList:            "connection reset at getChildren",
	resetAtWatch:           "connection reset at getData",
	resetAtSync:            "connection reset at sync",
	resetAtPing:            "connection reset at ping",
	resetAtSetWatches:      "connection reset at setWatches",
	resetAtConnect:         "connection reset at connect",
	resetAtAny:             "connection reset at some request",
}

// An Order is a fault for a client's process, or finish or leave.
type Order struct {
	Number int // of the fault
	What   int
	Client int
	Kind   int // which of the client's locks, if it matters
	For    time.Duration
	InHold bool // it comes when the client holds that lock next
}

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
				case resetAtSync: // steps 5 and 6 alone send one
					o.Kind = 1 + o.Kind%2
				case cutBriefly, silentBriefly, stoppedBriefly:
					o.For = span / 2
				case cutForLong, silentForLong, stoppedForLong, createReplyLostThenCut, deleteReplyLostThenCut:
					o.For = sessionTimeout*5/4 + span/2
				default: // how long a server is away
					o.For = span
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
	// inHold lets do happen when the client holds the lock, if that matters.
	inHold := func(do func()) {
		over := make(chan struct{})
		whenHeld := func() <-chan struct{} {
			begun()
			go func() { defer close(over); do() }()
			return over
		}
		if !o.InHold {
			<-whenHeld()
			return
		}
		select {
		case l.inHold <- whenHeld:
			<-over
		case <-time.After(patience):
		}
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
	case resetAtSync: // what sends one is the search for a lost znode
		both(createReplyLost, l.tap.LoseReply(wiretap.Create, 1), l.tap.LoseRequest(wiretap.Sync, 1))
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
