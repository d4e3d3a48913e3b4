package reentrant

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var subject = lockcheck.OverSession("step 5", func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, WithDialer(dial))
}, New, Token)

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, subject, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.SilentWait, lockcheck.WakesOne,
		lockcheck.ArrivalWakesNobody, lockcheck.NoWatchLeft, lockcheck.LostCreateReply, lockcheck.LostDeleteReply,
		lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced)
	lockcheck.Fails(t, subject, lockcheck.Shared)
}
