package zktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"zklock/internal/wiretap"
)

// Patience is how long a test waits while nothing moves. It counts from the last movement, and not
// from the start of the test: on a slow machine a test takes longer, but is not stuck.
const Patience = time.Minute

// tooLong is how many patiences a test may take if its requests never stop.
const tooLong = 5

// looks is how often a clock checks within its patience whether something has moved.
const looks = 20

// A clock ends the context of a Zoo when nothing moves any more, or
// when the test has taken too long. It counts its looks, and not the
// time between them: while the machine pauses, the clock also pauses.
type clock struct {
	mu       sync.Mutex
	patience time.Duration
	lines    []Line
	turns    int // calls that have returned, and what else has Moved
	asking   int // calls of Soon under way, which count themselves how long nothing has moved
}

// A Line is a client's name and its tap.
type Line struct {
	Name string
	Tap  *wiretap.Tap
}

// Lines returns the lines of the clients so far, in the order in which they connected.
func (z *Zoo) Lines() []Line {
	z.clock.mu.Lock()
	defer z.clock.mu.Unlock()
	return slices.Clone(z.clock.lines)
}

// run looks until the context has ended.
func (c *clock) run(ctx context.Context, end context.CancelCauseFunc) {
	hasMoved := c.movement()
	var patience time.Duration
	still := 0 // looks in a row that have seen no movement
	for range tooLong * looks {
		c.mu.Lock()
		patience = c.patience
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience / looks):
		}
		if still++; hasMoved() || c.isAsked() {
			still = 0
		}
		if still == looks {
			end(fmt.Errorf("there was no progress for %v", patience))
			return
		}
	}
	end(fmt.Errorf("the clients kept sending requests for %v", tooLong*patience))
}

// movement returns a function that reports whether something has moved since its last call: a call
// has returned, or a frame has passed on a client's connection. A ping is no movement. Neither is a
// request that a polling client repeats.
func (c *clock) movement() (hasMoved func() bool) {
	turns := 0
	passed := map[*wiretap.Tap]int{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		moved := c.turns > turns
		turns = c.turns
		for _, line := range c.lines {
			n := line.Tap.Passed()
			_, polls := line.Tap.Waiting(0)
			if n > passed[line.Tap] && !polls {
				moved = true
			}
			passed[line.Tap] = n
		}
		return moved
	}
}

// isAsked reports whether a call of Soon is under way.
func (c *clock) isAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking > 0
}

// asks notes that a call of Soon begins, or, with -1, ends.
func (c *clock) asks(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking += n
}

func (c *clock) watch(name string, tap *wiretap.Tap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, Line{name, tap})
}

// forget makes the clock ignore the clients so far.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = nil
}

// Moved notes a movement that no connection shows, such as a turn of a goroutine.
func (z *Zoo) Moved() {
	z.clock.mu.Lock()
	defer z.clock.mu.Unlock()
	z.clock.turns++
}

// Bound ends the Zoo's context when another one ends, and gives it another patience.
func (z *Zoo) Bound(ctx context.Context, patience time.Duration) {
	context.AfterFunc(ctx, func() { z.end(context.Cause(ctx)) })
	z.clock.mu.Lock()
	defer z.clock.mu.Unlock()
	z.clock.patience = patience
}

// How often Soon asks the server while it waits, and how long it pauses between two looks.
const (
	enoughAnswers = 300
	mostTimes     = 5 // times as many answers are enough if something moves all the time
	rest          = 2 * time.Millisecond
	restsToAsk    = 10 // between two questions to the server
)

// Soon reports whether something happens. It distinguishes "not yet" from "no more": it is "no
// more" if nothing has moved while the server has answered the observer some hundred times. On a
// slow machine that takes longer. If the Zoo's context ends meanwhile, there is no answer, and the
// test fails.
func (z *Zoo) Soon(happens func() bool) bool {
	z.t.Helper()
	return z.SoonAfter(enoughAnswers, happens)
}

// SoonAfter is Soon with another number of answers: on a quiet machine 50 take a second.
func (z *Zoo) SoonAfter(enough int, happens func() bool) bool {
	z.t.Helper()
	z.clock.asks(1)
	defer z.clock.asks(-1)
	hasMoved := z.clock.movement()
	answers, still := 0, 0 // of the server: in all, and since the last movement
	for still < enough && answers < mostTimes*enough {
		for range restsToAsk {
			if happens() {
				return true
			}
			time.Sleep(rest)
		}
		if z.Ctx.Err() != nil {
			z.t.Fatalf("the check ended before its result was known: %v", context.Cause(z.Ctx))
		}
		if _, _, err := z.eye.Exists("/"); err == nil {
			answers++
			still++
		}
		if hasMoved() {
			still = 0
		}
	}
	return happens()
}
