package main

import (
	"fmt"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/peers"
)

// servers measures writes with one server and with ensembles of three and five, which
// all share this machine's disk and cores.
func (s stage) servers() {
	const rounds, stint = 9, 300 * time.Millisecond
	say("writes with 1, 3 and 5 servers, %d rounds", rounds)
	all := []rival{writers("1 server", s.server)}
	for _, servers := range []struct {
		n    int
		name string
	}{{3, "3 servers"}, {5, "5 servers"}} {
		e, err := zkserver.StartEnsemble(s.ctx, servers.n)
		s.must(err)
		s.Cleanup(func() { _ = e.Stop() })
		all = append(all, writers(servers.name, e.Server))
	}
	line(
		"\nWrites from 1 session, one after the other, and then from %d sessions at once. Rounds: %d.",
		goroutines,
		rounds,
	)
	line("  %-24s %9s %7s %14s %9s %7s %14s", "", "a second", "ratio", "", "a second", "ratio", "")
	one, several := s.rounds(all, 1, rounds, stint, pace)[0], s.rounds(all, goroutines, rounds, stint, pace)[0]
	for i, r := range all {
		line("  %-24s %s %s", r.name, beside(one[i], one[0]), beside(several[i], several[0]))
	}
}

// writers are sessions that write, each to the same znode of a server.
func writers(name string, server *zkserver.Server) rival {
	return rival{name: name, bring: func(s stage, _ *zktest.Zoo, _ string, n int) runner {
		z := zktest.NewOn(s, server)
		z.Untapped = true
		var writes []turn
		for i := range n {
			client := z.Client(fmt.Sprintf("client %d", i+1))
			writes = append(writes, func() error {
				_, err := client.Set(z.Root, nil, -1)
				return err
			})
		}
		return func(d time.Duration) ([]peers.Turn, error) { return takeTurns(writes, d) }
	}}
}
