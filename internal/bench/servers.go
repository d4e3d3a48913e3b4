package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// servers measures writes with one server and with ensembles of three and five, which
// all share this machine's disk and cores.
func (s stage) servers() {
	const rounds, window = 9, 300 * time.Millisecond
	say("writes with 1, 3 and 5 servers, %d rounds", rounds)
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute)
	defer cancel()
	all, names := []*zkserver.Server{s.server}, []string{"1 server"}
	for _, n := range []int{3, 5} {
		e, err := zkserver.StartServers(ctx, n)
		s.must(err)
		s.Cleanup(func() { _ = e.Stop() })
		all, names = append(all, e.Server), append(names, fmt.Sprintf("%d servers", n))
	}
	line("\nWrites from 1 session, one after the other, and then from %d sessions at once. Rounds: %d.", goroutines, rounds)
	line("  %-24s %10s %8s %14s %10s %8s %14s", "", "a second", "ratio", "", "a second", "ratio", "")
	var rates [2][][]float64 // one at a time, several at once; by servers, by round
	for i, n := range []int{1, goroutines} {
		rates[i] = make([][]float64, len(all))
		writers := make([][]turn, len(all))
		for j, server := range all {
			z := zktest.NewOn(s, server)
			z.Untapped = true
			for c := range n {
				client := z.Client(fmt.Sprintf("client %d", c+1))
				writers[j] = append(writers[j], func(context.Context) error {
					_, err := client.Set(z.Root, nil, -1)
					return err
				})
			}
			s.run(ctx, writers[j], 0)
		}
		for r := range rounds {
			for k := range all {
				j := (r + k) % len(all) // nobody is always the first
				had := s.run(ctx, writers[j], window)
				rates[i][j] = append(rates[i][j], float64(len(had))/took(had).Seconds())
			}
		}
	}
	for j, name := range names {
		row := fmt.Sprintf("  %-24s", name)
		for i := range rates {
			var ratios []float64
			for r := range rounds {
				ratios = append(ratios, rates[i][j][r]/rates[i][0][r])
			}
			row += fmt.Sprintf(" %10.0f %8.2f %14s", median(rates[i][j]), median(ratios), fmt.Sprintf("%.2f to %.2f", slices.Min(ratios), slices.Max(ratios)))
		}
		line("%s", row)
	}
}
