package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/show/page"
)

// What of docs/benchmark.md does not depend on the machine: requests, writes and bytes
// of a turn, with nobody else and with a queue.
func TestWhatATurnTakesIsWhatThePageSays(t *testing.T) {
	text, err := os.ReadFile("../../../docs/benchmark.md")
	require.NoError(t, err)
	server, err := zktest.Shared()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	queues := []string{"zk.Lock", "step 4", "step 4, looks one release early", "step 5", "step 6, as a writer"}
	asked := 0
	for _, said := range page.ReadBenchmark(string(text)) {
		if said.Contenders > 8 || !slices.Contains(queues, said.Lock) {
			continue
		}
		asked++
		i := slices.IndexFunc(ours, func(r rival) bool { return r.name == said.Lock })
		got := stage{t, ctx, server}.count(ours[i], said.Contenders)
		assert.InEpsilon(t, said.Requests, got.requests, 0.15, "%s, contenders %d: requests", said.Lock, said.Contenders)
		assert.InEpsilon(t, said.Writes, got.writes, 0.15, "%s, contenders %d: writes", said.Lock, said.Contenders)
		assert.InEpsilon(t, said.ReplyBytes, got.received, 0.15, "%s, contenders %d: reply bytes", said.Lock, said.Contenders)
	}
	assert.Equal(t, 2*len(queues), asked, "the page's rows")
}
