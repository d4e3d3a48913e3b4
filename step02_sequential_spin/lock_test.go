package sequentialspin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", lock.Hold)
	zktest.Main(m)
}

var lock = lockcheck.Over("step 2", New)

func init() { lock.NotHeld = ErrNotHeld }

// The first test to speak: when a line of lock.go is broken, the properties say
// what it was good for.
func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lock, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.NoWatchLeft,
		lockcheck.LongHold, lockcheck.LastNumber, lockcheck.KilledHolder)
	lockcheck.Holds(t, lock, lockcheck.Promises...)
	lockcheck.Holds(t, lock, lockcheck.Queued...)
	lockcheck.Holds(t, lock, lockcheck.BadInput...)
	lockcheck.Holds(t, lock, lockcheck.NotBeside)
	lockcheck.Fails(t, lock, lockcheck.LineBreaks, lockcheck.GivesUpAtOnce)
	lockcheck.Empty(t, lock, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody)
	lockcheck.Fails(t, lock, lockcheck.SilentWait, lockcheck.LostCreateReply, lockcheck.LostDeleteReply,
		lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced, lockcheck.Shared)
}

func TestLockIsOneCreateAndOneList(t *testing.T) {
	z := zktest.New(t)
	a := lock.Join(z, "A")
	a.Acquire().Release() // makes the directory
	mark := a.Tap.Mark()
	turn := a.Acquire()
	owner, _ := z.Owner(a.Path + "/lock-0000000001")
	assert.Equal(t, a.ID, owner, "the session that the holder's znode belongs to")
	turn.Release()
	assert.Empty(t, a.Queue(), "the queue after Unlock")
	assert.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, a.Requests(mark))
}

func FuzzNames(f *testing.F) { lockcheck.FuzzFirst(f, number, isFirst) }
