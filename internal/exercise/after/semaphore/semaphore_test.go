package semaphore

import (
	"testing"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/semaphore/exercise"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.Semaphore, exercise.OverSemaphore(New))
	exercise.Refuses(t, exercise.Semaphore, exercise.Semaphore.Properties[0], exercise.OverSemaphore(starter.New))
}
