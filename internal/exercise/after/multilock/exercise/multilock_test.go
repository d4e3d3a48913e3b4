package multilock

import (
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestMultiLock asks what yours can do, and stops at the first that it cannot:
//
//	go test ./yours/multilock       all of it
//	go test -v ./yours/multilock    with what was seen of each that holds
func TestMultiLock(t *testing.T) {
	exercise.Check(t, exercise.MultiLock, exercise.OverMultiLock(New, predecessorwatch.New))
}
