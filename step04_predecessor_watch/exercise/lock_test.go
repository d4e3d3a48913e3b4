package predecessorwatch

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
//	go test ./yours/step4       all of it
//	go test -v ./yours/step4    with what was seen of each that holds
func TestLock(t *testing.T) {
	exercise.Check(t, exercise.Step4, mine())
}

// mine is your lock.
func mine() property.Subject {
	lock := property.Over("New", New)
	lock.NotHeld = ErrNotHeld
	return lock
}

// TestMine is your own test. It runs when TestLock finds nothing wrong. It must pass with your
// lock, and fail with W8, the change that the chapter shows under "What is wrong here?".
//
// TODO 5: Which calls show that W8 is wrong? Two clients are not enough. Whose znode can be deleted?
// 待办 5：哪几次调用能看出 W8 错了？两个客户端不够。谁的节点会被删除？
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
	exercise.Own(t, exercise.Step4, mine(), func(a, b, c *exercise.Client) {
	})
}
