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
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	if anew {
		return record(ctx, server, scratch)
	}
	fmt.Printf("%s\n%d clients take the lock once each; faults in an interleaving: at most %d\n",
		chosen.Name, settings.Clients, settings.Faults)
	begun := time.Now()
	result, err := play(ctx, server, program, settings)
	isStopped := ctx.Err() != nil
	if err != nil && !isStopped {
		return err
	}
	report(os.Stdout, result, time.Since(begun), isStopped)
	if !isStopped {
		err = invite(chosen, result, settings)
	}
	answers(os.Stdout, result)
	return err
}

// invite writes the page on which the reader looks for the answers himself, and prints its address.
func invite(chosen locks.Choice, result explore.Result, settings explore.Settings) error {
	if len(result.Runs) == 0 {
		fmt.Println("\nThese are too many interleavings to play on a page: try fewer clients, or SWITCHES=1")
		return nil
	}
	page, err := explorer.Explored(chosen, result, settings)
	if err == nil {
		err = draw(page)
	}
	if err != nil {
		return err
	}
	drawn, err := filepath.Abs(drawing)
	if err != nil {
		return err
	}
	fmt.Printf("\nTo play the network yourself: file://%s\n", drawn)
	if open {
		return stage.Open("file://" + drawn)
	}
	return nil
}

// play plays all interleavings of a program's lock.
func play(ctx context.Context, server *zkserver.Server, program locks.Program, s explore.Settings) (
	result explore.Result, err error) {
	s.Points = true
	s.Znode = program.Lock.Znode
	s.WakesOne = !program.Lock.Herd && s.Readers == 0
	err = zktest.Tell(func(t zktest.T) {
		z := zktest.NewOn(t, server)
		s.Servers, s.Root = z.Servers(), z.Root
		players, err := explore.Start(processes, s, program.Part, program.Path, program.Args...)
		if err != nil {
			t.Fatalf("%v", err)
		}
		result, err = explore.Explore(ctx, players, progress())
		if err = errors.Join(err, explore.End(players)); err != nil {
			t.Fatalf("%v", err)
		}
	})
	return result, err
}

// record plays the games of the book's page anew, and writes them where they are committed.
func record(ctx context.Context, server *zkserver.Server, scratch string) error {
	for _, key := range explorer.Committed {
		chosen, err := locks.Choose(key)
		if err != nil {
			return err
		}
		program, err := chosen.Program(ctx, ".", exercise.Folder, scratch)
		if err != nil {
			return err
		}
		fmt.Println(chosen.Name)
		result, err := play(ctx, server, program, explorer.AsCommitted)
		if err != nil {
			return err
		}
		game, err := explorer.Grow(result, explorer.AsCommitted)
		if err != nil {
			return err
		}
		if err := explorer.Keep(key, game); err != nil {
			return err
		}
	}
	return nil
}

// drawing is the file of the page on which a reader plays what was explored.
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
	step := flag.String("step", "4", "which lock: 3 to 6, 3w, 5.5 (part A), mutex, rwmutex, cohort, zk, a mistake such as W8, or mine")
	flag.IntVar(&s.Clients, "clients", 2, "how many clients, at most 4")
	flag.IntVar(&s.Readers, "readers", 0, "how many of them read")
	flag.IntVar(&s.Faults, "faults", 1, "the largest number of faults in an interleaving: 0 to 3")
	flag.IntVar(&s.Switches, "switches", explore.Unbound, "the largest number of times that a client is interrupted")
	flag.BoolVar(&open, "open", false, "opens the page")
	flag.BoolVar(&anew, "record", false, "instead: records the games of the book's page anew")
	if err := process.ParseFlags(flag.CommandLine, os.Args[1:]); err != nil {
		return s, l, err
	}
	l, err = locks.Choose(*step)
	if polls := l.Key == "1" || l.Key == "2"; polls {
		err = explore.ErrAsks
	}
	isOutOfRange := s.Clients < 1 || s.Clients > 4 || s.Readers < 0 || s.Readers > 4 || s.Faults < 0 || s.Faults > 3
	if isOutOfRange {
		err = errors.Join(err, errors.New("want 1 to 4 clients, 0 to 4 readers, and 0 to 3 faults"))
	}
	return s, l, err
}

// open says whether to open the page in a browser, and anew whether to record the book's games.
var open, anew bool

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

// report prints how many interleavings there are, and how many are wrong.
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
}

// answers prints the shortest interleaving for each broken invariant.
func answers(out io.Writer, r explore.Result) {
	if r.Wrong == 0 {
		return
	}
	fmt.Fprintf(out, "\nThe answers:\n")
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
