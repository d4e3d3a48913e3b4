// Package bench measures how many turns a second each lock allows, side by side on one real server,
// and what each turn costs. A turn is one Lock and one Unlock, with nothing in between.
//
//	bench.go    the table
//	locks.go    the locks
//	turns.go    how the contenders take turns, and how these are counted
package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"zklock/internal/lab/peers"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// stint is how long one lock is measured in a round.
const stint = 500 * time.Millisecond

// A stage has what a measurement needs.
type stage struct {
	zktest.T
	ctx    context.Context
	server *zkserver.Server
	out    io.Writer
}

// Run measures the locks with each of these numbers of contenders, each lock in so many rounds, and
// prints a table for each number.
func Run(ctx context.Context, contenders []int, rounds int, out io.Writer) error {
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Fprintf(out, "%s; %d cores, %d rounds of %v for each lock.\n", server.Origin, runtime.NumCPU(), rounds, stint)
	return zktest.Tell(func(t zktest.T) {
		s := stage{t, ctx, server, out}
		others, missing := s.others()
		for _, m := range missing {
			fmt.Fprintf(out, "Left out: %s\n", m)
		}
		for _, n := range contenders {
			s.table(slices.Concat(ours, others), n, rounds)
		}
	})
}

// table measures locks with n contenders, and prints a table of them.
func (s stage) table(rivals []rival, n, rounds int) {
	all := s.rounds(rivals, n, rounds)
	fmt.Fprintf(s.out, "\n| contenders: %d | turns a second | speed (zk.Lock is 1): median (lowest to highest round) "+
		"| share of the turns that go to another contender | longest turn, as a multiple of the mean turn "+
		"| requests a turn | bytes a turn |\n", n)
	fmt.Fprintln(s.out, "|---|--:|--:|--:|--:|--:|--:|")
	for i, r := range rivals {
		to := ratios(all[i], all[0])
		wire := "– | –"
		if !r.elsewhere {
			requests, bytes := s.count(r, n)
			wire = fmt.Sprintf("%.2f | %.0f", requests, bytes)
		}
		fmt.Fprintf(s.out, "| %s | %.0f | %.2f (%.2f to %.2f) | %.2f | %.1f | %s |\n", r.name,
			median(each(all[i], aSecond)), median(to), slices.Min(to), slices.Max(to),
			median(each(all[i], toAnother)), median(each(all[i], longest)), wire)
	}
}

// A round is the turns that the contenders of one lock took in one round of the measurement.
type round []peers.Turn

// rounds measures one lock after the other, and begins again for each round, so that whatever
// disturbs the machine disturbs all locks. It returns the rounds of each lock.
func (s stage) rounds(rivals []rival, n, rounds int) [][]round {
	all := make([][]round, len(rivals))
	s.on(func(s stage, z *zktest.Zoo) {
		var runners []runner
		for _, r := range rivals {
			runners = append(runners, s.begin(r, z, z.Servers()[0], n))
		}
		for i := range rounds {
			for j := range rivals {
				s.must(s.ctx.Err())
				at := (i + j) % len(rivals) // so that no lock is always the first
				turns, err := runners[at](stint)
				s.must(err)
				all[at] = append(all[at], turns)
			}
		}
	})
	return all
}

// each applies a measure to each round.
func each(rounds []round, measure func(round) float64) (all []float64) {
	for _, r := range rounds {
		all = append(all, measure(r))
	}
	return all
}

// ratios returns the turns a second of a lock, divided by those of another lock in the same rounds.
func ratios(rounds, others []round) (all []float64) {
	for i, r := range rounds {
		all = append(all, aSecond(r)/aSecond(others[i]))
	}
	return all
}

// median returns the median of the values, or 0 if there are none.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// on runs one measurement, and then ends the sessions that it has opened.
func (s stage) on(measure func(stage, *zktest.Zoo)) {
	s.must(s.ctx.Err())
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute) // longer than a test waits
	defer cancel()
	s.must(zktest.Tell(func(t zktest.T) {
		s.T = t
		z := zktest.NewOn(t, s.server)
		z.Untapped, z.Ctx = true, ctx // the work of the taps would be measured with the rest
		measure(s, z)
	}))
}

// must ends the measurement if there is an error.
func (s stage) must(err error) {
	if err != nil {
		s.Fatalf("%v", err)
	}
}
