package storm

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A verdict is the result of a storm for one lock.
type verdict struct {
	turns    int            // Lock has returned, and the client held the lock
	failed   int            // Lock has returned an error, and the client had not given up by itself
	hung     int            // calls that have not returned
	longest  time.Duration  // wait
	told     int            // holders that were notified of a loss
	lived    int            // how many of them still had a session
	faults   map[string]int // the faults that affected them
	whys     map[string]int // the reasons that the lock gave them
	together int            // holds that began while another client held the lock
	refused  int            // uses that the store has refused
	alive    int            // holders that the store refused although they held the lock
	lost     int            // increments that another one has overwritten
	orphans  int            // znodes left behind

	lockIsRight, numberIsRight bool // as porcupine judges
}

// isRight reports whether a production lock may have such a verdict.
func (v verdict) isRight() bool {
	wrong := v.failed + v.hung + v.together + v.alive + v.lost + v.orphans + v.whys[notSaid]
	return wrong == 0 && v.lockIsRight && v.numberIsRight
}

// judge judges one lock by what has been recorded so far. Do not rely on numberIsRight before
// all is recorded: a turn that has added to the number may be missing.
func (s *store) judge(lock int) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.numbers[lock]
	v := verdict{
		faults: map[string]int{}, whys: map[string]int{},
		refused: n.refused, lost: n.lost, orphans: s.orphans[lock],
	}
	for _, at := range s.hung {
		if at == lock {
			v.hung++
		}
	}
	turns := slices.DeleteFunc(slices.Clone(s.turns), func(t Turn) bool { return t.Lock != lock })
	var holds []Turn
	for _, t := range turns {
		if t.Failure != "" {
			v.failed++
		}
		if t.From.IsZero() {
			continue
		}
		holds = append(holds, t)
		v.longest = max(v.longest, t.From.Sub(t.Called))
		if t.RefusedAlive {
			v.alive++
		}
		if !t.Told.IsZero() {
			v.told++
			v.faults[s.faultAt(t.Client, t.Told)]++
			v.whys[t.Why]++
		}
		if !t.Told.IsZero() && t.Lived {
			v.lived++
		}
	}
	v.turns = len(holds)
	v.together = together(holds)
	v.lockIsRight = porcupine.CheckOperations(lockModel, lockHistory(holds))
	v.numberIsRight = porcupine.CheckOperations(numberModel, numberHistory(holds))
	return v
}

// together counts the holds that began while another was not over.
func together(holds []Turn) (n int) {
	slices.SortFunc(holds, func(a, b Turn) int { return a.From.Compare(b.From) })
	var until time.Time
	for _, hold := range holds {
		if hold.From.Before(until) {
			n++
		}
		if hold.Until.After(until) {
			until = hold.Until
		}
	}
	return n
}

// lockModel is a lock: it can be acquired when it is free, and released by the hold that has it.
var lockModel = porcupine.Model{
	Init: func() any { return free },
	Step: func(state, input, _ any) (bool, any) {
		op := input.(lockOp)
		if op.acquires {
			return state == free, op.hold
		}
		return state == op.hold, free
	},
}

const free = 0

// A lockOp is what a hold does to the lock. Holds are numbered from 1.
type lockOp struct {
	hold     int
	acquires bool
}

// lockHistory returns when each hold began and ended, as precisely as is known. A hold begins between the
// call of Lock and the first time at which the client believes that it has the lock.
func lockHistory(holds []Turn) (history []porcupine.Operation) {
	for i, t := range holds {
		begins := porcupine.Operation{
			Input: lockOp{i + 1, true}, Call: t.Called.UnixNano(), Return: t.From.UnixNano(),
		}
		ends := porcupine.Operation{
			Input: lockOp{i + 1, false}, Call: t.Until.UnixNano(), Return: math.MaxInt64,
		}
		if !t.Ended.IsZero() {
			ends.Return = t.Ended.UnixNano()
		}
		history = append(history, begins, ends)
	}
	return history
}

// numberModel is the number as the holders see it: each adds one to the value it has read, and no other
// client writes in between.
var numberModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, _, read any) (bool, any) {
		return state == read, read.(int64) + 1
	},
}

func numberHistory(holds []Turn) (history []porcupine.Operation) {
	for _, t := range holds {
		if t.Wrote.IsZero() { // it has not written, or the store has refused it
			continue
		}
		history = append(history, porcupine.Operation{
			Call: t.Read.UnixNano(), Return: t.Wrote.UnixNano(), Output: t.Base,
		})
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return history
}
