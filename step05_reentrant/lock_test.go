package reentrant

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("paused holder", pausedHolder) // in cost_test.go
	zktest.Main(m)
}

var locks = func() lockcheck.Subject {
	subject := lockcheck.OverHolds(
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
	lockcheck.Holds(
		t, locks,
		// as in step 4
		lockcheck.OneHolder,
		lockcheck.CrashFrees,
		lockcheck.FirstCome,
		lockcheck.NoStranger,
		lockcheck.GivingUp,
		lockcheck.Unrelated,
		lockcheck.WaiterCrash,
		lockcheck.SilentWait,
		lockcheck.WakesOne,
		lockcheck.ArrivalWakesNobody,
		lockcheck.NoWatchLeft,
		lockcheck.LongHold,
		lockcheck.ParentsMade,
		lockcheck.ManyShare,
		lockcheck.WhateverIsInIt,
		lockcheck.LostWhileWaiting,
		lockcheck.ReleaseSeen,
		lockcheck.FailsClean,
		lockcheck.UnlockRepeated,
		lockcheck.LostTold,
		lockcheck.QuietAfter,
		lockcheck.OwnPlace,
		lockcheck.OldZnode,
		lockcheck.NotBeside,
		// new in this step
		lockcheck.LostCreateReply,
		lockcheck.LostDeleteReply,
		lockcheck.LocksAgain,
		lockcheck.ToldOfLoss,
		lockcheck.Fenced,
		lockcheck.LineBreaks,
		lockcheck.GivesUpAtOnce,
		lockcheck.LaggingServer,
	)
	lockcheck.Lacks(t, locks, lockcheck.Shared)
}

func TestTryLock(t *testing.T) {
	lockcheck.Holds(t, locks, lockcheck.Tries)
	lockcheck.Holds(
		t,
		lockcheck.Trying(locks, time.Hour),
		lockcheck.OneHolder,
		lockcheck.FirstCome,
		lockcheck.GivingUp,
		lockcheck.LocksAgain,
	)
}
