package childrenwatch

import (
	"testing"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = lockcheck.Over("step 3", New)

func init() { lock.NotHeld = ErrNotHeld }

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lock, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.SilentWait, lockcheck.NoWatchLeft,
		lockcheck.LongHold, lockcheck.LastNumber, lockcheck.ReleasedWhileCutOff)
	lockcheck.Holds(t, lock, lockcheck.Promises...)
	lockcheck.Holds(t, lock, lockcheck.Queued...)
	lockcheck.Holds(t, lock, lockcheck.BadInput...)
	lockcheck.Holds(t, lock, lockcheck.NotBeside)
	lockcheck.Fails(t, lock, lockcheck.LineBreaks, lockcheck.GivesUpAtOnce)
	lockcheck.Fails(t, lock, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody, // the herd: step 4
		lockcheck.LostCreateReply, lockcheck.LostDeleteReply, lockcheck.LocksAgain, lockcheck.ToldOfLoss,
		lockcheck.Fenced, lockcheck.Shared)
}

func FuzzNames(f *testing.F) { lockcheck.FuzzFirst(f, number, isFirst) }
