// Command tour measures all steps side by side on a real ZooKeeper, prints the scoreboard, and writes
// a page. "tour matrix" prints which lock has which property. "tour runs" records the runs that the
// chapters of the book play, and "tour herd" the crowds that they show.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zklock/internal/lab/herd"
	"zklock/internal/lab/stage"
	"zklock/internal/lab/tour"
	"zklock/internal/process"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func main() { os.Exit(run(os.Args[1:])) }

// parts has what each argument makes the command do.
var parts = map[string]func(context.Context, *tour.Tour, *progress) error{"": score, "matrix": matrix, "runs": runs, "herd": crowds}

// The file of the page, and whether to open it in a browser.
var (
	pageFile string
	open     bool
)

func run(args []string) int {
	flags := flag.NewFlagSet("tour", flag.ContinueOnError)
	steps := flags.String("steps", "", "these steps only, such as 3,4")
	largest := flags.Int("waiters", tour.UsualWaiters, "how many wait in the largest crowd")
	flags.StringVar(&pageFile, "page", filepath.Join("out", "tour.html"), "where the page is written")
	flags.BoolVar(&open, "open", false, "opens the page in a browser")
	if err := process.ParseFlags(flags, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	locks, err := chosen(*steps)
	part := parts[strings.Join(flags.Args(), " ")]
	if part == nil {
		err = errors.Join(err, fmt.Errorf("usage: tour [matrix | runs | herd], and not %s", strings.Join(flags.Args(), " ")))
	}
	if *largest < tour.FewestWaiters || *largest > 10000 {
		err = errors.Join(err, fmt.Errorf("WAITERS=%d: it must be a number from %d to 10000", *largest, tour.FewestWaiters))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}

	ctx, stop := process.UntilStopped()
	defer stop()
	line := newProgress()
	line.say("looking for a ZooKeeper", 0, 0)
	server, err := zkserver.Start(ctx)
	if err == nil {
		defer server.Stop()
		line.note("%s", server.Origin)
		t := &tour.Tour{Recording: tour.Recording{Locks: locks, Largest: *largest}, Server: server, Say: line.say}
		err = untilDone(ctx, func() error { return part(ctx, t, line) })
	}
	line.end()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "stopped")
		return process.Stopped
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// chosen returns the locks of the steps in a list such as "3,4", step 3w with step 3, and always
// zk.Lock. If the list is empty, it returns all locks.
func chosen(steps string) (locks []tour.Exhibit, err error) {
	var wanted []string
	for step := range strings.SplitSeq(steps, ",") {
		step = strings.TrimLeft(strings.TrimSpace(step), "0")
		isThere := slices.ContainsFunc(tour.Locks, func(l tour.Exhibit) bool { return l.Key == step && !l.Beside })
		if steps != "" && !isThere {
			return nil, fmt.Errorf("STEPS=%s: there is no step %q", steps, step)
		}
		wanted = append(wanted, step)
	}
	for _, lock := range tour.Locks {
		isWanted := steps == "" || slices.Contains(wanted, lock.Key[:1])
		if isWanted || lock.Key == "zk" {
			locks = append(locks, lock)
		}
	}
	return locks, nil
}

// untilDone returns when the work is done, or at once when ctx ends. On a server that the tour did not
// start, it waits until the work has ended even then, so that nothing is left on the server. A second
// Ctrl-C ends that wait.
func untilDone(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if os.Getenv("ZK_SERVERS") != "" {
		again, stop := process.UntilStopped()
		defer stop()
		fmt.Fprintln(os.Stderr, "\ncleaning up on the server; press Ctrl-C again to end at once")
		select {
		case <-done:
		case <-again.Done():
		}
	}
	return ctx.Err()
}

// score records everything. It prints the scoreboard as soon as that is known, and writes the page at
// the end.
func score(ctx context.Context, t *tour.Tour, line *progress) error {
	t.Scored = func() {
		line.end()
		line.quiet = true
		t.PrintScore(os.Stdout)
	}
	page, draft, err := newPage()
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name()) // fails if the draft has become the page
	wanted := t.Largest
	why, err := t.LimitCrowd()
	if err != nil {
		return err
	}
	if why != "" {
		line.note("%d waiters %s: so the largest crowd has %d", wanted, why, t.Largest)
	}
	if err := t.Record(ctx); err != nil {
		return err
	}
	line.end()
	err = errors.Join(t.Write(draft), draft.Chmod(0o644), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), page)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	fmt.Fprintf(os.Stderr, "\nSee the runs: file://%s\n", page)
	if open {
		return stage.Open("file://" + page)
	}
	return nil
}

// newPage creates a draft in the folder of the page. It is called before anything is measured, so if
// the page cannot be written, the user learns it at once. An existing page stays until the new one is
// complete.
func newPage() (page string, draft *os.File, err error) {
	if page, err = filepath.Abs(pageFile); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		return "", nil, err
	}
	draft, err = os.CreateTemp(filepath.Dir(page), "tour-*.html")
	return page, draft, err
}

// matrix checks every lock for every property, and prints the verdicts.
func matrix(ctx context.Context, t *tour.Tour, line *progress) error {
	if err := t.Ask(ctx); err != nil {
		return err
	}
	line.end()
	fmt.Printf("Which lock has which property, on %s\n\n", t.Origin)
	t.PrintMatrix(os.Stdout)
	for _, r := range slices.Concat(t.Answers...) {
		if r.Verdict == property.Stuck {
			return errors.New(
				"a ? is a property without a verdict: the machine may be too busy. What the check waited for is printed above",
			)
		}
	}
	return nil
}

// runs records the runs that the chapters of the book play.
func runs(ctx context.Context, t *tour.Tour, _ *progress) error {
	zktest.Buffer = zktest.BufferFor(tour.UsualWaiters)
	text, err := t.RecordRuns(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(tour.RunsFile, text, 0o644)
}

// crowds records the crowds that the pages show.
func crowds(ctx context.Context, t *tour.Tour, _ *progress) error {
	zktest.Buffer = zktest.BufferFor(tour.UsualWaiters)
	text, err := t.RecordHerd(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(herd.File, text, 0o644)
}
