package herd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
)

func TestOfARelease(t *testing.T) {
	begin := time.Now()
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	r := Of(begin, [][]wiretap.Frame{
		{
			{Kind: wiretap.Notification, Path: "/lock", At: after(2), Bytes: 50},
			{Kind: wiretap.Request, Op: wiretap.GetChildren, Path: "/lock", At: after(3), Bytes: 30},
			{Kind: wiretap.Reply, Op: wiretap.GetChildren, Path: "/lock", At: after(5), Bytes: 100},
		},
		{{Kind: wiretap.Notification, Path: "/lock", At: after(4), Bytes: 50}},
		{},
	})
	assert.Equal(t, Release{
		Told: []int{2000, 4000, -1}, Bytes: 200, Sent: [][2]int{{2000, 50}, {4000, 100}, {5000, 200}},
	}, r)
}

// In the recorded crowds step 3 notifies everybody, and step 4 one: the first of the queue.
func TestTheRecordedCrowds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", File))
	require.NoError(t, err)
	var crowds []Crowd
	require.NoError(t, json.Unmarshal(text, &crowds))
	var sizes []int
	for _, c := range crowds {
		sizes = append(sizes, c.Waiters)
		var told [2]int
		for i, r := range c.Releases {
			assert.Len(t, r.Told, c.Waiters)
			for _, at := range r.Told {
				if at >= 0 {
					told[i]++
				}
			}
		}
		assert.Equal(t, [2]int{c.Waiters, 1}, told, "notified in steps 3 and 4, of %d", c.Waiters)
		assert.GreaterOrEqual(t, c.Releases[1].Told[0], 0, "the first of %d is the next holder", c.Waiters)
	}
	assert.Equal(t, []int{10, 30, 100, 300, 1000}, sizes)
}
