package stage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/actor"
	"zklock/internal/wiretap"
)

// However long clients have polled before an action: a time line begins with the action before it.
func TestPollsPushNoActionOutOfTheTimeline(t *testing.T) {
	r := New()
	waiter := r.Add(0)
	now := 0
	tick := func() int { now++; return now }
	r.Acts(tick(), Action{Do: "lesson"})
	for range 2 * keptFrames {
		poll := actor.Frame{Frame: wiretap.Frame{Kind: wiretap.Request, Op: wiretap.GetChildren}}
		r.Passes(tick, waiter, poll, func() {})
	}
	before := tick()
	r.Acts(before, Action{Do: "kill"})

	story := r.Timeline(tick())
	require.Len(t, story.Phases, 2)
	assert.Equal(t, "lesson", story.Phases[0].Action.Do)
	assert.Equal(t, before-1, story.Phases[1].At, "from the first action to the second")
	assert.Len(t, r.Replay(tick()).Phases, 1, "to be kept: only what is whole")
}

// The znode of a client that was killed stays until its session ends. That is no fault of
// the lock, unless it stays for much longer.
func TestADeadHoldersSessionIsGivenItsTime(t *testing.T) {
	r := New()
	r.Dir = "/lock"
	holder, waiter := r.Add(0), r.Add(0)
	holder.Process, waiter.Process = Running, Running
	r.made(0, "/lock/lock-0000000000", holder.Number, 1)
	r.made(0, "/lock/lock-0000000001", waiter.Number, 2)
	waiter.State = actor.Waits
	holder.Process = Dead
	holder.Shows(0)

	r.Warn(1)
	require.Empty(t, r.Banners, "it may be over in a moment")
	r.Warn(1 + settled)
	require.Len(t, r.Banners, 1)
	require.Equal(t, DeadsYet, r.Banners[0].Wrong)
	require.Empty(t, r.Banners[0].Breaks, "nothing is broken")

	r.Warn(overdue)
	r.Warn(overdue + settled)
	require.Len(t, r.Banners, 1)
	require.Equal(t, DeadsLong, r.Banners[0].Wrong)
	require.Equal(t, CrashFrees, r.Banners[0].Breaks)
}
