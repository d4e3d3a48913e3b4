// Command bench measures how many hand-overs a second the locks make, side by
// side in one run on one real ZooKeeper, and what each hand-over costs. A
// hand-over is one Lock and one Unlock with nothing in between. It takes about ten
// minutes, most of them for other people's locks with many contenders.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/setting"
)

func main() {
	process.Role("contender", func(process.Call) any { return &Contestant{} })
	ctx, stop := process.UntilStopped()
	defer stop()
	err := bench(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "stopped")
		os.Exit(process.Stopped)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// goroutines is how many contend in one process, unless a part says otherwise.
const goroutines = 8

// A part is a group of measurements.
type part struct {
	name    string
	measure func(stage)
}

// parts stand in the order of the report.
var parts = []part{
	{"sessions", func(s stage) {
		s.compare("one session, alone", apart, 1)
		s.compare("8 sessions at once", apart, 8)
		s.compare("32 sessions at once", apart, 32)
	}},
	{"goroutines", func(s stage) {
		s.compare(fmt.Sprintf("%d goroutines of one process, on one session", goroutines), together, goroutines)
	}},
	{"processes", stage.contest},
	{"peers", stage.peers},
	{"servers", stage.servers},
}

// chosen finds the parts of a list such as sessions,goroutines.
func chosen(list string) (some []part, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %s", name)
		}
		some = append(some, parts[i])
	}
	return some, nil
}

func bench(ctx context.Context) error {
	wanted, err := setting.Read("PARTS", parts, "one or more of sessions,goroutines,processes,peers,servers", chosen)
	if err != nil {
		return err
	}
	say("looking for a ZooKeeper")
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	say("%s, %d cores", server.Origin, runtime.NumCPU())
	line("Hand-overs on %s.", server.Origin)
	return zktest.Play(func(t zktest.T) {
		s := stage{t, ctx, server}
		line(
			"Cores: %d. To write a few bytes to a file and have them on the disk takes %.2f ms, the median of %d times.",
			runtime.NumCPU(),
			s.fsync(),
			writes,
		)
		line("Ratios are to zk.Lock in the same round: the median of all rounds, and the lowest and highest.")
		for _, part := range wanted {
			s.must(zktest.Play(func(t zktest.T) { part.measure(stage{t, ctx, server}) }))
		}
	})
}

const writes = 100

// fsync measures, in milliseconds, what every lock here that survives a loss of power
// has to wait for.
func (s stage) fsync() float64 {
	file, err := os.CreateTemp("", "zklock-fsync")
	s.must(err)
	defer os.Remove(file.Name())
	defer file.Close()
	var took []float64
	for range writes {
		begin := time.Now()
		_, err := file.Write(make([]byte, 100))
		s.must(errors.Join(err, file.Sync()))
		took = append(took, time.Since(begin).Seconds()*1000)
	}
	return median(took)
}

// say tells on stderr what is going on.
func say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "bench:", fmt.Sprintf(format, args...))
}

// line writes a line of the report.
func line(format string, args ...any) { fmt.Println(fmt.Sprintf(format, args...)) }

// A stage is where things are measured.
type stage struct {
	zktest.T
	ctx    context.Context // ends with Ctrl-C
	server *zkserver.Server
}

// on runs one measurement, and ends its sessions.
func (s stage) on(measure func(stage, *zktest.Zoo)) {
	s.must(s.ctx.Err())
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute) // more than a test's patience
	defer cancel()
	s.must(zktest.Play(func(t zktest.T) {
		s.T = t
		z := zktest.NewOn(t, s.server)
		z.Untapped, z.Ctx = true, ctx // the taps' own work would count
		measure(s, z)
	}))
}

// must ends the measurement if there is an error.
func (s stage) must(err error) {
	if err != nil {
		s.Fatalf("%v", err)
	}
}
