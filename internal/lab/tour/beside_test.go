package tour

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
)

// What the largest crowd does to a client that has nothing to do with the lock, and
// what it costs when many of the crowd expire.
func TestWhatALargeCrowdMeans(t *testing.T) {
	rec := recorded(t)
	crowd := func(key string) *Crowd { return rec.measured(key)[0].Crowd(largest) }
	herd, chain := crowd("3"), crowd("4")
	alive, dead := largest-largest/10, largest/10

	assert.Equal(t, dead, chain.Deaths.Notifications, "step 4: one for each death: to the one behind")
	assert.Equal(t, dead, chain.Deaths.Requests[wiretap.GetChildren], "step 4: one list for each death")
	n := herd.Deaths.Notifications
	assert.GreaterOrEqual(t, n, alive, "step 3: every client that is alive is notified")
	assert.LessOrEqual(t, n, alive*dead, "step 3: every client that is alive is notified of each death at most once")
	assert.Equal(t, n, herd.Deaths.Requests[wiretap.GetChildren], "step 3: a list for each notification")

	assert.Greater(
		t,
		herd.Bystander.times(),
		chain.Bystander.times(),
		"the bystander's median wait, relative to quiet, in steps 3 and 4",
	)
	assert.Greater(
		t,
		herd.Bystander.Meanwhile,
		10*chain.Bystander.Meanwhile,
		"bytes to others in one of its waits, in steps 3 and 4",
	)
}

// The tour has a place on a small machine, its server and a browser beside it: each lock's
// crowd goes before the next one comes, and no client keeps large buffers. The tour takes
// most of what this process takes.
func TestTheTourTakesLittleMemory(t *testing.T) {
	recorded(t)
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, fs.ErrNotExist) || largest < 1000 {
		return // only Linux has this file; and the race detector takes as much again, and more
	}
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(status), "VmHWM:") // the most that was in memory so far
	var kilobytes int
	_, err = fmt.Sscanf(line, "%d kB", &kilobytes)
	require.NoError(t, err)
	t.Logf("%d kB", kilobytes)
	assert.Less(t, kilobytes, 1_000_000, "kilobytes")
}
