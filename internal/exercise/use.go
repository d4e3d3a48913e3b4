package exercise

import (
	"context"
	"fmt"
	"time"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

const (
	// canBeUsed is the first question.
	canBeUsed = "it can be locked and unlocked"

	// A waiter that polls rests between two requests: in the time of look it does not ask so
	// often without a rest.
	look    = 500 * time.Millisecond
	tooMany = 50
)

// soon is how long one call has that need not wait for anybody.
const soon = 4 * time.Second

// use finds out what every lock can do. So one that hangs is told so in a few seconds, and
// in plain words.
func use(server *zkserver.Server, lock property.Subject) answer {
	a := answer{question: canBeUsed}
	ctx, cancel := context.WithTimeout(context.Background(), 4*soon)
	defer cancel()
	err := zktest.PlayUntil(ctx, func(story zktest.T) {
		a.seen, a.ask = useOnce(zktest.NewOn(story, server), lock)
	})
	switch {
	case err != nil:
		a.seen, a.ask = err.Error(), "which call is it, and what does it wait for?"
	case a.ask == "":
		a.holds, a.seen = true, "A locked, B waited, A unlocked, and B was let in"
	}
	return a
}

// useOnce lets A lock, B come, and A unlock. It returns what went wrong, and a question.
func useOnce(zoo *zktest.Zoo, lock property.Subject) (seen, ask string) {
	a, b := lock.Join(zoo, "A"), lock.Join(zoo, "B")
	first := a.Start()
	if !within(soon, first.Returned) {
		return fmt.Sprintf("nobody held the lock, A called Lock, and it has not come back in %v; A sent %d requests",
			soon, wiretap.Count(a.Tap.Frames()).All()), "what does Lock wait for, when nobody else is there?"
	}
	if err := first.Err(); err != nil {
		return fmt.Sprintf("nobody held the lock, and A's Lock answered: %v", err), "what does this error mean?"
	}
	mark := b.Tap.Mark()
	second := b.Start()
	within(soon, func() bool {
		silently, polls := b.Tap.Waiting(mark)
		return silently || polls || second.Returned()
	})
	spins := func() bool { return wiretap.AtOnce(b.Tap.Since(mark)) > tooMany }
	if silently, _ := b.Tap.Waiting(mark); !silently {
		within(look, func() bool { return second.Returned() || spins() })
	}
	if spins() {
		return fmt.Sprintf("A held the lock, and B sent more than %d requests in %v, without a rest between them",
			tooMany, look), "what makes B rest between two requests, and what ends its rest?"
	}
	mark = b.Tap.Mark()
	released := zoo.Go(a.Client, func(context.Context) error { return first.Unlock() })
	if !within(soon, released.Returned) {
		return fmt.Sprintf("A held the lock and called Unlock, which has not come back in %v", soon),
			"what does Unlock wait for?"
	}
	if err := released.Err(); err != nil {
		return fmt.Sprintf("A held the lock, and its Unlock answered: %v", err), "what does this error mean?"
	}
	if within(soon, second.Returned) {
		return "", ""
	}
	for _, znode := range a.Tap.Done(wiretap.Create) {
		session, there := zoo.Owner(znode)
		isDirectory := session == 0 && !lock.Znode
		if there && !isDirectory {
			return fmt.Sprintf("A's Unlock said that all was well, and its znode is still there: %s", znode),
				"which znode has to go, so that the lock is free, and who deletes it?"
		}
	}
	return fmt.Sprintf("nobody was woken after the release: A has released the lock, and %v later B still waits; "+
		"since then B sent %d requests", soon, wiretap.Count(b.Tap.Since(mark)).All()), "who is to tell B that its turn has come, and what does B do then?"
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
