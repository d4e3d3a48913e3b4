package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

type printer struct{ out io.Writer }

func (p printer) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p printer) head(origin string) {
	p.line("Hand-overs on %s.", origin)
	p.line("Ratios are to zk.Lock in the same round: the median of %d rounds, and the lowest and highest.", rounds)
}

func (p printer) sessions(n int, figures []figure) {
	if n == 1 {
		p.line("\none session, alone")
	} else {
		p.line("\n%d sessions at once", n)
	}
	p.figures(figures)
}

func (p printer) goroutines(figures []figure) {
	p.line("\n%d goroutines of one process, on one session", goroutines)
	p.figures(figures)
}

func (p printer) figures(figures []figure) {
	p.line("  %-24s %10s %8s %14s %10s %8s", "", "a second", "ratio", "", "requests", "bytes")
	for _, f := range figures {
		p.line("  %-24s %10.0f %8.2f %14s %10.2f %8.0f", f.name, f.rate, median(f.ratios),
			fmt.Sprintf("%.2f to %.2f", f.ratios[0], f.ratios[len(f.ratios)-1]), f.requests, f.bytes)
	}
}

// processes prints what each process got. The fair share of waiting is the
// mean of all waits of all processes.
func (p printer) processes(tenures []tenure) {
	shares := shares(tenures)
	var waits []time.Duration
	for _, s := range shares {
		waits = append(waits, s.waits...)
	}
	fair := mean(waits)
	p.line("\n%d processes of %d goroutines, one Cohort in each, turns of %v, for %v", processes, goroutines, work, contest)
	p.line("A process waits from the end of a tenure to the beginning of its next; the fair share is the mean of all waits, %s.", ms(fair))
	p.line("At the longest, nobody had the lock for %s, while the server was at work.", ms(still(tenures)))
	p.line("  %-24s %10s %8s %14s %14s %17s", "", "turns", "tenures", "longest wait", "in fair shares", "others' tenures")
	for i, s := range shares {
		longest := slices.Max(append(s.waits, 0))
		p.line("  %-24s %10d %8d %14s %14.1f %17d", fmt.Sprintf("process %d", i+1), s.turns, s.tenures, ms(longest),
			float64(longest)/float64(fair), s.others)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func mean(values []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(max(len(values), 1))
}
