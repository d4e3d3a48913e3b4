// Command bench measures how many hand-overs a second the locks make, side by
// side in one run on one real ZooKeeper, and what each hand-over costs. A
// hand-over is one Lock and one Unlock with nothing in between. It takes about
// a minute.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func main() {
	zktest.Child("bench", contend)
	os.Exit(run(os.Args[1:], os.Stdout))
}

func run(wanted []string, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := bench(ctx, wanted, out)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "stopped")
		return 130 // as a shell has it for Ctrl-C
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A part is a group of measurements.
type part struct {
	name    string
	measure func(stage, printer)
}

// parts stand in the order of the report; arguments choose some of them.
var parts = []part{
	{"sessions", func(s stage, p printer) {
		for _, n := range []int{1, 8, 32} {
			say("sessions: %d, %d rounds", n, rounds)
			p.sessions(n, s.compare(apart, n))
		}
	}},
	{"goroutines", func(s stage, p printer) {
		say("%d goroutines of one process, %d rounds", goroutines, rounds)
		p.goroutines(s.compare(together, goroutines))
	}},
	{"processes", func(s stage, p printer) {
		say("%d processes of %d goroutines, for %v", processes, goroutines, contest)
		p.processes(s.share())
	}},
}

func bench(ctx context.Context, wanted []string, out io.Writer) error {
	for _, name := range wanted {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("usage: bench [sessions] [goroutines] [processes], and not %s", name)
		}
	}
	say("looking for a ZooKeeper")
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	say("%s, %d cores", server.Origin, runtime.NumCPU())
	p := printer{out}
	p.head(server.Origin)
	for _, part := range parts {
		if len(wanted) > 0 && !slices.Contains(wanted, part.name) {
			continue
		}
		if err := zktest.Play(func(t zktest.T) { part.measure(stage{t, ctx, server}, p) }); err != nil {
			return err
		}
	}
	return nil
}

// say tells on stderr what is going on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

// A stage is where things are measured.
type stage struct {
	zktest.T
	ctx    context.Context // ends with Ctrl-C
	server *zkserver.Server
}

// on runs one measurement, and ends its sessions.
func (s stage) on(measure func(stage, *zktest.Zoo)) {
	s.must(s.ctx.Err())
	s.must(zktest.Play(func(t zktest.T) {
		s.T = t
		measure(s, zktest.NewOn(t, s.server))
	}))
}

// must ends the measurement if there is an error.
func (s stage) must(err error) {
	if err != nil {
		s.Fatalf("%v", err)
	}
}
