// Command storm lets clients use some locks on three real servers, while servers crash,
// networks fail and processes are paused. Then it prints how each lock has done.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"zklock/internal/process"
	"zklock/leased/storm"
)

func main() {
	storm.Client() // this process is one of the clients, if it was started as one
	var chosen storm.Settings
	flag.DurationVar(&chosen.Length, "time", time.Minute, "how long the faults go on")
	flag.Uint64Var(&chosen.Seed, "seed", rand.Uint64N(1_000_000), "which faults come, in which order")
	flag.BoolVar(&chosen.First, "first", false, "end soon after the first mistake of a production lock")
	err := process.ParseFlags(flag.CommandLine, os.Args[1:])
	ctx, stop := process.UntilStopped()
	defer stop()
	isRight := false
	if err == nil {
		isRight, err = storm.Run(ctx, chosen, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !isRight {
		os.Exit(1)
	}
}
