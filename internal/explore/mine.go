package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// An Answer is what Mine has found.
type Answer struct {
	Orders int      // how many interleavings were played
	All    bool     // the time limit left no interleaving out
	Wrong  string   // the invariant that the shortest wrong interleaving breaks; "": none is wrong
	Story  []string // of the shortest wrong interleaving, line by line
}

// ErrAsks is what Mine returns for steps 1 and 2: the waiters of their locks poll, so their
// interleavings cannot be explored.
var ErrAsks = errors.New("the waiters of this lock poll: the explorer has no clock, and cannot explore pauses")

// mineLasts is the time limit of Mine. On an idle machine Mine needs half of it.
const mineLasts = 10 * time.Second

// Mine plays interleavings of two clients of a learner's lock of a step, "3" to "6". After ten
// seconds it begins no other one. It plays these groups, one after the other:
//
//   - all interleavings that have no fault,
//   - those in which a client crashes or gives up, and at most one client is interrupted,
//   - in steps 5 and 6 also those with any one fault, in which no client is interrupted. The locks of
//     steps 3 and 4 do not survive a lost reply.
//
// In step 6 one client reads, and the other writes. If an interleaving of a group is wrong, Mine
// plays no further group, and the answer has the shortest interleaving that is wrong.
//
// program is the test binary of the learner's package, in which TestLock calls exercise.Check. If
// it is "", Mine starts the running program. root is a znode. Mine creates its znodes below it, and
// deletes them.
func Mine(ctx context.Context, servers []string, root, step, program string) (Answer, error) {
	readers := 0
	if step == "6" {
		readers = 1 // and the other one writes
	}
	bounds := []Settings{
		{Clients: 2, Readers: readers, Switches: Unbound},
		{Clients: 2, Readers: readers, Switches: 1, Faults: 1, Mild: true},
	}
	switch step {
	case "1", "2":
		return Answer{}, ErrAsks
	case "3", "4":
	case "5", "6":
		bounds = append(bounds, Settings{Clients: 2, Readers: readers, Switches: 0, Faults: 1})
	default:
		return Answer{}, fmt.Errorf("%q is no step", step)
	}
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return Answer{}, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, mineLasts)
	defer cancel()
	a := Answer{All: true}
	for _, s := range bounds {
		s.Servers, s.Root = servers, root
		r, err := playMine(bounded, s, step, program)
		isLate := bounded.Err() != nil && ctx.Err() == nil
		if err != nil && !isLate {
			return a, err
		}
		a.Orders += r.Orders
		a.All = a.All && !isLate
		if broken := r.Broken(); len(broken) > 0 {
			a.Wrong = broken[0]
			a.Story = r.Findings[a.Wrong].Shortest.Tell()
			return a, nil
		}
	}
	return a, nil
}

// playMine plays the interleavings of a learner's lock within one of Mine's bounds.
func playMine(ctx context.Context, s Settings, step, program string) (r Result, err error) {
	const processes = 4
	players, err := Start(processes, s, "mine "+step, program, "-test.run", "^TestLock$")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, End(players)) }()
	return Explore(ctx, players, func(Result) {})
}
