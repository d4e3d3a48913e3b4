// Command zk keeps a ZooKeeper server running, and shows a lock in terminals, one terminal for each
// client. It runs in the root of the repository:
//
//	go run ./internal/cmd/zk                     keep a server until Ctrl-C
//	go run ./internal/cmd/zk -step 4 -name a     take step 4's lock there, as a
//	go run ./internal/cmd/zk -step 6 -read       take step 6's lock, as a reader
//	go run ./internal/cmd/zk install             install a ZooKeeper, if none is there
//	go run ./internal/cmd/zk with go test ./…    run a command that finds one server by ZK_SERVERS
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"

	"zklock/internal/process"
	"zklock/internal/steps"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code.
func run(args []string) int {
	ctx, stop := process.UntilStopped()
	defer stop()
	err := do(ctx, stop, args)
	if err == nil || ctx.Err() != nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func do(ctx context.Context, stop func(), args []string) error {
	flags := flag.NewFlagSet("zk", flag.ContinueOnError)
	step := flags.String("step", "", "the `number` of the step whose lock is taken")
	name := flags.String("name", "", "the client's `name`")
	read := flags.Bool("read", false, "take the lock as a reader")
	if err := process.ParseFlags(flags, args); err != nil {
		return err
	}
	number, err := strconv.Atoi(*step)
	switch {
	case flags.Arg(0) == "install":
		return installIfMissing(ctx)
	case flags.Arg(0) == "with":
		return with(ctx, flags.Args()[1:])
	case flags.NArg() > 0:
		return fmt.Errorf("zk %s: there are only zk install and zk with", flags.Arg(0))
	case *step == "":
		return keep(ctx)
	case err != nil || number < 1 || number > len(steps.All):
		return fmt.Errorf("STEP=%s: want a step from 1 to %d", *step, len(steps.All))
	}
	anyName := fmt.Sprintf("p%d", os.Getpid())
	return take(ctx, stop, number, cmp.Or(*name, anyName), *read)
}
