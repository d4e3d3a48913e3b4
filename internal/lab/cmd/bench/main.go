// Command bench measures, side by side on one real server, how many turns a second each lock makes
// and what a turn costs. It prints a table in Markdown.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"zklock/internal/lab/bench"
	"zklock/internal/process"
)

func main() {
	sizes := flag.String("contenders", "1,8,32", "how many contend, such as 1,8,32")
	rounds := flag.Int("rounds", 7, "in how many rounds")
	err := process.ParseFlags(flag.CommandLine, os.Args[1:])
	ctx, stop := process.UntilStopped()
	defer stop()
	contenders, wrong := numbers(*sizes)
	if err = errors.Join(err, wrong); err == nil {
		err = bench.Run(ctx, contenders, max(*rounds, 1), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// numbers reads a list such as 1,8,32.
func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("CONTENDERS=%s: it must be numbers above 0, such as 1,8,32", list)
		}
		all = append(all, n)
	}
	return all, nil
}
