// Command storm lets clients use some locks on three real servers, while servers fall,
// networks fail and processes stop. Then it says what each lock was worth.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"zklock/internal/storm"
)

func main() {
	storm.Client() // this process is one of the clients, if it was started as one
	var chosen storm.Settings
	flag.DurationVar(&chosen.Length, "time", time.Minute, "how long the faults go on")
	flag.Uint64Var(&chosen.Seed, "seed", rand.Uint64N(1_000_000), "which faults come, in which order")
	flag.BoolVar(&chosen.First, "first", false, "end soon after the first mistake of a lock for work")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	isRight, err := storm.Run(ctx, chosen, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !isRight {
		os.Exit(1)
	}
}
