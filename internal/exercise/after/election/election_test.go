package election

import (
	"testing"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/election/exercise"
	"zklock/internal/steps"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Election, exercise.OverElection(steps.OpenReentrant, New))
	first := exercise.Election.Properties[0]
	exercise.Refuses(t, exercise.Election, first, exercise.OverElection(steps.OpenReentrant, starter.New))
}
