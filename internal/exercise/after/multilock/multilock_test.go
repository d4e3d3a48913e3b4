package multilock

import (
	"testing"

	"zklock/internal/exercise"
	starter "zklock/internal/exercise/after/multilock/exercise"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The check of the exercise accepts the solution, and refuses the starter.
func TestTheExercise(t *testing.T) {
	exercise.Accepts(t, exercise.MultiLock, exercise.OverMultiLock(New, predecessorwatch.New))
	first := exercise.MultiLock.Properties[0]
	exercise.Refuses(t, exercise.MultiLock, first, exercise.OverMultiLock(starter.New, predecessorwatch.New))
}
