package semaphore

import (
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestSemaphore asks what yours can do, and stops at the first that it cannot:
//
//	go test ./yours/semaphore       all of it
//	go test -v ./yours/semaphore    with what was seen of each that holds
func TestSemaphore(t *testing.T) {
	exercise.Check(t, exercise.Semaphore, exercise.OverSemaphore(New))
}
