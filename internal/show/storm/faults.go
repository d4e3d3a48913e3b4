package main

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
)

// A faultKind is something that can happen. The conductor makes what befalls the
// servers, the client's process the rest. What has both is a fault of the servers
// with a witness: a client that holds its locks at one of them.
type faultKind struct {
	name      string
	reach     reach
	length    length
	rare      bool // every second time it is the first of its deck
	safeOnly  bool // only steps 5 and 6 have such a moment
	atServers func(context.Context, *fault, servers) error
	atClient  func(*moment)
}

// reach is whom a fault befalls.
type reach int

const (
	aLock    reach = iota // a client with one of its locks
	aClient               // with all of them
	aProcess              // all four clients of a process
	theServers
)

// length is how long a fault lasts, beside a session's time-out.
type length int

const (
	whatever length = iota
	shorter
	longer
)

// servers are the ensemble, by the roles of the moment.
type servers struct {
	*storm
	leader    *zkserver.Peer
	follower  *zkserver.Peer // one of
	followers []*zkserver.Peer
}

var serverDeck = []faultKind{
	{name: "leader killed", reach: theServers, atServers: func(ctx context.Context, f *fault, s servers) error {
		err := s.leader.Kill()
		time.Sleep(f.For)
		return errors.Join(err, s.leader.Restart(ctx))
	}},
	{name: "follower paused", reach: theServers, atServers: func(_ context.Context, f *fault, s servers) error {
		err := s.follower.Pause()
		time.Sleep(f.For)
		return errors.Join(err, s.follower.Resume())
	}},
	{name: "follower cut off from the others", reach: theServers, atServers: cutOff},
	{
		name:  "whole ensemble restarted",
		reach: theServers,
		rare:  true,
		atServers: func(ctx context.Context, _ *fault, s servers) error {
			return zkserver.StartAgain(ctx, s.ensemble.Members) // it keeps everybody from working for long
		},
	},
	{
		name:      "leader cut off, followers started again",
		reach:     theServers,
		length:    longer,
		safeOnly:  true,
		atServers: depose,
		atClient: func(m *moment) {
			m.witness(func() {})
		},
	},
	{
		name:      "leader stopped, and goes on",
		reach:     theServers,
		length:    longer,
		safeOnly:  true,
		atServers: stopLeader,
		atClient: func(m *moment) {
			m.witness(func() {})
		},
	},
	{name: "disks of two servers stalled", reach: theServers, atServers: stallTwoDisks},
	{
		name:      "a line stalled, then its follower cut off",
		reach:     theServers,
		length:    longer,
		safeOnly:  true,
		atServers: cutOff,
		atClient: func(m *moment) {
			m.witness(func() {
				question := func(t *wiretap.Tap) *wiretap.Trap { return t.HoldRequest(wiretap.Any, 1) }
				m.holding(question, func() { time.Sleep(m.For / 4) })
			})
		},
	},
}

func cutOff(_ context.Context, f *fault, s servers) error {
	s.callWitness(f, s.follower)
	s.follower.CutOff()
	time.Sleep(f.For)
	s.follower.Rejoin()
	return nil
}

// depose lets followers that the leader cannot reach elect another.
func depose(ctx context.Context, f *fault, s servers) error {
	s.callWitness(f, s.leader)
	s.leader.CutOff()
	err := zkserver.StartAgain(ctx, s.followers)
	time.Sleep(f.For)
	s.leader.Rejoin()
	_, _, deposed := s.ensemble.Roles(ctx) // there is one only when the old one knows
	return errors.Join(err, deposed)
}

// stopLeader: when the leader goes on, it has heard of nobody for more than a time-out.
func stopLeader(_ context.Context, f *fault, s servers) error {
	s.callWitness(f, s.leader)
	err := s.leader.Pause()
	time.Sleep(f.For)
	return errors.Join(err, s.leader.Resume())
}

// stallTwoDisks: two of three are a majority, and so no write is answered meanwhile.
func stallTwoDisks(_ context.Context, f *fault, s servers) error {
	for _, server := range []*zkserver.Peer{s.leader, s.follower} {
		goOn, err := stallDisk(server)
		if err != nil {
			return err
		}
		defer goOn()
	}
	time.Sleep(f.For)
	return nil
}

const (
	createReplyLost = "reply to create lost"
	resetAtSome     = "connection reset at some request" // when the moment of more did not come
)

