// Command storm lets twelve clients in three processes use four locks on an
// ensemble of three real servers, while servers fall, networks fail and
// processes stop. Afterwards it counts what each lock's promises were worth.
//
// What happens is the seed's: the same faults in the same order. When exactly
// each one hits is the machine's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"zklock/internal/zktest"
)

func main() {
	zktest.Child("worker", work)
	length := flag.Duration("time", time.Minute, "how long the faults go on")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "which faults")
	atFirst := flag.Bool("first", false, "end at the first violation in steps 5 and 6")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	s, err := run(ctx, *length, *seed, *atFirst, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
	s.print(os.Stdout)
	if n := violations(s.breaches); n > 0 {
		fmt.Printf("\n%d violations in steps 5 and 6: make storm TIME=%v SEED=%d makes the same faults again\n", n, *length, *seed)
		os.Exit(1)
	}
	fmt.Printf("\nno violation in steps 5 and 6, seed %d\n", *seed)
}
