// Command play serves a page to play with the locks: real clients, processes of their
// own, on a real ZooKeeper, with the steps' own code or the learner's. Without a lesson
// and a lock the page begins with the choice of a lesson.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"zklock/internal/play"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/setting"
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
	servers, err1 := setting.Read("SERVERS", "1", "1 or 3", func(text string) (string, error) {
		if text != "1" && text != "3" {
			return "", errors.New("neither")
		}
		return text, nil
	})
	opening, err2 := play.ReadOpening()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var server *zkserver.Server
	var ensemble *zkserver.Ensemble
	if servers == "1" { // of three, one that comes back gets a whole copy: see leased/README.md, "The storm"
		server, err = zkserver.Start(ctx)
	} else if ensemble, err = zkserver.StartEnsemble(ctx, 3, "forceSnapshotSync=true"); err == nil {
		server = ensemble.Server
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	address, end, err := play.Serve(ctx, opening, server, ensemble)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	fmt.Printf("%s\nPlay: %s\nCtrl-C ends it, and leaves nothing behind.\n", server.Origin, address)
	if err := setting.Open(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	<-ctx.Done()
	fmt.Println("\nending all clients")
	return nil
}
