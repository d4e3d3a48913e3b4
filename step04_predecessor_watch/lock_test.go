package predecessorwatch

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = property.Over("step 4", New)

func init() { lock.NotHeld = ErrNotHeld }

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) {
	property.Holds(t, lock,
		// new in this step
		property.WakesOne,
		property.ArrivalWakesNobody,
		// as in step 3
		property.OneHolder,
		property.CrashFrees,
		property.FirstCome,
		property.NoStranger,
		property.GivingUp,
		property.Unrelated,
		property.WaiterCrash,
		property.SilentWait,
		property.NoWatchLeft,
		property.LongHold,
		property.ParentsMade,
		property.ManyShare,
		property.WhateverIsInIt,
		property.LostWhileWaiting,
		property.ReleaseSeen,
		property.FailsClean,
		property.UnlockRepeated,
		property.LostTold,
		property.UnlockTooMany,
		property.QuietAfter,
		property.OwnPlace,
		property.OldZnode,
		property.NotBeside,
		property.ReleasedWhileCutOff,
	)
	property.Lacks(t, lock,
		property.LostCreateReply,
		property.LostDeleteReply,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.Shared,
		property.LineBreaks,
		property.GivesUpAtOnce,
	)
}

// Numbers are compared, never names. A child that is not of the queue counts for nothing.
func TestPredecessor(t *testing.T) {
	for _, c := range []struct {
		children []string
		mine     string
		want     string
	}{
		{[]string{"lock-0000000007"}, "lock-0000000007", ""},
		{[]string{"lock-0000000008", "lock-0000000007"}, "lock-0000000007", ""},
		{[]string{"lock-0000000000", "lock-0000000001"}, "lock-0000000001", "lock-0000000000"},
		{[]string{"lock-0000000002", "lock-0000000009", "lock-0000000005"}, "lock-0000000009", "lock-0000000005"},
		{[]string{"lock-9999999999", "lock-10000000000"}, "lock-10000000000", "lock-9999999999"},
		{[]string{"config", "lock-", "lock-x", "0000000001", "lock-0000000002"}, "lock-0000000002", ""},
	} {
		got, err := predecessor(c.children, c.mine)
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "right before %s among %v", c.mine, c.children)
	}
}

func TestPredecessorNeedsItsOwnZnode(t *testing.T) {
	_, err := predecessor([]string{"lock-0000000003"}, "lock-0000000002")
	assert.ErrorIs(t, err, zk.ErrNoNode, "our znode is not in the list, so it is nobody's turn")
}

// A server that reads a request of more than 1 MB hangs up.
func TestAPathLongerThanARequestIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := lock.JoinAs(z, "A", property.Seat{Path: z.Root + "/" + strings.Repeat("k", 1_100_000)})
	err := a.Start().Err()
	require.ErrorContains(t, err, "bytes, and 500000 are the most")
	assert.Less(t, len(err.Error()), 200, "bytes of the error: it does not repeat the path")
	assert.Empty(t, a.Asked(0), "requests")
}
