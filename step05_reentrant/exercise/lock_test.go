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

// TestLock asks what your lock can do, in the order of the chapter, and stops at the first
// that it cannot:
//
//	go test ./yours/step5       all of it
//	go test -v ./yours/step5    with what was seen of each that holds
func TestLock(t *testing.T) {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
		return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	lock := property.OverHolds("New", open, New)
	lock.NotHeld = ErrNotHeld
	exercise.Check(t, exercise.Step5, lock)
}
