package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Result is what an exploration has found so far.
type Result struct {
	Orders   int                // how many interleavings were played, without the covered ones
	Covered  int                // how many were stopped, because other interleavings have the rest
	Wrong    int                // how many break an invariant
	Findings map[string]Finding // by the invariant that is broken
	Kinds    map[Kind]Finding   // the same, by the invariant and the faults of the run
	Outcomes map[string]int     // how many interleavings ended in each way
	Waiting  int                // branches that have not been played
	Runs     []Run              // all runs, or none if there are more than mostKept
}

// mostKept is the largest number of runs that a Result keeps. If there are more, it keeps none.
const mostKept = 6000

// A Kind is an invariant that is broken, and the faults of the run.
type Kind struct{ Invariant, Faults string }

// A Finding is an invariant that is broken.
type Finding struct {
	Orders   int // how many interleavings break it
	Shortest Run // the run with the fewest choices
}

// tree is an exploration. Its branches are the beginnings of the interleavings that have not been
// played.
type tree struct {
	mu       sync.Mutex
	changed  *sync.Cond
	branches [][]Moment
	playing  int
	err      error
	hangs    bool            // a call does not return: the exploration ends
	stumbled bool            // one interleaving has failed, and is played again
	differed map[uint64]int  // how often each branch was played and became another interleaving
	branched map[uint64]bool // all branches so far
	runs     map[uint64]bool // all interleavings so far
	result   Result
}

// mostTries is how often a branch is played that becomes another interleaving each time. See player.mayDiffer.
const mostTries = 8

// ErrDiffers is what Explore returns if a branch becomes another interleaving each time, and no call has given up: the
// lock itself sends other requests, or sends them in another order.
var ErrDiffers = errors.New("this interleaving cannot be repeated")

// Explore plays all interleavings. Each player plays one at a time. Explore calls say after each
// interleaving.
func Explore(ctx context.Context, players []*Player, say func(Result)) (Result, error) {
	t := &tree{branches: [][]Moment{nil}, differed: map[uint64]int{}, branched: map[uint64]bool{}, runs: map[uint64]bool{}}
	t.changed = sync.NewCond(&t.mu)
	t.result.Findings = map[string]Finding{}
	t.result.Kinds = map[Kind]Finding{}
	t.result.Outcomes = map[string]int{}
	var all sync.WaitGroup
	for _, p := range players {
		all.Go(func() {
			for {
				begin, ok := t.next(ctx)
				if !ok {
					return
				}
				run, err := p.play(begin)
				t.played(begin, run, err, say)
			}
		})
	}
	all.Wait()
	return t.result, cmp.Or(ctx.Err(), t.err)
}

// next returns the newest branch, so that few branches wait. ok is false if all interleavings have
// been played, or the exploration has failed or was stopped.
func (t *tree) next(ctx context.Context) (begin []Moment, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mayYetCome := func() bool { return len(t.branches) == 0 && t.playing > 0 } // a running one may add branches
	for t.err == nil && mayYetCome() {
		t.changed.Wait()
	}
	isStopped := t.err != nil || t.hangs || ctx.Err() != nil
	if isStopped || len(t.branches) == 0 {
		return nil, false
	}
	last := len(t.branches) - 1
	begin = t.branches[last]
	t.branches = t.branches[:last]
	t.playing++
	return begin, true
}

// played adds the result of an interleaving, and a branch for each choice that it did not take
// after begin. One interleaving may fail, and is played again: if the machine pauses for seconds, a
// session's own timers fire. The second failure is an error.
func (t *tree) played(begin []Moment, run Run, err error, say func(Result)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed.Broadcast()
	t.playing--
	if t.hangs {
		return
	}
	t.hangs = run.Hangs
	if err != nil && !t.stumbled {
		t.stumbled = true
		t.branches = append(t.branches, begin)
		return
	}
	if err != nil {
		t.err = cmp.Or(t.err, err)
		return
	}
	if run.Differs != "" {
		if !t.again(begin) {
			t.err = cmp.Or(t.err, fmt.Errorf("%w: %s", ErrDiffers, run.Differs))
		}
		return
	}
	from := inCommon(begin, run.Moments)
	isOther := from < len(begin) // not the interleaving that was to be played
	if isOther {
		t.again(begin)
	}
	played := key(run.Moments)
	if t.runs[played] {
		return
	}
	t.runs[played] = true
	for i := from; i < len(run.Moments); i++ {
		m := run.Moments[i]
		for other := m.Taken + 1; other < len(m.Choices); other++ {
			branch := slices.Clone(run.Moments[:i])
			branch = append(branch, Moment{m.Choices, other})
			if k := key(branch); !t.branched[k] {
				t.branched[k] = true
				t.branches = append(t.branches, branch)
			}
		}
	}
	t.result.add(run)
	t.result.Waiting = len(t.branches)
	say(t.result)
}

// again lets a branch be played once more that became another interleaving. If it has become one too often, again returns
// false.
func (t *tree) again(begin []Moment) bool {
	branch := key(begin)
	t.differed[branch]++
	if t.differed[branch] == mostTries {
		return false
	}
	t.branches = append(t.branches, begin)
	return true
}

// inCommon returns how many moments from the first one on are the same.
func inCommon(a, b []Moment) (n int) {
	for n < min(len(a), len(b)) && a[n].Taken == b[n].Taken && slices.Equal(a[n].Choices, b[n].Choices) {
		n++
	}
	return n
}

// key is a number that is the same for the same moments.
func key(moments []Moment) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q", moments)
	return h.Sum64()
}

func (r *Result) add(run Run) {
	if r.Orders+r.Covered < mostKept {
		r.Runs = append(r.Runs, run)
	} else {
		r.Runs = nil
	}
	if run.Covered {
		r.Covered++
		return
	}
	r.Orders++
	r.Outcomes[run.Outcome]++
	if len(run.Wrong) > 0 {
		r.Wrong++
	}
	for _, wrong := range run.Wrong {
		note(r.Findings, wrong, run)
		note(r.Kinds, Kind{wrong, strings.Join(run.Faults, ", ")}, run)
	}
}

// note counts an interleaving among those that are wrong in the same way.
func note[Way comparable](findings map[Way]Finding, way Way, run Run) {
	f, known := findings[way]
	f.Orders++
	if !known || run.IsShorterThan(f.Shortest) {
		f.Shortest = run
	}
	findings[way] = f
}

// Broken lists the invariants that are broken, sorted by how few choices break them.
func (r Result) Broken() []string {
	byShortest := func(a, b string) int {
		shortestA, shortestB := r.Findings[a].Shortest, r.Findings[b].Shortest
		return cmp.Or(cmp.Compare(len(shortestA.Moments), len(shortestB.Moments)), cmp.Compare(a, b))
	}
	return slices.SortedFunc(maps.Keys(r.Findings), byShortest)
}

// IsShorterThan reports whether r has fewer choices than other. If the numbers are equal, it
// compares the choices, so the result does not depend on which one was played first.
func (r Run) IsShorterThan(other Run) bool {
	if len(r.Moments) != len(other.Moments) {
		return len(r.Moments) < len(other.Moments)
	}
	byTaken := func(a, b Moment) int { return cmp.Compare(a.Taken, b.Taken) }
	return slices.CompareFunc(r.Moments, other.Moments, byTaken) < 0
}
