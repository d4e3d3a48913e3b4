// Command play serves a page on which one can try the locks by hand. The clients are processes of
// their own on a real ZooKeeper, and run the steps' own code or the learner's. Without the flags
// -lesson, -left and -right, the page begins with the choice of a lesson.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"zklock/internal/lab/book"
	"zklock/internal/lab/play"
	"zklock/internal/lab/stage"
	"zklock/internal/process"
	"zklock/internal/zkserver"
)

func main() {
	play.Part()
	ctx, stop := process.UntilStopped()
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	servers := flag.Int("servers", 1, "1, or 3, which can fail")
	lesson := flag.Int("lesson", 0, "begins with this lesson")
	left := flag.String("left", "",
		"the lock on the left: a step, mutex, rwmutex, cohort, zk, a mistake such as W8, or mine")
	right := flag.String("right", "", "the lock on the right")
	open := flag.Bool("open", false, "opens the page in a browser")
	anew := flag.Bool("record", false, "instead: records the pauses of lesson 5 anew")
	if err := process.ParseFlags(flag.CommandLine, os.Args[1:]); err != nil {
		return err
	}
	opening, err := play.NewOpening(*lesson, *left, *right)
	if *servers != 1 && *servers != 3 {
		err = errors.Join(err, fmt.Errorf("SERVERS=%d: it must be 1 or 3", *servers))
	}
	if err != nil {
		return err
	}
	var server *zkserver.Server
	var ensemble *zkserver.Ensemble
	// With three servers, a restarted server gets a whole copy of the data. leased/operations.md explains
	// why, under "When the servers disagree".
	if *servers == 1 {
		server, err = zkserver.Start(ctx)
	} else if ensemble, err = zkserver.StartEnsemble(ctx, 3, "forceSnapshotSync=true"); err == nil {
		server = ensemble.Server
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if *anew {
		return record(ctx, server)
	}
	address, end, err := play.Serve(ctx, opening, server, ensemble)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	fmt.Printf("%s\nPlay: %s\nCtrl-C ends it, and leaves nothing behind.\n", server.Origin, address)
	if *open {
		if err := stage.Open(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	<-ctx.Done()
	fmt.Println("\nending all clients")
	return nil
}

// record records the pauses that lesson 5 and the book play.
func record(ctx context.Context, server *zkserver.Server) error {
	text, err := play.RecordPauses(ctx, ".", server)
	if err != nil {
		return err
	}
	return os.WriteFile(book.PausesFile, text, 0o644)
}
