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

// TestMine is your own test. It runs when TestLock finds nothing wrong. It must pass with your
// lock, and fail with W4, the change that the chapter shows under "What is wrong here?".
//
// TODO 6: Which calls show that W4 is wrong? What does it take for success, and when does that happen?
// 待办 6：哪几次调用能看出 W4 错了？它把什么当成了成功，这种事在什么时候发生？
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
	exercise.Own(t, exercise.Step1, mine(), func(a, b, c *exercise.Client) {
		// An example, of another idea: after a release, the next client gets the lock. Replace it.
		a.Locks()
		a.Unlocks()
		b.Locks()
	})
}
