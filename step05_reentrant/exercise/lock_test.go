package reentrant

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestLock checks the properties of your lock, in the order of the chapter, and stops at the
// first that it lacks:
//
//	go test ./yours/step5       all of it
//	go test -v ./yours/step5    with what was seen of each that holds
func TestLock(t *testing.T) {
	exercise.Check(t, exercise.Step5, mine())
}

// mine is your lock.
func mine() property.Subject {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
		return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	lock := property.OverSession("New", open, New)
	lock.NotHeld = ErrNotHeld
	return lock
}

// TestMine is your own test. It runs when TestLock finds nothing wrong. It must pass on your
// lock, and fail on a lock that was published with a mistake.
//
// TODO 1: A holds the lock and locks again; B waits. A unlocks once, and B still waits. A unlocks
// once more, and B gets the lock.
// 待办 1：A 持有锁，又加一次锁；B 在等。A 解锁一次，B 继续等；A 再解锁一次，B 拿到锁。
//
// The calls are a.Locks(), a.LocksAgain(), b.Waits(), a.Unlocks(), b.StillWaits() and b.GetsIt().
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step5, mine(), func(a, b, c *exercise.Client) {
	})
}
