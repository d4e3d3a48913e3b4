// Command hold shows a lock in terminals, one for each client: "zk" keeps a server,
// and "hold" takes a step's lock there and says what it does. The make targets zk
// and hold call it, from the root of the repository.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

const usage = `usage, from the root of the repository:
  go run ./internal/hold zk               keep a server until Ctrl-C
  go run ./internal/hold hold 04 a        take step 4's lock as a
  go run ./internal/hold hold 06 a read   take step 6's lock as a reader`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	if err := do(ctx, stop, args); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func do(ctx context.Context, stop func(), args []string) error {
	switch {
	case len(args) == 1 && args[0] == "zk":
		return keep(ctx)
	case len(args) < 2 || len(args) > 4 || args[0] != "hold" || len(args) == 4 && args[3] != "read":
		return errors.New(usage)
	}
	step, err := strconv.Atoi(args[1])
	reader := len(args) == 4
	switch {
	case err != nil || step < 1 || step > 6:
		return fmt.Errorf("STEP=%s: there are the steps 01 to 06", args[1])
	case reader && step != 6:
		return fmt.Errorf("READ with STEP=%s: only step 6 has readers", args[1])
	}
	name := fmt.Sprintf("p%d", os.Getpid())
	if len(args) > 2 {
		name = cmp.Or(args[2], name)
	}
	return hold(ctx, stop, step, name, reader)
}
