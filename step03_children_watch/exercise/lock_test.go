package childrenwatch

import (
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestLock checks the properties of your lock, in the order of the chapter, and stops at the
// first that it lacks:
//
//	go test ./yours/step3       all of it
//	go test -v ./yours/step3    with what was seen of each that holds
func TestLock(t *testing.T) {
	exercise.Check(t, exercise.Step3, mine())
}

// mine is your lock.
func mine() property.Subject {
	lock := property.Over("New", New)
	lock.NotHeld = ErrNotHeld
	return lock
}

// TestMine is your own test. It runs when TestLock finds nothing wrong. It must pass with your
// lock, and fail with W13, the change that the chapter shows under "What is wrong here?".
//
// TODO 4: Which calls show that W13 is wrong? Here it loses only the second notification of a
// waiter. What notifies a waiter that cannot have the lock yet?
// 待办 4：哪几次调用能看出 W13 错了？在这里，它只丢一个等待者的第二条通知。
// 还拿不到锁的等待者，会因为什么收到通知？
//
// These are all calls of a client, such as a.Locks(), and what each demands:
//
//	Locks       calls Lock, which returns with the lock
//	Waits       calls Lock, which does not return
//	StillWaits  the Lock of Waits has not returned yet
//	GetsIt      the Lock of Waits returns with the lock
//	Unlocks     calls Unlock, which returns nil
//	Crashes     nothing: the client crashes, and its session ends
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step3, mine(), func(a, b, c *exercise.Client) {
	})
}
