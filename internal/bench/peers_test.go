package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/page"
	"zklock/internal/zktest"
)

// What of docs/benchmark.md does not depend on the machine: requests, writes and bytes
// of a turn, with nobody else and with a queue.
func TestWhatATurnTakesIsWhatThePageSays(t *testing.T) {
	text, err := os.ReadFile("../../docs/benchmark.md")
	require.NoError(t, err)
	server, err := zktest.Shared()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows := page.ReadBenchmark(string(text))
	for _, n := range []int{1, 8} {
		for _, r := range ours {
			said := page.Benched{}
			for _, row := range rows {
				if row.Lock == r.name && row.Contenders == n {
					said = row
				}
			}
			switch r.name {
			case "zk.Lock", "step 4", "step 4, looks one release early", "step 5", "step 6, as a writer":
				got := stage{t, ctx, server}.count(r, n)
				assert.InEpsilon(t, said.Requests, got.requests, 0.15, "%s, contenders %d: requests", r.name, n)
				assert.InEpsilon(t, said.Writes, got.writes, 0.15, "%s, contenders %d: writes", r.name, n)
				assert.InEpsilon(t, said.ReplyBytes, got.received, 0.15, "%s, contenders %d: reply bytes", r.name, n)
			}
		}
	}
}
