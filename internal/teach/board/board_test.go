package board

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

// The znode of a client that was killed stays until its session ends. That is no fault of
// the lock, unless it stays for much longer.
func TestADeadHoldersSessionIsGivenItsTime(t *testing.T) {
	b := New()
	b.Dir = "/lock"
	holder, waiter := b.Add(0), b.Add(0)
	holder.Process, waiter.Process = Running, Running
	b.made(0, "/lock/lock-0000000000", holder.Number, 1)
	b.made(0, "/lock/lock-0000000001", waiter.Number, 2)
	waiter.Mood = zktest.MoodWaits
	holder.Process = Dead
	holder.Shows(0)

	b.Warn(1)
	b.Warn(1 + settled)
	require.Len(t, b.Banners, 1)
	require.Contains(t, b.Banners[0].Text.EN, "the server does not know it yet")
	require.Empty(t, b.Banners[0].Property, "nothing is broken")

	b.Warn(overdue)
	b.Warn(overdue + settled)
	require.Len(t, b.Banners, 1)
	require.Equal(t, property.CrashFrees.Name.EN, b.Banners[0].Property)
}
