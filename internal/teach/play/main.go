// Command play serves a page to play with the locks: real clients, processes of their
// own, on a real ZooKeeper, with the steps' own code or the learner's. Without a lesson
// and a lock the page begins with the choice of a lesson.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"zklock/internal/exercise"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/setting"
	"zklock/internal/upkeep/words"
)

func main() {
	part()
	ctx, stop := process.UntilStopped()
	defer stop()
	if err := play(ctx); err != nil && ctx.Err() == nil {
		words.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(ctx context.Context) (err error) {
	servers, err1 := setting.Read("SERVERS", "1", "1 or 3", func(text string) (string, error) {
		if text != "1" && text != "3" {
			return "", errors.New("neither")
		}
		return text, nil
	})
	first, err2 := setting.Number("LESSON", 0, 1, len(lessons))
	opening, err3 := setting.Number("OPENING", 0, 1, len(lessons)) // LESSON's older name
	left, err4 := setting.Read("LEFT", lock{}, "a lock, such as 3, zk, W8 or mine", find)
	right, err5 := setting.Read("RIGHT", lock{}, "a lock, such as 3, zk, W8 or mine", find)
	if right.Key != "" && left.Key == "" {
		left, _ = find("3")
	}
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
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
	s, end, err := begin(ctx, ".", exercise.Folder, server, ensemble)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	address, close, err := s.listen()
	if err != nil {
		return err
	}
	defer close()
	_ = s.goes(func() {
		if n := cmp.Or(first, opening); n > 0 {
			s.open(n)
			return
		}
		s.lay(0, left, 0)
		s.lay(1, right, 0)
	})
	words.Fprintf(os.Stdout, "%s\nPlay: %s\nCtrl-C ends it, and leaves nothing behind.\n", server.Origin, address)
	if err := setting.Open(address); err != nil {
		words.Fprintln(os.Stderr, err)
	}
	<-ctx.Done()
	words.Fprintln(os.Stdout, "\nending all clients")
	return nil
}
