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

// TestMine is your own test. It runs when your lock has all properties. It must pass on your
// lock, and fail on a lock that was published with a mistake.
//
// TODO 5: A holds the lock, B waits, C waits behind B. B crashes, and C still waits.
// 待办 5：A 持有锁，B 在等，C 排在 B 后面；B 崩溃，C 继续等。
//
// The calls are a.Locks(), b.Waits(), b.Crashes() and c.StillWaits().
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step4, mine(), func(a, b, c *exercise.Client) {
	})
}
