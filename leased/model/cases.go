package model

import (
	"fmt"
	"slices"
)

// The rules. Each request is sent when the one before it is answered, unless the rule says otherwise.
var (
	threeWrites = Rule{
		name:     "three writes",
		lease:    90,
		requests: []request{{write, 0}, {write, wholeTick}, {write, 0}},
	}

	// Weaker rules.
	threePings = Rule{
		name:     "three pings, or reads",
		lease:    90,
		requests: []request{{ping, 0}, {ping, wholeTick}, {ping, 0}},
	}
	threeSyncs = Rule{
		name:     "three syncs",
		lease:    90,
		requests: []request{{sync, 0}, {sync, wholeTick}, {sync, 0}},
	}
	oldSession   = Rule{name: "the handshake of an old session", lease: 90, requests: []request{{handshake, 0}}}
	twoWrites    = Rule{name: "two writes", lease: 90, requests: []request{{write, 0}, {write, wholeTick}}}
	withoutSpace = Rule{
		name:     "three writes without a space",
		lease:    90,
		requests: []request{{write, 0}, {write, 0}, {write, 0}},
	}
	halfTickApart = Rule{
		name:     "three writes, half a tick between 1 and 2",
		lease:    90,
		requests: []request{{write, 0}, {write, halfTick}, {write, 0}},
	}
	sentApart = Rule{
		name:        "three writes, sent a tick apart",
		lease:       90,
		requests:    []request{{write, 0}, {write, wholeTick}, {write, wholeTick}},
		fromSending: true,
	}
	oneWrite = Rule{name: "one write", lease: 90, requests: []request{{write, 0}}}

	// Rules for a session that has held nothing.
	afterAPing = Rule{
		name:     "a ping, and one write a tick later",
		lease:    90,
		requests: []request{{ping, 0}, {write, wholeTick}},
	}
	soonAfterAPing = Rule{
		name:     "a ping, and one write at once",
		lease:    90,
		requests: []request{{ping, 0}, {write, 0}},
	}
	pingForWrite1 = Rule{
		name:     "a ping in place of write 1",
		lease:    90,
		requests: []request{{ping, 0}, {write, wholeTick}, {write, 0}},
	}

	aNewSession = Rule{
		name:     "the handshake of a new session",
		lease:    90,
		requests: []request{{newSession, 0}},
	}
	fiveWrites = Rule{
		name:     "five writes, a tick between 1 and 2, and between 3 and 4",
		lease:    90,
		requests: []request{{write, 0}, {write, wholeTick}, {write, 0}, {write, wholeTick}, {write, 0}},
	}
)

// The settings. Each other setting is one of these three, with an addition.
var (
	stalls = Setting{
		name:             "any line may stall",
		clock:            quarters,
		places:           []place{atFollower},
		clientLineStalls: true,
		serverLinesStall: true,
	}
	elections = Setting{
		name:             "elections; A reconnects to either leader",
		clock:            quarters,
		places:           []place{atLeader, atFollower},
		clientLineStalls: true,
		serverLinesStall: true,
		elections:        true,
		reconnects:       true,
	}
	idle = Setting{
		name:             "no line stalls, until A's server is partitioned",
		clock:            quarters,
		places:           []place{atFollower},
		followerIsCutOff: true,
		pingsEachThird:   true,
	}
)

// follower is the setting for a follower that is paused while no line stalls. Where lines stall, such a
// follower adds nothing new: messages to it wait in its line anyway.
var follower = Setting{
	name:             "the follower pauses, then is partitioned; no line stalls",
	clock:            quarters,
	places:           []place{atFollower},
	followerStands:   true,
	followerIsCutOff: true,
}

// with returns a setting with an addition.
func (s Setting) with(name string, more func(*Setting)) Setting {
	s.name = name
	more(&s)
	return s
}

// Case is a rule that is tried in a setting: one row of a table in README.md.
type Case struct {
	model
	holds bool
	told  bool // the page shows the order as a time line
	wide  bool // there are millions of states
}

func holds(r Rule, s Setting) Case  { return Case{model: model{r, s}, holds: true} }
func breaks(r Rule, s Setting) Case { return Case{model: model{r, s}} }

func (c Case) inFull() Case { c.told = true; return c }
func (c Case) asWide() Case { c.wide = true; return c }

// Cases are the rows of the tables.
var Cases = slices.Concat(theRule, weakerRules, afterIdleTime, notCovered)

