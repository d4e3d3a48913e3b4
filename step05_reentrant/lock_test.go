package reentrant

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("paused holder", pausedHolder) // in cost_test.go
	zktest.Main(m)
}

var locks = func() property.Subject {
	subject := property.OverHolds(
		"step 5",
		func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
			return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
		},
		New,
	)
	subject.NotHeld, subject.Lost = ErrNotHeld, ErrLost
	return subject
}()

func TestProperties(t *testing.T) {
	property.Holds(
		t, locks,
		// as in step 4
		property.OneHolder,
		property.CrashFrees,
		property.FirstCome,
		property.OnlyHolder,
		property.GivingUp,
		property.Unrelated,
		property.WaiterCrash,
		property.SilentWait,
		property.WakesOne,
		property.ArrivalWakesNobody,
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
		property.QuietAfter,
		property.OwnPlace,
		property.OldZnode,
		property.NotBeside,
		// new in this step
		property.LostCreateReply,
		property.LostDeleteReply,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.LineBreaks,
		property.GivesUpAtOnce,
		property.LaggingServer,
	)
	property.Lacks(t, locks, property.Shared)
}

func TestTryLock(t *testing.T) {
	property.Holds(t, locks, property.Tries, property.TryLost)
	property.Holds(
		t,
		property.Trying(locks, time.Hour),
		property.OneHolder,
		property.FirstCome,
		property.GivingUp,
		property.LocksAgain,
	)
}
