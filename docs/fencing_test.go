package docs

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/upkeep/chapter"
)

// grow tells whether each number is greater than the one before it.
func grow(numbers []int64) bool {
	return slices.IsSorted(numbers) && len(slices.Compact(slices.Clone(numbers))) == len(numbers)
}

// Would the czxid of the holder's own znode do for a token, too?
func TestCzxidAndPzxid(t *testing.T) {
	t.Parallel()
	says := func(order string, czxids, pzxids []int64) {
		t.Helper()
		chapter.SaysIn(t, "fencing.md",
			"three holders, %s: the czxids of their znodes grow: %v; the Pzxids that they read grow: %v",
			order, grow(czxids), grow(pzxids))
	}

	z := zktest.New(t)
	line := []*zktest.Turn{step5.Join(z, "A").Acquire()}
	for _, name := range []string{"B", "C"} {
		waiter := step5.Join(z, name).Start()
		waiter.MustWait("A holds the lock")
		line = append(line, waiter)
	}
	var czxids, pzxids []int64
	for _, turn := range line {
		token, _ := turn.Token(turn.Held())
		_, stat, err := turn.Exists(turn.Znode())
		require.NoError(t, err)
		czxids, pzxids = append(czxids, stat.Czxid), append(pzxids, token)
		turn.Release()
	}
	says("served in the order in which they came", czxids, pzxids)

	// A lock could serve the urgent first: then C comes before B. Each lists when it is
	// served, and leaves after that.
	z = zktest.New(t)
	c := z.Client("all three")
	var queue []string
	for range 3 {
		queue = append(queue, create(t, c, z.Root+"/lock-", zk.FlagEphemeralSequential))
	}
	czxids, pzxids = nil, nil
	for _, served := range []string{queue[0], queue[2], queue[1]} {
		_, directory, err := c.Children(z.Root)
		require.NoError(t, err)
		_, own, err := c.Exists(served)
		require.NoError(t, err)
		czxids, pzxids = append(czxids, own.Czxid), append(pzxids, directory.Pzxid)
		require.NoError(t, c.Delete(served, -1))
	}
	says("the last of them before the second", czxids, pzxids)
}
