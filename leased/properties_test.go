package leased

import (
	"context"
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/property"
)

// The properties of each lock. Conformance is in the other files; these are the stories by which the steps
// are also judged.
var properties = []*property.Property{
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
	property.LostCreateReply,
	property.LostDeleteReply,
	property.GivesUpCutOff,
	property.LocksAgain,
	property.ToldOfLoss,
	property.Fenced,
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
	property.KeptCreate,
	property.KeptList,
	property.NotBeside,
	property.LineBreaks,
	property.GivesUpAtOnce,
	property.UnlockTooMany,
	property.MadeOnce,
	property.Tries,
	property.TryLost,
	property.ReleasedWhileCutOff,
}

func TestProperties(t *testing.T) {
	t.Parallel()
	property.Holds(t, mutexes, properties...)
	property.Holds(t, mutexes, property.LongHold, property.LaggingServer, property.LostApart)
	property.Lacks(t, mutexes, property.Shared)
	property.Holds(t, cohorts, properties...)
	property.Holds(t, cohorts, property.LongHold)
	property.Holds(t, rwmutexes, properties...)
	property.Holds(
		t, rwmutexes,
		property.LongHold, property.LostApart, property.Shared, property.Upgrade, property.ReaderStays,
	)
}

// A client that gives up need not wait for a reply. No exercise requires that, so the wrong lock that only
// this property refuses is here.
func TestGivesUpAtOnceRefusesByOne(t *testing.T) {
	t.Parallel()
	wrong := property.OverHolds("sees that nothing is left", open, newSeesThatNothingIsLeft)
	wrong.NotHeld = ErrNotHeld
	asked := exercise.Exercise{Name: "leased", Properties: properties}
	exercise.RefusesByOne(t, asked, exercise.Wrong{By: property.GivesUpAtOnce, Lock: wrong})
}

// "Before Lock returns an error, it looks whether its znode is gone." The caller waits for the list.
type seesThatNothingIsLeft struct {
	*Mutex
	s    *Session
	path string
}

func newSeesThatNothingIsLeft(s *Session, path string) seesThatNothingIsLeft {
	return seesThatNothingIsLeft{NewMutex(s, path), s, path}
}

func (m seesThatNothingIsLeft) Lock(ctx context.Context) (*Hold, error) {
	h, err := m.Mutex.Lock(ctx)
	if err != nil {
		_, _, _ = m.s.Conn().Children(m.path)
	}
	return h, err
}
