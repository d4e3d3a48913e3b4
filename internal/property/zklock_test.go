package property

import (
	"testing"

	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestTheClientsOwnLock(t *testing.T) {
	lock := Over("zk.Lock", ClientLock)
	Holds(t, lock,
		OneHolder,
		CrashFrees,
		FirstCome,
		OnlyHolder,
		WaiterCrash,
		SilentWait,
		WakesOne,
		ArrivalWakesNobody,
		NoWatchLeft,
		LongHold,
		ReleaseSeen,
		UnlockRepeated,
		LostTold,
		OwnPlace,
		OldZnode,
	)
	Lacks(t, lock,
		GivingUp,
		Unrelated,
		FailsClean,
		NotBeside,
		LostCreateReply,
		LostDeleteReply,
		GivesUpCutOff,
		LineBreaks,
		KeptList,
		KeptWatch,
		GivesUpAtOnce,
		LaggingServer,
		LocksAgain,
		ToldOfLoss,
		Fenced,
		Shared,
	)
}
