package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/server/process"
	"zklock/internal/show/peers"
)

// The processes contend for a while. Each turn has a little work in it: with
// none, a tenure would be over so soon that the waits would tell how the machine
// shares its cores out, and not how the lock does.
const (
	processes  = 4
	contention = 6 * time.Second
	work       = time.Millisecond
)

// A Tenure is the time for which one process has the lock, told by its token.
type Tenure struct {
	Process    int
	Token      int64
	Begin, End time.Time
	Turns      int
}

// A share is what one process got. It waits from the end of one of its tenures
// to the beginning of the next.
type share struct {
	turns, tenures int
	waits, longest time.Duration // all of them together, and one
	others         int           // the most tenures that others had during one wait
}

// contest lets processes contend for one lock, each with several goroutines, and
// prints what each process got. The fair share of waiting is the mean of all
// waits of all processes.
func (s stage) contest() {
	say("%d processes of %d goroutines, for %v", processes, goroutines, contention)
	var all []Tenure
	s.on(func(s stage, z *zktest.Zoo) {
		children := s.contestants(processes, Address{Servers: z.Servers(), Path: z.Root + "/lock"})
		tenures, err := process.CallAll[Tenure](children, "Contend", func(i int) any { return i })
		s.must(err)
		all = tenures
	})
	slices.SortFunc(all, func(a, b Tenure) int { return cmp.Compare(a.Token, b.Token) })

	shares := shares(all)
	fair := time.Duration(0)
	for _, s := range shares {
		fair += s.waits / time.Duration(max(len(all)-processes, 1))
	}
	still := time.Duration(0)
	for i := 1; i < len(all); i++ {
		still = max(still, all[i].Begin.Sub(all[i-1].End))
	}
	line(
		"\n%d processes of %d goroutines, one Cohort in each, turns of %v, for %v",
		processes,
		goroutines,
		work,
		contention,
	)
	line(
		"A process waits from the end of a tenure to the beginning of its next; the fair share is the mean of all waits, %s.",
		ms(fair),
	)
	line("At the longest, nobody had the lock for %s, while the server was at work.", ms(still))
	line("  %-24s %10s %8s %14s %14s %17s", "", "turns", "tenures", "longest wait", "in fair shares", "others' tenures")
	for i, s := range shares {
		line("  %-24s %10d %8d %14s %14.1f %17d", fmt.Sprintf("process %d", i+1), s.turns, s.tenures, ms(s.longest),
			float64(s.longest)/float64(fair), s.others)
	}
}

// contestants starts processes that have come to the place.
func (s stage) contestants(n int, at Address) (children []*process.Process) {
	for range n {
		child, err := process.Start("contender")
		s.must(err)
		s.Cleanup(func() { _ = child.Close() })
		s.must(child.Call("Come", at, new(bool)))
		children = append(children, child)
	}
	return children
}

// shares reads the shares off the tenures, which are in order.
func shares(all []Tenure) []share {
	got := make([]share, processes)
	last := make([]int, processes) // where its last tenure stands, from 1
	for at, t := range all {
		g := &got[t.Process]
		if before := last[t.Process]; before > 0 {
			wait := t.Begin.Sub(all[before-1].End)
			g.waits, g.longest = g.waits+wait, max(g.longest, wait)
			g.others = max(g.others, at-before)
		}
		last[t.Process] = at + 1
		g.tenures++
		g.turns += t.Turns
	}
	return got
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// A Contestant is one of the processes. Its goroutines share one Cohort.
type Contestant struct{ cohort zktest.Way }

// An Address is where the lock is.
type Address struct {
	Servers []string
	Path    string
}

// Come opens the session, which ends with the process.
func (c *Contestant) Come(at Address, _ *bool) error {
	session, err := steps.Cohort.Open(at.Servers, zktest.SessionTimeout, net.DialTimeout)
	if err == nil {
		c.cohort, _ = steps.Cohort.Ways(session, at.Path)
	}
	return err
}

// Contend takes turns for a time, and tells the tenures. The lock guards them.
func (c *Contestant) Contend(process int, tenures *[]Tenure) error {
	base := time.Now() // from here on the clock of the machine may be set, and does not count
	now := func() time.Time { return base.Round(0).Add(time.Since(base)) }
	takeTurn := func() error {
		held, err := c.cohort.Lock(context.Background())
		if err != nil {
			return err
		}
		begin := now()
		token, _ := c.cohort.Token(held)
		if n := len(*tenures); n == 0 || (*tenures)[n-1].Token != token {
			*tenures = append(*tenures, Tenure{Process: process, Token: token, Begin: begin})
		}
		time.Sleep(work)
		t := &(*tenures)[len(*tenures)-1]
		t.Turns++
		t.End = now()
		return c.cohort.Unlock(held)
	}
	_, err := takeTurns(slices.Repeat([]turn{takeTurn}, goroutines), contention)
	return err
}

// A Load is what a process does for a while, each goroutine at least once.
type Load struct {
	Goroutines int
	First      int // as which contender the first of them counts
	For        time.Duration
}

// Turns takes turns with nothing in between.
func (c *Contestant) Turns(load Load, had *[]peers.Turn) (err error) {
	*had, err = takeTurns(slices.Repeat([]turn{turnOf(context.Background(), c.cohort)}, load.Goroutines), load.For)
	for i := range *had {
		(*had)[i].Client += load.First
	}
	return err
}