var clientDeck = []faultKind{
	{name: "client cut off, for less than its time-out", reach: aClient, length: shorter, atClient: cut},
	{name: "client cut off, for more", reach: aClient, length: longer, atClient: cut},
	{name: "client's network silent, for less", reach: aClient, length: shorter, atClient: silence},
	{name: "client's network silent, for more", reach: aClient, length: longer, atClient: silence},
	{name: "process of a holder stopped, for less", reach: aProcess, length: shorter, atClient: stop},
	{name: "process of a holder stopped, for more", reach: aProcess, length: longer, atClient: stop},
	{name: "process stopped in a handshake, for less", reach: aProcess, length: shorter, atClient: stopInHandshake},
	{name: "process stopped in a handshake, for more", reach: aProcess, length: longer, atClient: stopInHandshake},
	{name: "a client's requests stalled, for less", length: shorter, atClient: stalled((*wiretap.Tap).HoldRequest)},
	{name: "a client's requests stalled, for more", length: longer, atClient: stalled((*wiretap.Tap).HoldRequest)},
	{name: "answers to a client stalled, for less", length: shorter, atClient: stalled((*wiretap.Tap).HoldReply)},
	{name: "answers to a client stalled, for more", length: longer, atClient: stalled((*wiretap.Tap).HoldReply)},
	{name: createReplyLost, atClient: frameLost((*wiretap.Tap).LoseReply, wiretap.Create)},
	{name: "reply to delete lost", atClient: frameLost((*wiretap.Tap).LoseReply, wiretap.Delete)},
	{name: "reply to create lost, then cut off for more", length: longer, atClient: lostThenCut(wiretap.Create)},
	{name: "reply to delete lost, then cut off for more", length: longer, atClient: lostThenCut(wiretap.Delete)},
	{name: "connection reset at create", atClient: frameLost((*wiretap.Tap).LoseRequest, wiretap.Create)},
	{name: "connection reset at delete", atClient: frameLost((*wiretap.Tap).LoseRequest, wiretap.Delete)},
	{name: "connection reset at getChildren", atClient: frameLost((*wiretap.Tap).LoseRequest, wiretap.GetChildren)},
	{name: "connection reset at getData", atClient: frameLost((*wiretap.Tap).LoseRequest, wiretap.GetData)},
	{
		name:     "connection reset at the search for a znode",
		safeOnly: true,
		atClient: func(m *moment) { // it begins with a write in vain
			m.both(createReplyLost, m.tap.LoseReply(wiretap.Create, 1), m.tap.LoseRequest(wiretap.Delete, 1))
		},
	},
	{name: "connection reset at ping", atClient: frameLost((*wiretap.Tap).LoseRequest, wiretap.Ping)},
	{name: "connection reset at setWatches", atClient: func(m *moment) { // what sends it is a reconnection
		m.both(resetAtSome, m.tap.LoseRequest(wiretap.Any, 1), m.tap.LoseRequest(wiretap.SetWatches, 1))
	}},
	{name: "connection reset at connect", atClient: func(m *moment) {
		m.both(resetAtSome, m.tap.LoseRequest(wiretap.Any, 1), m.tap.LoseReply(wiretap.Connect, 1))
	}},
}

func cut(m *moment)     { m.inHold(func() { m.disturb((*wiretap.Tap).Cut) }) }
func silence(m *moment) { m.inHold(func() { m.disturb((*wiretap.Tap).Silence) }) }
func stop(m *moment)    { m.inHold(func() { m.tell("Stop", m.For) }) }

// stalled keeps what is under way one way, and lets all of it arrive together later: unlike
// a silent line, which loses it.
func stalled(hold func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap) func(*moment) {
	return func(m *moment) {
		m.inHold(func() {
			next := func(t *wiretap.Tap) *wiretap.Trap { return hold(t, wiretap.Any, 1) }
			if !m.holding(next, func() { time.Sleep(m.For) }) {
				m.Was = "" // the client sent nothing that could have been held
			}
		})
	}
}

func stopInHandshake(m *moment) {
	m.inHold(func() {
		m.reset()
		answer := func(t *wiretap.Tap) *wiretap.Trap { return t.HoldReply(wiretap.Connect, 1) }
		if !m.holding(answer, func() { m.tell("Stop", m.For) }) {
			m.Was = resetAtSome
		}
	})
}

func frameLost(lose func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap, op wiretap.Op) func(*moment) {
	return func(m *moment) { m.sprung(lose(m.tap, op, 1)) }
}

func lostThenCut(op wiretap.Op) func(*moment) {
	return func(m *moment) {
		if m.sprung(m.tap.LoseReply(op, 1)) {
			m.disturb((*wiretap.Tap).Cut)
		}
	}
}

// An Order is a fault that is to happen.
type Order struct {
	What      string
	Reach     reach
	Number    int // of the fault
	Client    int
	Kind      int // which of the client's locks, if it matters
	For       time.Duration
	InHold    bool   // it comes when the client holds that lock next: see Both
	Both      bool   // a holder of step 5 waits for step 6, too, and the other way round: much depends on the moment
	Witnessed bool   // the servers' fault needs a client that holds its locks at one of them
	Server    string // that one
}

// An Outcome is what became of it.
type Outcome struct {
	Was      string // What or, if its moment did not come, what came instead; "": nothing did
	From, To time.Time
}

// list is the seed's list of faults out of a deck. It is shuffled like cards: each
// comes once before any comes twice.
func list(seed, stream uint64, deck []faultKind) iter.Seq[Order] {
	return func(yield func(Order) bool) {
		random := rand.New(rand.NewPCG(seed, stream))
		for {
			for _, card := range random.Perm(len(deck)) {
				o := Order{
					Client: random.IntN(clients),
					Kind:   []int{0, 1, 1, 2, 2, 3}[random.IntN(6)], // steps 5 and 6 have more to prove
					InHold: random.IntN(4) > 0,
				}
				span := time.Duration(random.Int64N(int64(sessionTimeout)))
				kind := deck[card]
				if kind.rare && random.IntN(2) == 0 {
					kind = deck[0]
				}
				o.What, o.Reach = kind.name, kind.reach
				switch kind.length {
				case whatever: // how long a server is away
					o.For = span
				case shorter:
					o.For = sessionTimeout/4 + span/2 // often longer than a lease that has just begun
				case longer:
					o.For = sessionTimeout*5/4 + span/2
				}
				if kind.safeOnly {
					o.Kind = 1 + o.Kind%2
				}
				o.Witnessed = kind.atServers != nil && kind.atClient != nil
				o.InHold = o.InHold || o.Witnessed
				isInTrustedHold := o.InHold && trusted(o.Kind)
				dependsOnMoment := o.Witnessed || kind.length == shorter
				o.Both = isInTrustedHold && dependsOnMoment
				if !yield(o) {
					return
				}
			}
		}
	}
}
