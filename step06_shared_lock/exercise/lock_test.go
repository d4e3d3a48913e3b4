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

// TestMine is your own test. It runs when TestLock finds nothing wrong. It must pass with your
// lock, and fail with W26, the change that the chapter shows under "What is wrong here?".
//
// TODO 5: Which calls show that W26 is wrong? In which order do a reader and a writer have to arrive?
// 待办 5：哪几次调用能看出 W26 错了？读者和写者要按什么顺序到来？
//
// What a client can do: Locks, Waits, WaitsToRead, StillWaits, GetsIt, Unlocks and Crashes (then its session has ended).
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step6, mine(), func(a, b, c *exercise.Client) {
	})
}
