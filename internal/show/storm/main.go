// Command storm lets twelve clients in three processes use four locks on an
// ensemble of three real servers, while servers fall, networks fail and
// processes stop. Afterwards it counts what each lock's promises were worth.
//
// What happens is the seed's: the same faults in the same order. When exactly
// each one hits is the machine's.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"zklock/internal/server/process"
	"zklock/internal/show/setting"
)

func main() {
	process.Role("client", func(conductor process.Call) any { return begin(conductor) })
	ctx, cancel := process.UntilStopped()
	defer cancel()
	chosen, err := read()
	var s *storm
	if err == nil {
		s, err = run(ctx, chosen, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.print(os.Stdout)
	if n := violations(s.breaches); n > 0 {
		fmt.Fprintf(
			os.Stdout,
			"\n%d violations in steps 5 and 6: make storm %s makes the same faults again\n",
			n,
			chosen.again(),
		)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "\nno violation in steps 5 and 6, seed %d\n", chosen.seed)
}

// Settings are what the command's variables choose.
type settings struct {
	length  time.Duration // how long the faults go on
	seed    uint64        // which faults, in which order
	atFirst bool          // it is over soon after the first violation
}

// read reads the command's variables.
func read() (settings, error) {
	length, err1 := setting.Read("TIME", time.Minute, "a time such as 60s or 10m", time.ParseDuration)
	seed, err2 := setting.Number("SEED", int(time.Now().UnixNano()%1_000_000), 0, 999_999_999)
	first, err3 := setting.Number("FIRST", 0, 0, 1)
	return settings{length, uint64(seed), first == 1}, errors.Join(err1, err2, err3)
}

// again is what to type for the same faults.
func (s settings) again() string {
	return fmt.Sprint("TIME=", s.length, " SEED=", s.seed)
}
