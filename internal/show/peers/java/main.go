// Command java shows a Java client, Curator's InterProcessMutex, and a Go client,
// step 5, that hand one lock to and fro on a real ZooKeeper.
package main

import (
	"fmt"
	"os"
	"slices"

	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/show/peers"
)

const turns = 3

func main() {
	err := peers.Missing()
	if err != nil {
		err = fmt.Errorf("no Curator here: make peers, or %w", err)
	} else {
		err = zktest.Play(toAndFro)
	}
	if server, _ := zktest.Shared(); server != nil {
		_ = server.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func toAndFro(t zktest.T) {
	z := zktest.New(t)
	ours := steps.All[4].Join(z, "Go")
	theirs := peers.Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	show := func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, format+"\n", args...)
		names := ours.Queue()
		slices.SortFunc(names, zktest.BySequence)
		for _, name := range names {
			owner, there := z.Owner(ours.Path + "/" + name)
			who := "Java"
			if owner == ours.SessionID() {
				who = "Go"
			}
			if there {
				fmt.Fprintf(os.Stdout, "    %-4s  session %#x  %s\n", who, owner, name)
			}
		}
		fmt.Println()
	}
	both := func() bool { return len(ours.Queue()) == 2 }
	held := ours.Acquire()
	for range turns {
		theirs.Begin("lock")
		z.Await("Java to queue", both)
		show("Go holds the lock, and Java waits:")
		held.Release()
		if !theirs.Done() {
			t.Fatalf("Java did not get the lock")
		}
		held = ours.Start()
		z.Await("Go to queue", both)
		show("Java holds the lock, and Go waits:")
		theirs.Begin("unlock")
		if !theirs.Done() {
			t.Fatalf("Java did not release the lock")
		}
		held.Acquired()
	}
	held.Release()
	show("Each had it %d times. The queue is empty.", turns)
}
