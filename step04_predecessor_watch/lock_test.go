package predecessorwatch

import (
	"fmt"
	"testing"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = lockcheck.Over("step 4", New)

func init() { lock.NotHeld = ErrNotHeld }

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lock, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.SilentWait, lockcheck.NoWatchLeft,
		lockcheck.LongHold, lockcheck.LastNumber,
		lockcheck.WakesOne, lockcheck.ArrivalWakesNobody, // new in this step
		lockcheck.ReleasedWhileCutOff)
	lockcheck.Holds(t, lock, lockcheck.Promises...)
	lockcheck.Holds(t, lock, lockcheck.Queued...)
	lockcheck.Holds(t, lock, lockcheck.BadInput...)
	lockcheck.Holds(t, lock, lockcheck.NotBeside)
	lockcheck.Fails(t, lock, lockcheck.LineBreaks, lockcheck.GivesUpAtOnce)
	lockcheck.Fails(t, lock,
		lockcheck.LostCreateReply, lockcheck.LostDeleteReply, lockcheck.LocksAgain, lockcheck.ToldOfLoss,
		lockcheck.Fenced, lockcheck.Shared)
}

func FuzzNames(f *testing.F) {
	lockcheck.FuzzFirst(f, number, func(names []string, mine string) (bool, error) {
		before, err := predecessor(names, mine)
		if err != nil {
			return before != "", err // beside an error, nothing is named
		}
		own, _ := number(mine)
		if !lockcheck.IsBefore(number, before, names, own) {
			err = fmt.Errorf("what stands before it is not %q", before)
		}
		return before == "", err
	})
}
