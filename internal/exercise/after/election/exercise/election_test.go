package election

import (
	"testing"

	"zklock/internal/exercise"
	"zklock/internal/steps"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestElection asks what yours can do, and stops at the first that it cannot:
//
//	go test ./yours/election       all of it
//	go test -v ./yours/election    with what was seen of each that holds
func TestElection(t *testing.T) {
	exercise.Check(t, exercise.Election, exercise.OverElection(steps.OpenReentrant, New))
}
