package main

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"strings"
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
	rows, err := page.ReadBenched("../../../" + page.BenchedFile)
	require.NoError(t, err)
	server, err := zktest.Shared()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	queues := []string{"zk.Lock", "step 4", "step 4, looks one release early", "step 5", "step 6, as a writer"}
	asked := 0
	for _, said := range rows {
		if said.Contenders > 8 || !slices.Contains(queues, said.Lock) {
			continue
		}
		asked++
		i := slices.IndexFunc(ours, func(r rival) bool { return r.name == said.Lock })
		var requests, writes, received []float64
		for range 3 { // on a busy machine a contender comes back late at times, and finds a shorter queue
			got := stage{t, ctx, server}.count(ours[i], said.Contenders)
			requests = append(requests, got.requests)
			writes = append(writes, got.writes)
			received = append(received, got.received)
		}
		for _, measure := range []struct {
			name string
			said float64
			got  []float64
		}{
			{"requests", said.Requests, requests},
			{"writes", said.Writes, writes},
			{"reply bytes", said.ReplyBytes, received},
		} {
			assert.InEpsilon(t, measure.said, nearest(measure.said, measure.got), 0.15,
				"%s, contenders %d: %s, of %v", said.Lock, said.Contenders, measure.name, measure.got)
		}
	}
	assert.Equal(t, 2*len(queues), asked, "the page's rows")
}

// nearest is the value that is nearest to what was said.
func nearest(said float64, values []float64) float64 {
	return slices.MinFunc(values, func(a, b float64) int { return cmp.Compare(math.Abs(a-said), math.Abs(b-said)) })
}

// The page quotes the rows from which the charts are drawn.
func TestThePageQuotesTheRowsOfTheCharts(t *testing.T) {
	rows, err := page.ReadBenched("../../../" + page.BenchedFile)
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	text, err := os.ReadFile("../../../docs/benchmark.md")
	require.NoError(t, err)
	_, quoted, _ := strings.Cut(string(text), page.BenchedHead().EN+"\n")
	for _, row := range rows {
		_, below, found := strings.Cut(quoted, row.Text().EN+"\n")
		require.True(t, found, "the page does not quote, in its place: %s", row.Text())
		quoted = below
	}
}
