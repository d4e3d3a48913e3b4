package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/actor"
)

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
