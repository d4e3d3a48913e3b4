package plainnode

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestLock asks what your lock can do, in the order of the chapter, and stops at the first
// that it cannot:
//
//	go test ./yours/step1       all of it
//	go test -v ./yours/step1    with what was seen of each that holds
func TestLock(t *testing.T) {
	plain := property.Over("New", New)
	plain.Znode, plain.NotHeld = true, zk.ErrNoNode
	exercise.Check(t, exercise.Step1, plain, property.Over("NewEphemeral", NewEphemeral))
}
