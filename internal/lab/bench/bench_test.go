package bench

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/peers"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func newStage(t *testing.T) stage {
	server, err := zktest.Shared()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return stage{t, ctx, server, t.Output()}
}

// What does not depend on the machine: a queue's turn takes three requests when nobody else is
// there, a create, a list and a delete; and five in a queue, where it looks, and waits, and looks
// again.
func TestWhatATurnTakes(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{
		"zk.Lock", "step 4", "step 5", "step 6, as a writer", "leased.Mutex", "leased.RWMutex, as a writer",
	} {
		i := slices.IndexFunc(ours, func(r rival) bool { return r.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		requests, _ := s.count(ours[i], 1)
		assert.InDelta(t, 3, requests, 0.1, "%s, alone", name)
		requests, _ = s.count(ours[i], 8)
		assert.Greater(t, requests, 3.0, "%s, in a queue of 8", name)
		assert.Less(t, requests, 5.2, "%s, in a queue of 8", name)
	}
}

// The goroutines of a process hand the lock on without asking the server.
func TestWhatATurnOfACohortTakes(t *testing.T) {
	cohort := ours[len(ours)-1]
	require.Contains(t, cohort.name, "Cohort")
	requests, _ := newStage(t).count(cohort, 8)
	assert.Less(t, requests, 1.0)
}

// Each contender of each lock has its turn.
func TestEachLockTakesTurns(t *testing.T) {
	s := newStage(t)
	others, missing := s.others()
	if os.Getenv("ZKLOCK_REQUIRE_PEERS") != "" {
		require.Empty(t, missing)
	}
	for _, m := range missing {
		t.Logf("left out: %s", m)
	}
	rivals := slices.Concat(ours, others)
	for i, rounds := range s.rounds(rivals, 2, 1) {
		for _, turns := range rounds {
			had := map[int]bool{}
			for _, turn := range turns {
				had[turn.Client] = true
			}
			assert.Len(t, had, 2, "%s: the contenders that had a turn", rivals[i].name)
			assert.Positive(t, aSecond(turns), rivals[i].name)
		}
	}
}

func TestTheMeasures(t *testing.T) {
	turn := func(client, asked, done int) peers.Turn {
		return peers.Turn{
			Client: client, Asked: time.Duration(asked) * time.Millisecond, Done: time.Duration(done) * time.Millisecond,
		}
	}
	// Client 1 has two turns in a row, and client 2 waits. Its second turn is late.
	turns := round{turn(1, 0, 100), turn(1, 100, 200), turn(2, 0, 300), turn(2, 300, 600)}
	assert.Equal(t, 3/0.5, aSecond(turns))
	assert.InDelta(t, 1.0/3, toAnother(turns), 0.001)
	assert.InDelta(t, 300.0/200, longest(turns), 0.001)
	assert.Equal(t, 2.0, median([]float64{9, 1, 2}))
	assert.Equal(t, []float64{1}, ratios([]round{turns}, []round{turns}))
}
