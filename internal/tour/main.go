// Command tour measures all steps side by side on a real ZooKeeper and prints
// the scoreboard; "tour matrix" prints which lock has which property.
//
// STEPS=3,4 narrows it to some steps. WAITERS=200 changes the largest crowd,
// which is 1000.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/zkserver"
)

func main() { os.Exit(run(os.Args[1:])) }

// promises are the properties that the scoreboard shows.
var promises = []*lockcheck.Property{
	lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger, lockcheck.LostCreateReply, lockcheck.LocksAgain,
}

func run(args []string) int {
	columns, err1 := chosen(os.Getenv("STEPS"))
	crowds, err2 := crowdsUpTo(cmp.Or(os.Getenv("WAITERS"), "1000"))
	err := errors.Join(err1, err2)
	matrix := slices.Equal(args, []string{"matrix"})
	if len(args) > 0 && !matrix {
		err = errors.Join(err, fmt.Errorf("usage: tour [matrix], and not %s", strings.Join(args, " ")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := progress()
	say("looking for a ZooKeeper")
	server, err := zkserver.Start(ctx)
	if err == nil {
		defer server.Stop()
		say = progress() // another one: this line is not to be left out
		say("%s", server.Origin)
		err = untilDone(ctx, func() error {
			if matrix {
				return tourMatrix(server, columns, say)
			}
			return tour(ctx, server, columns, crowds, say)
		})
	}
	switch {
	case ctx.Err() != nil:
		say("")
		fmt.Fprintln(os.Stderr, "stopped")
		return 130 // as a shell has it for Ctrl-C
	case err != nil:
		say("")
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// crowdsUpTo returns how many clients wait, in three crowds or fewer.
func crowdsUpTo(largest string) ([]int, error) {
	n, err := strconv.Atoi(largest)
	if err != nil || n < 10 {
		return nil, fmt.Errorf("WAITERS=%s: this must be a number, and at least 10", largest)
	}
	crowds := []int{10, 100, n}
	slices.Sort(crowds)
	crowds = slices.Compact(crowds)
	return crowds[:slices.Index(crowds, n)+1], nil
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
		again, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		fmt.Fprintln(os.Stderr, "\nleaving nothing behind on the server; Ctrl-C again to end at once")
		select {
		case <-done:
		case <-again.Done():
		}
	}
	return ctx.Err()
}

// tour measures and prints the scoreboard, and writes the page.
func tour(ctx context.Context, server *zkserver.Server, columns []column, crowds []int, say sayer) error {
	score, err := measure(ctx, server, columns, crowds, say)
	if err != nil {
		return err
	}
	say("")
	score.print(os.Stdout)
	return writePage(ctx, server, score, say)
}

// measure runs all measurements, one after the other, so that none disturbs
// another.
func measure(ctx context.Context, server *zkserver.Server, columns []column, crowds []int, say sayer) (Score, error) {
	score := Score{Origin: server.Origin, Began: time.Now(), Crowds: crowds, Columns: columns}
	for _, c := range columns {
		numbers, err := c.measure(ctx, server, crowds, say)
		if err != nil {
			return score, err
		}
		score.Numbers = append(score.Numbers, numbers)
	}
	for i, answers := range check(server, subjects(columns), promises, say) {
		score.Numbers[i].Answers = answers
	}
	score.Took = time.Since(score.Began)
	return score, nil
}

// measure measures one lock, but for the properties.
func (c column) measure(ctx context.Context, server *zkserver.Server, crowds []int, say sayer) (n Numbers, err error) {
	n.Subject = c.subject.Name
	say("%s, %s: one client alone", n.Subject, c.title)
	if n.Alone, err = measureAlone(server, c.subject); err != nil {
		return n, fmt.Errorf("%s, one client alone: %w", n.Subject, err)
	}
	for _, waiters := range crowds {
		if len(n.Crowds) > 0 && n.Crowds[0].Polls && waiters > 100 {
			continue // the server would do nothing but answer them
		}
		crowd, err := measureCrowd(server, c.subject, waiters, func(what string) {
			say("%s, %s: %s clients: %s", n.Subject, c.title, number(waiters), what)
		})
		switch {
		case ctx.Err() != nil:
			return n, ctx.Err()
		case err != nil && os.Getenv("ZK_SERVERS") != "":
			err = fmt.Errorf("%w\n(a server allows 60 connections from one machine, unless its maxClientCnxns says otherwise: try WAITERS=50)", err)
			fallthrough
		case err != nil:
			return n, fmt.Errorf("%s, %s clients: %w", n.Subject, number(waiters), err)
		}
		n.Crowds = append(n.Crowds, crowd)
	}
	return n, nil
}

// tourMatrix holds every lock against every property and prints the answers.
func tourMatrix(server *zkserver.Server, columns []column, say sayer) error {
	results := check(server, subjects(columns), lockcheck.Properties, say)
	say("")
	fmt.Printf("Which lock has which property, on %s\n\n", server.Origin)
	printMatrix(os.Stdout, lockcheck.Properties, columns, results)
	for _, r := range slices.Concat(results...) {
		if r.Verdict == lockcheck.Stuck {
			return errors.New("a ? is a question that got no answer: the machine may be too busy; what was waited for stands above")
		}
	}
	return nil
}

// A sayer tells what is going on at the moment; "" takes it back.
type sayer func(format string, args ...any)

// progress writes to stderr: in a terminal, over and over into one line, and
// else a line a second.
func progress() sayer {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	var last time.Time
	return func(format string, args ...any) {
		text := []rune(fmt.Sprintf(format, args...))
		switch {
		case terminal:
			fmt.Fprint(os.Stderr, "\r\x1b[K"+string(text[:min(len(text), 79)]))
		case len(text) > 0 && time.Since(last) >= time.Second:
			last = time.Now()
			fmt.Fprintln(os.Stderr, string(text))
		}
	}
}
