package storm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// tellProgress prints a line now and then, and calls stop when the storm has found enough.
func (s *storm) tellProgress(ctx context.Context, stop func()) {
	began := time.Now()
	for rest(ctx, 5*time.Second) {
		s.mu.Lock()
		faults, turns := len(s.faults), len(s.turns)
		s.mu.Unlock()
		fmt.Fprintf(s.out, "  %4.0f s  %4d faults  %6d turns\n", time.Since(began).Seconds(), faults, turns)
		if s.enough != nil && s.enough(s) {
			stop()
		}
	}
}

// hasMistake reports, during the storm, whether a production lock has made a mistake.
func (s *storm) hasMistake() bool {
	for i, lock := range locks {
		v := s.judge(i)
		v.numberIsRight = true // not known before the storm ends
		if lock.forWork && !v.isRight() {
			return true
		}
	}
	return false
}

// print writes the table, and returns whether the production locks were right.
func (s *storm) print() (isRight bool) {
	var verdicts []verdict
	befell, whys := map[string]bool{}, map[string]bool{}
	isRight = true
	for i, lock := range locks {
		v := s.judge(i)
		verdicts = append(verdicts, v)
		for fault := range v.faults {
			befell[fault] = true
		}
		for why := range v.whys {
			whys[why] = true
		}
		if lock.forWork && !v.isRight() {
			isRight = false
		}
	}
	row := func(title string, cell func(i int, v verdict) any) {
		fmt.Fprintf(s.out, "%-58s", title)
		for i, v := range verdicts {
			fmt.Fprintf(s.out, "  %*v", max(6, len(locks[i].Name)), cell(i, v))
		}
		fmt.Fprintln(s.out)
	}
	fmt.Fprintf(s.out, "\n%d faults\n\n", len(s.faults))
	row("", func(i int, _ verdict) any { return locks[i].Name })
	row("holds", func(_ int, v verdict) any { return v.turns })
	row("longest wait", func(_ int, v verdict) any { return v.longest.Round(100 * time.Millisecond) })
	row("calls of Lock that failed", func(_ int, v verdict) any { return v.failed })
	row("calls that did not return", func(_ int, v verdict) any { return v.hung })
	row("znodes left behind", func(_ int, v verdict) any { return v.orphans })
	row("holders that were notified of a loss", func(_ int, v verdict) any { return v.told })
	row("  of them, while the session lived on", func(_ int, v verdict) any { return v.lived })
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		row("  for the reason: "+why, func(_ int, v verdict) any { return v.whys[why] })
	}
	for _, fault := range slices.Sorted(maps.Keys(befell)) {
		row("  in the fault: "+fault, func(_ int, v verdict) any { return v.faults[fault] })
	}
	row("holds that overlapped an earlier hold", func(_ int, v verdict) any { return v.together })
	row("uses that the store refused", func(_ int, v verdict) any { return v.refused })
	row("  of them, by holders that were not notified yet", func(_ int, v verdict) any { return v.alive })
	row("increments lost", func(_ int, v verdict) any { return v.lost })
	row("the holds behave like those of one lock", func(_ int, v verdict) any { return rightOrWrong(v.lockIsRight) })
	row("the increments behave like those of one counter", func(_ int, v verdict) any {
		return rightOrWrong(v.numberIsRight)
	})
	if !isRight {
		fmt.Fprintf(s.out, "\nA production lock was wrong. To repeat the same faults: make storm TIME=%v SEED=%d\n",
			s.Length, s.Seed)
	}
	return isRight
}

func rightOrWrong(isRight bool) string {
	if isRight {
		return "right"
	}
	return "WRONG"
}
