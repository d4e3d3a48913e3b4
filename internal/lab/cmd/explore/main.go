// Command explore plays all interleavings of the requests of a few clients of a lock, with faults, and
// prints what went wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zklock/internal/exercise"
	"zklock/internal/explore"
	"zklock/internal/lab/explorer"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/process"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// processes is how many processes play the interleavings. There may be more than there are cores,
// because they mostly wait for the server.
const processes = 4

func main() {
	for _, s := range locks.Every {
		explore.Acts(s)
	}
	ctx, stop := process.UntilStopped()
	defer stop()
	err := run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "stopped")
		os.Exit(process.Stopped)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	settings, chosen, err := read()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "zklock-explore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	program, err := chosen.Program(ctx, ".", exercise.Folder, scratch)
	if err != nil {
		return err
	}
	settings.Znode = program.Lock.Znode
	settings.WakesOne = !program.Lock.Herd && settings.Readers == 0
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	var result explore.Result
	var took time.Duration
	err = zktest.Tell(func(t zktest.T) {
		z := zktest.NewOn(t, server)
		settings.Servers, settings.Root = z.Servers(), z.Root
		players, err := explore.Start(processes, settings, program.Part, program.Path, program.Args...)
		if err != nil {
			t.Fatalf("%v", err)
		}
		fmt.Printf("%s\n%d clients take the lock once each; faults in an interleaving: at most %d\n",
			chosen.Name, settings.Clients, settings.Faults)
		begun := time.Now()
		var failed error
		result, failed = explore.Explore(ctx, players, progress())
		took = time.Since(begun)
		if failed == nil {
			failed = draw(explorer.Page{
				Origin: server.Origin, Lock: chosen.Name, Result: result, Settings: settings, Record: players[0].Record,
			})
		}
		failed = errors.Join(failed, explore.End(players))
		if failed != nil {
			t.Fatalf("%v", failed)
		}
	})
	isStopped := ctx.Err() != nil
	if err != nil && !isStopped {
		return err
	}
	report(os.Stdout, result, took, isStopped)
	if isStopped {
		return nil
	}
	drawn, err := filepath.Abs(drawing)
	if err != nil {
		return err
	}
	fmt.Printf("\nTo walk through the interleavings yourself: file://%s\n", drawn)
	if open {
		return stage.Open("file://" + drawn)
	}
	return nil
}

// drawing is the file of the page that shows what was found.
const drawing = "out/explore.html"

// draw writes that page.
func draw(p explorer.Page) error {
	if err := os.MkdirAll(filepath.Dir(drawing), 0o755); err != nil {
		return err
	}
	file, err := os.Create(drawing)
	if err != nil {
		return err
	}
	defer file.Close()
	return p.Write(file)
}

// read reads the flags.
func read() (s explore.Settings, l locks.Choice, err error) {
	step := flag.String("step", "4", "which lock: 3 to 6, 3w, mutex, rwmutex, cohort, zk, a mistake such as W8, or mine")
	flag.IntVar(&s.Clients, "clients", 2, "how many clients, at most 4")
	flag.IntVar(&s.Readers, "readers", 0, "how many of them read")
	flag.IntVar(&s.Faults, "faults", 1, "the largest number of faults in an interleaving: 0, 1 or 2")
	flag.IntVar(&s.Switches, "switches", explore.Unbound, "the largest number of times that a client is interrupted")
	flag.BoolVar(&open, "open", false, "opens the page with the shortest wrong interleaving")
	if err := process.ParseFlags(flag.CommandLine, os.Args[1:]); err != nil {
		return s, l, err
	}
	l, err = locks.Choose(*step)
	if polls := l.Key == "1" || l.Key == "2"; polls {
		err = explore.ErrAsks
	}
	isOutOfRange := s.Clients < 1 || s.Clients > 4 || s.Readers < 0 || s.Readers > 4 || s.Faults < 0 || s.Faults > 2
	if isOutOfRange {
		err = errors.Join(err, errors.New("want 1 to 4 clients, 0 to 4 readers, and 0 to 2 faults"))
	}
	return s, l, err
}

// open says whether to open the page in a browser.
var open bool

// progress returns a function that prints from time to time how far the exploration is: in a terminal
// it updates one line, and elsewhere it prints a line every ten seconds.
func progress() func(explore.Result) {
	info, err := os.Stderr.Stat()
	isTerminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	begun := time.Now()
	last := begun
	return func(r explore.Result) {
		text := fmt.Sprintf("played %d interleavings, of which %d are wrong; branches still to play: %d",
			r.Orders, r.Wrong, r.Waiting)
		switch {
		case isTerminal && r.Waiting == 0:
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		case isTerminal && time.Since(last) > 100*time.Millisecond:
			last = time.Now()
			fmt.Fprint(os.Stderr, "\r\x1b[K"+text)
		case !isTerminal && time.Since(last) > 10*time.Second:
			last = time.Now()
			fmt.Fprintln(os.Stderr, text)
		}
	}
}

// report prints what was found, with the shortest interleaving for each broken invariant.
func report(out io.Writer, r explore.Result, took time.Duration, isStopped bool) {
	perSecond := float64(r.Orders) / took.Seconds()
	if isStopped {
		fmt.Fprintf(out, "\nPlayed %d interleavings, and there are more.\n", r.Orders)
	} else {
		fmt.Fprintf(out, "Played all %d interleavings in %.0f s, %.0f a second.\n", r.Orders, took.Seconds(), perSecond)
	}
	if r.Wrong == 0 {
		fmt.Fprintf(out, "All of them are right.\n")
		return
	}
	fmt.Fprintf(out, "Wrong: %d of them.\n", r.Wrong)
	last := ""
	for _, invariant := range r.Broken() {
		f := r.Findings[invariant]
		story := strings.Join(f.Shortest.Tell(), "\n")
		if story == last {
			fmt.Fprintf(out, "\n✗ %s: in %d interleavings. The shortest is the one above.\n", invariant, f.Orders)
			continue
		}
		fmt.Fprintf(out, "\n✗ %s: in %d interleavings. The shortest:\n", invariant, f.Orders)
		fmt.Fprintln(out, story)
		last = story
	}
}
