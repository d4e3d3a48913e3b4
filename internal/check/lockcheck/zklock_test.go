package lockcheck

import (
	"testing"

	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestTheClientsOwnLock(t *testing.T) {
	lock := Over("zk.Lock", ClientLock)
	Holds(t, lock, OneHolder, CrashFrees, FirstCome, NoStranger, WaiterCrash,
		SilentWait, WakesOne, ArrivalWakesNobody, NoWatchLeft, LongHold,
		ReleaseSeen, UnlockRepeated, LostTold, QuietAfter, OwnPlace, OldZnode)
	Fails(t, lock, GivingUp, Unrelated, LostCreateReply, LostDeleteReply, LocksAgain, ToldOfLoss, Fenced,
		LastNumber, Shared, FailsClean, NotBeside, LineBreaks, GivesUpAtOnce, LaggingServer)
}
