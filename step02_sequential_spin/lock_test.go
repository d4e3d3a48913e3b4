package sequentialspin

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", lock.Hold)
	zktest.Main(m)
}

var lock = property.Over("step 2", New)

func init() { lock.NotHeld = ErrNotHeld }

// The first test to speak: when a line of lock.go is broken, the properties say
// what it was good for.
func TestProperties(t *testing.T) {
	property.Holds(t, lock,
		// new in this step
		property.CrashFrees,
		property.FirstCome,
		property.NoStranger,
		property.WaiterCrash,
		property.NotBeside,
		// as in step 1
		property.OneHolder,
		property.GivingUp,
		property.Unrelated,
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
	)
	property.Lacks(t, lock,
		property.SilentWait,
		property.LostCreateReply,
		property.LostDeleteReply,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.Shared,
		property.LineBreaks,
		property.GivesUpAtOnce,
	)
	property.DoesNotArise(t, lock, property.WakesOne, property.ArrivalWakesNobody) // here nobody sleeps
}

// How to read these tests: see the head of step 1's.

func TestLockIsOneCreateAndOneListAndUnlockOneDelete(t *testing.T) {
	z := zktest.New(t)
	a := lock.Join(z, "A")
	a.Acquire().Release() // makes the directory
	before := a.Tap.Mark()
	held := a.Acquire()
	owner, _ := z.Owner(a.Path + "/lock-0000000001")
	assert.Equal(t, a.ID, owner, "the session that the holder's znode belongs to: its own")
	held.Release()
	assert.Empty(t, a.Queue(), "the queue after Unlock")
	assert.Equal(t, []string{"create", "getChildren", "delete"}, a.Asked(before), "A's requests")
}

// Numbers are compared, never names. A child that is not of the queue counts for nothing.
func TestIsFirst(t *testing.T) {
	for _, c := range []struct {
		children []string
		mine     string
		want     bool
	}{
		{[]string{"lock-0000000007"}, "lock-0000000007", true},
		{[]string{"lock-0000000008", "lock-0000000007"}, "lock-0000000007", true},
		{[]string{"lock-0000000000", "lock-0000000001"}, "lock-0000000001", false}, // 0 is a number
		{[]string{"lock-9999999999", "lock-10000000000"}, "lock-10000000000", false},
		{[]string{"config", "lock-", "lock-x", "0000000001", "lock-0000000002"}, "lock-0000000002", true},
	} {
		got, err := isFirst(c.children, c.mine)
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "the first: %s among %v", c.mine, c.children)
	}
}

func TestIsFirstNeedsItsOwnZnode(t *testing.T) {
	_, err := isFirst([]string{"lock-0000000003"}, "lock-0000000002")
	assert.ErrorIs(t, err, zk.ErrNoNode, "our znode is not in the list, so it is nobody's turn")
}

// A server that reads a request of more than 1 MB hangs up.
func TestAPathLongerThanARequestIsRefusedAtOnce(t *testing.T) {
	z := zktest.New(t)
	a := lock.JoinAs(z, "A", property.Seat{Path: z.Root + "/" + strings.Repeat("k", 1_100_000)})
	err := a.Start().Err()
	require.ErrorContains(t, err, "bytes, and 500000 are the most")
	assert.Less(t, len(err.Error()), 200, "bytes of the error: it does not repeat the path")
	assert.Empty(t, a.Asked(0), "requests")
}
