// Command command plays every order in which the requests of a few clients of a lock can
// reach the server, with faults, and prints what was wrong.
//
// STEP says which lock: 1w, 3 to 6, cohort, zk, a mistake such as W8, or mine. CLIENTS, READERS, FAULTS
// and SWITCHES bound the orders.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"zklock/internal/check/explore"
	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/setting"
	"zklock/internal/upkeep/words"
)

// processes play the orders. They mostly wait for the server: so there are more than cores.
const processes = 4

func main() {
	for _, s := range steps.Every {
		s.Acts()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	switch {
	case ctx.Err() != nil:
		words.Fprintln(os.Stderr, "stopped")
		os.Exit(130) // as a shell has it for Ctrl-C
	case err != nil:
		words.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	settings, l, err := read()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "zklock-explore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	program, args, err := l.program(ctx, scratch)
	if err != nil {
		return err
	}
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	var result explore.Result
	begun := time.Now()
	err = zktest.Play(func(t zktest.T) {
		z := zktest.NewOn(t, server)
		settings.Servers, settings.Root = z.Servers(), z.Root
		players, err := explore.Start(processes, settings, l.part, program, args...)
		if err != nil {
			t.Fatalf("%v", err)
		}
		words.Fprintf(os.Stdout, "%s: %d clients take the lock once each; faults in an order: at most %d\n",
			l.name, settings.Clients, settings.Faults)
		var failed error
		result, failed = explore.Explore(ctx, players, progress())
		failed = errors.Join(failed, explore.End(players))
		if failed != nil {
			t.Fatalf("%v", failed)
		}
	})
	isStopped := ctx.Err() != nil
	if err != nil && !isStopped {
		return err
	}
	report(result, time.Since(begun), isStopped)
	return nil
}

// read reads what make's variables say.
func read() (s explore.Settings, l lock, err error) {
	l, err1 := setting.Read("STEP", locks["4"], "a lock, such as 3, zk, W8 or mine", find)
	clients, err2 := setting.Number("CLIENTS", 2, 1, 4)
	readers, err3 := setting.Number("READERS", 0, 0, 4)
	faults, err4 := setting.Number("FAULTS", 1, 0, 2)
	switches, err5 := setting.Number("SWITCHES", explore.Unbound, 0, 100)
	s = explore.Settings{Clients: clients, Readers: readers, Faults: faults, Switches: switches}
	s.Znode = l.znode
	s.WakesOne = l.wakesOne && readers == 0
	return s, l, errors.Join(err1, err2, err3, err4, err5)
}

// progress tells from time to time how far it is: in a terminal in one line, else a line
// every ten seconds.
func progress() func(explore.Result) {
	info, err := os.Stderr.Stat()
	isTerminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	begun := time.Now()
	last := begun
	return func(r explore.Result) {
		text := words.Sprintf("played %d orders, of which %d are wrong; begun and not yet played: %d",
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

// report prints what was found: of each invariant that is broken, the shortest order.
func report(r explore.Result, took time.Duration, isStopped bool) {
	perSecond := float64(r.Orders) / took.Seconds()
	if isStopped {
		words.Fprintf(os.Stdout, "\nPlayed %d orders, and there are more.\n", r.Orders)
	} else {
		words.Fprintf(os.Stdout, "Played all %d orders in %.0f s, %.0f a second.\n", r.Orders, took.Seconds(), perSecond)
	}
	if r.Wrong == 0 {
		words.Fprintf(os.Stdout, "All of them are right.\n")
		return
	}
	words.Fprintf(os.Stdout, "Wrong: %d of them.\n", r.Wrong)
	last := ""
	for _, invariant := range r.Broken() {
		f := r.Findings[invariant]
		story := strings.Join(f.Shortest.Tell(), "\n")
		if story == last {
			words.Fprintf(os.Stdout, "\n✗ %s: in %d orders. The shortest is the same one.\n", invariant, f.Orders)
			continue
		}
		words.Fprintf(os.Stdout, "\n✗ %s: in %d orders. The shortest:\n", invariant, f.Orders)
		fmt.Println(story)
		last = story
	}
}