// The rule of lease.go.
var theRule = []Case{
	holds(threeWrites, stalls),
	holds(threeWrites, stalls.with("A is connected to the leader", func(s *Setting) { s.places = []place{atLeader} })),
	holds(
		threeWrites,
		stalls.with(
			"A also sends other requests, at any time",
			func(s *Setting) { s.places, s.sendsOthers = elections.places, true },
		),
	),
	holds(
		threeWrites,
		stalls.with("A's connection breaks; A reconnects to another server", func(s *Setting) { s.reconnects = true }),
	),
	holds(threeWrites, elections),
	holds(threeWrites, follower),
	holds(
		threeWrites,
		stalls.with(
			"the leader is paused, and then asks before it answers",
			func(s *Setting) { s.leaderStandsAndAsks = true },
		),
	),
	holds(
		threeWrites,
		elections.with("all of these at once", func(s *Setting) { s.sendsOthers, s.leaderStandsAndAsks = true, true }),
	).asWide(),
	holds(
		threeWrites,
		elections.with(
			"elections; A reconnects to either leader",
			func(s *Setting) { s.clock = eighths },
		),
	).asWide(),
	holds(aNewSession, elections),
}

// Rules that require less than the rule.
var weakerRules = []Case{
	breaks(threePings, stalls).inFull(),
	breaks(
		threeSyncs,
		elections.with("elections; A is connected to the leader", func(s *Setting) { s.places = []place{atLeader} }),
	),
	breaks(oldSession, elections).inFull(),
	breaks(oneWrite, stalls).inFull(),
	breaks(twoWrites, stalls).inFull(),
	breaks(withoutSpace, stalls),
	breaks(halfTickApart, stalls).inFull(),
	breaks(sentApart, stalls).inFull(),
}

// What a session that has held nothing, and so has made no writes, can rely on.
var afterIdleTime = []Case{
	breaks(oneWrite, idle),
	breaks(afterAPing, follower),
	breaks(soonAfterAPing, idle.with("A's line also stalls", anyPing)),
	holds(afterAPing, idle.with("A's line also stalls, and elections", func(s *Setting) {
		anyPing(s)
		s.places = elections.places
		s.elections, s.reconnects = true, true
	})),
	breaks(afterAPing, stalls).inFull(),
	holds(pingForWrite1, elections),
}

// anyPing lets A's line stall, and lets the rule count on a ping that is sent at any time.
func anyPing(s *Setting) {
	s.clientLineStalls = true
	s.pingsEachThird = false
}

// Cases that the rule does not cover.
var notCovered = []Case{
	breaks(threeWrites, stalls.with("A is paused", func(s *Setting) { s.clientStands = true })),
	breaks(threeWrites, stalls.with("the timeout is four ticks", func(s *Setting) {
		s.clock = eighths
		s.clock.timeout = 4 * s.clock.tick
	})),
	breaks(
		threeWrites,
		stalls.with("another server grants half the timeout", func(s *Setting) { s.grantsHalf = true }),
	),
	breaks(
		threeWrites,
		stalls.with(
			"the leader asks a whole tick after the last time",
			func(s *Setting) { s.clock.longestGap = s.clock.tick },
		),
	),
	breaks(
		threeWrites,
		stalls.with(
			"the leader is paused, and then answers before it asks",
			func(s *Setting) { s.leaderStands = true },
		),
	).inFull(),
	breaks(threeWrites, stalls.with("A is connected to an observer behind a follower", behindAFollower)),
	holds(fiveWrites, stalls.with("A is connected to an observer behind a follower", behindAFollower)),
	breaks(
		threeWrites,
		stalls.with("the follower forgets A", func(s *Setting) { s.followerForgets = true }),
	),
	breaks(
		threeWrites,
		stalls.with(
			"the leader ends A's session in two steps",
			func(s *Setting) { s.leaderEndsInSteps = true },
		),
	),
}

// behindAFollower has so many states that it needs a longer unit.
func behindAFollower(s *Setting) {
	s.places = []place{atObserver}
	s.clock = halves
}

// Row returns the row of the table: the number of states, and for how long there are two holders.
func (c Case) Row(r Result) string {
	verdict := "✓"
	if r.Order != nil {
		verdict = "✗ " + c.partOfTimeout(r.Worst)
	}
	return fmt.Sprintf("%s %s | %s |", c.title(), withCommas(r.States), verdict)
}

// title returns the beginning of the row. The unit of time is ¼ tick, unless it says otherwise.
func (c Case) title() string {
	setting := c.Setting.name
	if c.clock.unit != quarters.unit {
		setting += "; units of " + c.clock.unit
	}
	return fmt.Sprintf("| %s | %s |", c.Rule.name, setting)
}

// withCommas writes 1234567 as 1,234,567.
func withCommas(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", withCommas(n/1000), n%1000)
}
