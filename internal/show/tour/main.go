// Command tour measures all steps side by side on a real ZooKeeper, prints the
// scoreboard and writes a page; "tour matrix" prints which lock has which
// property, and "tour figures" draws the chapters' pictures.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/page"
	"zklock/internal/show/setting"
	"zklock/internal/upkeep/words"
)

func main() { os.Exit(run(os.Args[1:])) }

// parts are what can be asked for.
var parts = map[string]func(context.Context, *page.Tour) error{"": score, "matrix": matrix, "figures": figures}

func run(args []string) int {
	locks, err1 := chosen(os.Getenv("STEPS"))
	largest, err2 := setting.Number("WAITERS", usualWaiters, fewestWaiters, 10000)
	err := errors.Join(err1, err2)
	part := parts[strings.Join(args, " ")]
	if part == nil {
		err = errors.Join(err, words.Errorf("usage: tour [matrix | figures], and not %s", strings.Join(args, " ")))
	}
	if err != nil {
		words.Fprintln(os.Stderr, err)
		return 1
	}

	ctx, stop := process.UntilStopped()
	defer stop()
	say := progress()
	say("looking for a ZooKeeper")
	server, err := zkserver.Start(ctx)
	if err == nil {
		defer server.Stop()
		say = progress() // another one: this line is not to be left out
		say("%s", server.Origin)
		tour := &page.Tour{Recording: page.Recording{Locks: locks, Largest: largest}, Server: server, Say: say}
		err = untilDone(ctx, func() error { return part(ctx, tour) })
	}
	switch {
	case ctx.Err() != nil:
		say("")
		words.Fprintln(os.Stderr, "stopped")
		return process.Stopped
	case err != nil:
		say("")
		words.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// chosen returns the locks of the steps in a list such as "3,4", and the
// client's own lock. An empty list names all.
func chosen(steps string) (locks []page.Step, err error) {
	var wanted []string
	for step := range strings.SplitSeq(steps, ",") {
		step = strings.TrimLeft(strings.TrimSpace(step), "0")
		if steps != "" && !slices.ContainsFunc(page.Steps, func(s page.Step) bool { return s.Key == step }) {
			return nil, words.Errorf("STEPS=%s: there is no step %q", steps, step)
		}
		wanted = append(wanted, step)
	}
	for _, lock := range page.Locks {
		isWanted := steps == "" || slices.Contains(wanted, lock.Key[:1])
		if isWanted || lock.Key == page.ClientLock.Key {
			locks = append(locks, lock)
		}
	}
	return locks, nil
}

// untilDone returns when the work is done, or at once when ctx ends. On a
// server that is not ours, what has been begun is brought to its end then, so
// that nothing is left on it; a second Ctrl-C does without.
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
		words.Fprintln(os.Stderr, "\nleaving nothing behind on the server; Ctrl-C again to end at once")
		select {
		case <-done:
		case <-again.Done():
		}
	}
	return ctx.Err()
}

// score records everything: the scoreboard is printed as soon as it is known, and
// the page written to out/tour.html or where PAGE says. OPEN=1 opens it in the
// browser.
func score(ctx context.Context, tour *page.Tour) error {
	tour.Scored = func() {
		tour.Say("")
		tour.PrintScore(os.Stdout)
	}
	limitCrowd(tour)
	if err := tour.Record(ctx); err != nil {
		return err
	}
	tour.Say("")
	file, err := filepath.Abs(cmp.Or(os.Getenv("PAGE"), filepath.Join("out", "tour.html")))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = errors.Join(
		tour.Write(&text),
		os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(file, text.Bytes(), 0o644),
	)
	if err != nil {
		return words.Errorf("write %s: %w", file, err)
	}
	words.Fprintf(os.Stderr, "\nSee it move: file://%s\n", file)
	if err := setting.Open("file://" + file); err != nil {
		words.Fprintln(os.Stderr, err)
	}
	return nil
}

// limitCrowd lets no more come than there is memory for, and says so. A tour that takes
// more is killed by the system, without a word.
func limitCrowd(tour *page.Tour) {
	wanted := tour.Largest
	if free, known := availableMemory(); known && takes(wanted) > free {
		tour.Largest = fitting(wanted, free)
		tour.Say("")
		words.Fprintf(
			os.Stderr,
			"%d waiters would take %d MB of memory, and %d MB are free: so the largest crowd has %d\n",
			wanted,
			takes(wanted)/megabyte,
			free/megabyte,
			tour.Largest,
		)
	}
	zktest.Buffer = bufferFor(tour.Largest)
}

// matrix holds every lock against every property and prints the answers.
func matrix(ctx context.Context, tour *page.Tour) error {
	if err := tour.Ask(ctx); err != nil {
		return err
	}
	tour.Say("")
	words.Fprintf(os.Stdout, "Which lock has which property, on %s\n\n", tour.Origin)
	tour.PrintMatrix(os.Stdout)
	for _, r := range slices.Concat(tour.Answers...) {
		if r.Verdict == property.Stuck {
			return errors.New(
				"a ? is a question that got no answer: the machine may be too busy; what was waited for stands above",
			)
		}
	}
	return nil
}

// figures draws the chapters' pictures into docs/figures.
func figures(ctx context.Context, tour *page.Tour) error {
	tour.Locks, tour.Largest = page.Steps, 300
	if err := tour.Record(ctx); err != nil {
		return err
	}
	tour.Say("")
	benched, err := page.ReadBenched(page.BenchedFile)
	if err != nil {
		return err
	}
	for _, d := range append(tour.Figures(), page.BenchmarkFigures(benched)...) {
		for extension, text := range map[string]string{".svg": d.File().EN, ".zh-CN.svg": d.File().ZH} {
			file := filepath.Join("docs/figures", d.Name+extension)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
			fmt.Println(file)
		}
	}
	runs, err := tour.Runs()
	if err != nil {
		return err
	}
	const file = "docs/figures/runs.json"
	fmt.Println(file)
	return os.WriteFile(file, runs, 0o644)
}

// progress tells what is going on at the moment; "" takes it back. It writes to
// stderr: in a terminal, over and over into one line, and else a line a second.
func progress() func(format string, args ...any) {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	var last time.Time
	return func(format string, args ...any) {
		text := []rune(words.Sprintf(format, args...))
		switch {
		case terminal:
			fmt.Fprint(os.Stderr, "\r\x1b[K"+string(text[:min(len(text), 79)]))
		case len(text) > 0 && time.Since(last) >= time.Second:
			last = time.Now()
			fmt.Fprintln(os.Stderr, string(text))
		}
	}
}
