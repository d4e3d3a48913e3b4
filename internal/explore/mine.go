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
	Orders  int      // how many interleavings were played
	All     bool     // no interleaving was left out
	Differs bool     // some were left out because they cannot be repeated: see ErrDiffers
	Wrong   string   // the invariant that the shortest wrong interleaving breaks; "": none is wrong
	Story   []string // of the shortest wrong interleaving, line by line
	Flags   string   // with which make explore plays the group of the wrong interleaving, and draws it
}

// ErrAsks is what Mine returns for steps 1 and 2: the waiters of their locks poll, so their
// interleavings cannot be explored.
var ErrAsks = errors.New("the waiters of this lock poll: the explorer has no clock, and cannot explore pauses")

// mineLasts is the time limit of Mine. An idle machine needs a few seconds.
const mineLasts = 2 * time.Minute

// Mine plays interleavings of a learner's lock of a step, "3" to "6". After two minutes it begins no
// other one. It plays these groups, one after the other:
//
//   - all interleavings of two clients that have no fault,
//   - those of one client alone with up to two faults; in steps 5 and 6 also with a third one, which is
//     the second one once more,
//   - those of two clients in which a client crashes or gives up, or a reply to a read is lost, and at
//     most one client is interrupted,
//   - in steps 5 and 6 also those of two clients with any one fault, in which no client is interrupted.
//
// The locks of steps 3 and 4 do not survive a lost reply to a create or a delete, so a client alone has
// only the faults that they do survive. In step 6, one of two clients reads, and the other writes. If an
// interleaving of a group is wrong, Mine plays no further group, and the answer has the shortest
// interleaving that is wrong. If an interleaving cannot be repeated, Mine goes on with the next group.
//
// program is the test binary of the learner's package, in which TestLock calls exercise.Check. If
// it is "", Mine starts the running program. root is a znode. Mine creates its znodes below it, and
// deletes them.
func Mine(ctx context.Context, servers []string, root, step, program string) (a Answer, err error) {
	readers := 0
	if step == "6" {
		readers = 1 // and the other one writes
	}
	noFault := Settings{Clients: 2, Readers: readers, Switches: Unbound}
	interrupted := Settings{Clients: 2, Readers: readers, Switches: 1, Faults: 1, Mild: true}
	var bounds []Settings
	switch step {
	case "1", "2":
		return Answer{}, ErrAsks
	case "3", "4":
		alone := Settings{Clients: 1, Switches: Unbound, Faults: 2, Mild: true}
		bounds = []Settings{noFault, alone, interrupted}
	case "5", "6":
		alone := Settings{Clients: 1, Switches: Unbound, Faults: 3, Again: true}
		anyFault := Settings{Clients: 2, Readers: readers, Switches: 0, Faults: 1}
		bounds = []Settings{noFault, alone, interrupted, anyFault}
	default:
		return Answer{}, fmt.Errorf("%q is no step", step)
	}
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return Answer{}, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, mineLasts)
	defer cancel()
	for i := range bounds {
		bounds[i].Servers, bounds[i].Root = servers, root
	}
	const processes = 4
	players, err := Start(processes, bounds[0], "mine "+step, program, "-test.run", "^TestLock$")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, End(players)) }()
	a.All = true
	for i, s := range bounds {
		if i > 0 {
			if err := begin(players, s); err != nil {
				return a, err
			}
		}
		r, err := Explore(bounded, players, func(Result) {})
		isLate := bounded.Err() != nil && ctx.Err() == nil
		differs := errors.Is(err, ErrDiffers)
		if err != nil && !isLate && !differs {
			return a, err
		}
		a.Orders += r.Orders
		a.All = a.All && err == nil
		a.Differs = a.Differs || differs
		if broken := r.Broken(); len(broken) > 0 {
			a.Wrong = broken[0]
			a.Story = r.Findings[a.Wrong].Shortest.Tell()
			a.Flags = fmt.Sprintf("CLIENTS=%d READERS=%d FAULTS=%d", s.Clients, s.Readers, s.Faults)
			return a, nil
		}
	}
	return a, nil
}
