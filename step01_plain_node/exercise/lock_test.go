package plainnode

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestLock checks the properties of your lock, in the order of the chapter, and stops at the
// first that it lacks:
//
//	go test ./yours/step1       all of it
//	go test -v ./yours/step1    with what was seen of each that holds
func TestLock(t *testing.T) {
	exercise.Check(t, exercise.Step1, mine(), property.Over("NewEphemeral", NewEphemeral))
}

// mine is your lock.
func mine() property.Subject {
	plain := property.Over("New", New)
	plain.Znode, plain.NotHeld = true, zk.ErrNoNode
	return plain
}

// TestMine is your own test. It runs when your lock has all properties. It must pass on your
// lock, and fail on a lock that was published with a mistake.
//
// TODO 6: While A holds the lock, B waits.
// 待办 6：A 持有锁时，B 在等。
//
// The calls are a.Locks(), b.Waits(), a.Unlocks() and b.GetsIt().
func TestMine(t *testing.T) {
	exercise.Own(t, exercise.Step1, mine(), func(a, b, c *exercise.Client) {
	})
}
