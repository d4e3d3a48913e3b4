package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/locks"
)

// isWide: trees are played that take minutes.
var isWide = os.Getenv("ZKLOCK_EXPLORE") == "wide"

// bounds are what a mistake is given, one after the other, until something is wrong that is
// right in the step that it is made in. So the order that is found has the fewest faults,
// then the fewest switches, and then the fewest choices; however many processes play, it
// is the same one. Only .ci/night has time for faults.
func bounds() []explore.Settings {
	all := []explore.Settings{
		{Clients: 2, Faults: 0, Switches: explore.Unbound},
		{Clients: 2, Faults: 1, Switches: 0},
		{Clients: 2, Faults: 1, Switches: 1},
		{Clients: 2, Faults: 1, Switches: explore.Unbound},
	}
	if !isWide {
		return all[:1]
	}
	return all
}

// tries is how often a lock is explored whose waiters rest: a busy machine can let each rest
// pass before it is seen.
const tries = 5

// asks is what the explorer says of a lock whose waiters poll.
const asks = "this interleaving cannot be repeated|a client sends a request after a pause"

// No mistake is told to the explorer. What it finds stands in locks.Mistakes, and from there
// in docs/mistakes.md.
func TestThePublishedMistakesAreExplored(t *testing.T) {
	right := map[string]explore.Result{}
	all := bounds()
	for _, step := range []string{"3", "4"} {
		r, err := explored(t, choose(t, step), all[len(all)-1])
		require.NoError(t, err)
		right[step] = r
	}
	for _, m := range locks.Mistakes {
		t.Run(m.Key(), func(t *testing.T) {
			t.Parallel()
			want := m.Found
			needsFault := want.Requests > 0 && want.Fault != locks.NoFault
			if needsFault && !isWide {
				want = locks.NotFound
			}
			mayTry := 1
			waitersRest := assert.ObjectsAreEqual(locks.CannotBeExplored, want)
			if waitersRest {
				mayTry = tries
			}
			var found locks.Order
			for range mayTry {
				found = firstWrong(t, m, all, right[choose(t, m.Key()).Base()])
				if assert.ObjectsAreEqual(want, found) {
					break
				}
			}
			assert.Equal(t, want, found, "Found of %s in locks.Mistakes, and what is found", m.Key())
		})
	}
}

// firstWrong is the first order that is wrong in a lock with this mistake, and never in the
// right one.
func firstWrong(t *testing.T, m locks.Mistake, all []explore.Settings, right explore.Result) locks.Order {
	t.Helper()
	l := choose(t, m.Key())
	for _, s := range all {
		r, err := explored(t, l, s)
		if err != nil {
			assert.Regexp(t, asks, err.Error())
			return locks.CannotBeExplored
		}
		if run, found := news(r, right); found {
			t.Log(strings.Join(run.Tell(), "\n"))
			return locks.Order{Requests: run.Requests, Fault: fault(run), Wrong: run.Wrong}
		}
	}
	return locks.NotFound
}

// The next one is let in when a waiter dies: that takes a third client.
func TestAThirdClientFindsW8(t *testing.T) {
	if !isWide {
		t.Skip("in .ci/night")
	}
	t.Parallel()
	l := choose(t, "W8")
	three := explore.Settings{Clients: 3, Faults: 1, Switches: 1, Mild: true}
	r, err := until(t, l, three, func(r explore.Result) bool { return r.Wrong > 0 })
	require.ErrorIs(t, err, context.Canceled, "something is wrong before all orders are played")
	run := r.Findings[r.Broken()[0]].Shortest
	t.Log(strings.Join(run.Tell(), "\n"))
	assert.Equal(t, []string{"two clients hold the lock at once"}, run.Wrong)
}

// news is the shortest order that is wrong in a way in which none is in a lock without the
// mistake, with the same faults.
func news(r, right explore.Result) (shortest explore.Run, found bool) {
	for kind, f := range r.Kinds {
		if _, known := right.Kinds[kind]; known {
			continue
		}
		if !found || f.Shortest.IsShorterThan(shortest) {
			shortest, found = f.Shortest, true
		}
	}
	return shortest, found
}

// fault is what has failed in an order, in words.
func fault(r explore.Run) string {
	if len(r.Faults) == 0 {
		return locks.NoFault
	}
	deed, op, _ := strings.Cut(r.Faults[0], " ")
	switch deed {
	case "give-up":
		return "a client gives up"
	case "crash":
		return "a client crashes"
	case "expire":
		return "a session expires"
	case "lose-reply":
		return "the reply to " + op + " is lost"
	}
	return "the request " + op + " is lost"
}
