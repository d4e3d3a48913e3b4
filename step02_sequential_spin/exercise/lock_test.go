package sequentialspin

import (
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestLock asks what your lock can do, in the order of the chapter, and stops at the first
// that it cannot:
//
//	go test ./yours/step2       all of it
//	go test -v ./yours/step2    with what was seen of each that holds
func TestLock(t *testing.T) {
	lock := property.Over("New", New)
	lock.NotHeld = ErrNotHeld
	exercise.Check(t, exercise.Step2, lock)
}
