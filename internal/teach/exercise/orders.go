package exercise

import (
	"fmt"
	"testing"

	"zklock/internal/check/explore"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

// everyOrder is the subtest that comes last.
const everyOrder = "every order"

// hasLast tells whether something is asked when all properties hold. The orders of a lock
// whose waiters ask from time to time cannot be played. So the first two exercises leave this
// out, and those after the steps, which are no locks.
func (e Exercise) hasLast() bool { return e.IsStep() && e.Name != "1" && e.Name != "2" }

// last asks for what takes long, when all properties hold that were asked now.
//
// Is there an order of two clients' requests, or a place for a fault, in which the lock is
// wrong? A property is a situation that somebody has thought of. This looks for one that
// nobody has thought of.
//
// Meanwhile somebody waits for a long time.
func (c *check) last() {
	allHold := c.exercise.Missing(c.record) == nil || namesAProperty()
	if !c.exercise.hasLast() || !allHold || c.Failed() || askedAgain() {
		return
	}
	long := c.inBackground(property.SilentForLong)
	if c.exercise.Missing(c.record) == nil && wanted(everyOrder) {
		say(c.T, "All properties hold. Now the orders in which the requests of two clients can come …")
	}
	c.orders()
	c.Run(property.SilentForLong.Name.EN, func(t *testing.T) {
		r := <-long
		if !r.Verdict.Accepted() {
			t.Fail()
			told(t.Output(), r.Evidence, question(r.Property, r.Evidence))
			return
		}
		say(t, "%s", r.Evidence)
	})
}

// inBackground asks for a property, if -run leaves it in.
func (c *check) inBackground(p *property.Property) <-chan property.Result {
	result := make(chan property.Result, 1)
	if wanted(p.Name.EN) {
		go func() { result <- property.Check(c.server, c.subjects[0], p, patience) }()
	}
	return result
}

// orders plays the orders of two clients' requests, and tells of the first that is wrong.
func (c *check) orders() {
	c.Run(everyOrder, func(t *testing.T) {
		root := zktest.NewOn(t, c.server).Root
		found, err := explore.Mine(t.Context(), c.server.Servers(), root, c.exercise.Name, "")
		switch {
		case err != nil:
			say(t, "the orders could not be played: %v", err)
			t.Fail()
		case found.Wrong != "":
			say(t, "seen: after %d orders one in which %s:", found.Orders, found.Wrong)
			for _, line := range found.Story {
				fmt.Fprintln(t.Output(), line)
			}
			say(t, "make explore STEP=mine plays more of them, and draws this one.")
			t.Fail()
		case !found.All:
			say(t, "%d orders, and none is wrong; there was no time for the others", found.Orders)
		default:
			say(t, "%d orders, and none is wrong", found.Orders)
		}
	})
}
