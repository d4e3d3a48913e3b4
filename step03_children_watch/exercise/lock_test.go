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

// TestMine is your own test. It runs when your lock has all properties. It must pass on your
// lock, and fail on a lock that was published with a mistake.
//
// TODO 4: A holds the lock, B waits, A unlocks, and B gets the lock.
// 待办 4：A 持有锁，B 在等；A 解锁，B 拿到锁。
//
// The calls are a.Locks(), b.Waits(), a.Unlocks() and b.GetsIt().
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step3, mine(), func(a, b, c *exercise.Client) {
	})
}
