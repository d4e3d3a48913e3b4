package exercise

import (
	"context"
	"fmt"
	"testing"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

const (
	// soon is how long one call has that need not wait for anybody.
	soon = 4 * time.Second

	// look is how long B waits for sure. One that polls rests between two requests: it
	// does not ask so often without a rest.
	look    = 500 * time.Millisecond
	tooMany = 50
)

// canBeUsed is the subtest that comes first.
const canBeUsed = "it can be locked and unlocked"

// canBeUsed asks for what every lock can do, so that one that hangs is told so soon.
func (c *check) canBeUsed() bool {
	if !wanted(canBeUsed) {
		return true
	}
	return c.Run(canBeUsed, func(t *testing.T) {
		inJournal(begins, canBeUsed)
		defer inJournal(ends, canBeUsed)
		calls := &calls{}
		var seen string
		var ask string
		err := zktest.PlayWithin(4*soon, func(story zktest.T) {
			seen, ask = c.use(zktest.NewOn(story, c.server), calls.of(c.subjects[0]))
		})
		if said := calls.panicked(); said != ("") {
			seen, ask = said, question(nil, said)
		} else if err != nil {
			seen = err.Error()
		}
		if seen == ("") {
			return
		}
		t.Fail()
		told(t.Output(), seen, ask)
	})
}

// use lets A lock, B come, and A unlock. It returns what went wrong, and a question.
func (c *check) use(zoo *zktest.Zoo, subject property.Subject) (seen string, ask string) {
	a, b := subject.Join(zoo, "A"), subject.Join(zoo, "B")
	first := a.Start()
	if !within(soon, first.Returned) {
		return fmt.Sprintf("nobody held the lock, A called Lock, and it has not come back in %v; A sent %d requests",
				soon, requests(a.Tap.Frames())),
			"what does Lock wait for, when nobody else is there?"
	}
	if err := first.Err(); err != nil {
		return fmt.Sprintf("nobody held the lock, and A's Lock answered: %v",
			err), "what does this error mean?"
	}
	mark := b.Tap.Mark()
	second := b.Start()
	spinning := func() bool { return restless(b.Tap.Since(mark)) > tooMany }
	within(look, func() bool { return second.Returned() || spinning() })
	if spinning() {
		return fmt.Sprintf(
				"A held the lock, and B sent more than %d requests in %v, without a rest between them: it does not sleep",
				tooMany,
				look,
			),
			"what makes B rest between two requests, and what ends its rest?"
	}
	mark = b.Tap.Mark()
	released := zoo.Go(a.Client, func(context.Context) error { return a.Unlock(first.Held()) })
	if !within(soon, released.Returned) {
		return fmt.Sprintf("A held the lock and called Unlock, which has not come back in %v",
			soon), "what does Unlock wait for?"
	}
	if err := released.Err(); err != nil {
		return fmt.Sprintf("A held the lock, and its Unlock answered: %v",
			err), "what does this error mean?"
	}
	comesIn := within(soon, second.Returned)
	if n := restless(b.Tap.Since(mark)); !comesIn && n > tooMany { // which takes a busy machine longer
		return fmt.Sprintf("%s sent %d requests without a rest before them: it does not sleep", "B", n),
			"what makes B rest between two requests, and what ends its rest?"
	}
	if !comesIn {
		return fmt.Sprintf(
				"A has released the lock, and %v later B still waits; since then B sent %d requests. The queue: %v",
				soon,
				requests(b.Tap.Since(mark)),
				zoo.Names(zoo.Root+"/lock"),
			),
			"who is to tell B that its turn has come, and what does B do then?"
	}
	return seen, ""
}

// within tells whether something becomes so in a time.
func within(limit time.Duration, so func() bool) bool {
	for deadline := time.Now().Add(limit); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
