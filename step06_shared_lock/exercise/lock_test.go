package sharedlock

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
//	go test ./yours/step6       all of it
//	go test -v ./yours/step6    with what was seen of each that holds
func TestLock(t *testing.T) {
	exercise.Check(t, exercise.Step6, mine())
}

// mine is your lock.
func mine() property.Subject {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
		return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	lock := property.OverHolds("New", open, New)
	lock.NotHeld = ErrNotHeld
	return lock
}

// TestMine is your own test. It runs when your lock has all properties. It must pass on your
// lock, and fail on a lock that was published with a mistake.
//
// TODO 5: A writes, B waits to read, and C waits to write, behind B. A unlocks, and B gets the lock.
// 待办 5：A 在写，B 等着读，C 排在 B 后面等着写；A 解锁，B 拿到锁。
//
// The calls are a.Locks(), b.WaitsToRead(), c.Waits(), a.Unlocks() and b.GetsIt().
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step6, mine(), func(a, b, c *exercise.Client) {
	})
}
