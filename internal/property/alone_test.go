package property

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/lang"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// A story without a verdict runs once more, while no other story runs.
func TestNoAnswerIsAskedOnceMoreAlone(t *testing.T) {
	asked, wasAlone := 0, false
	late := New(text("late", "late"), lang.Text{}, lang.Text{}, func(s *Story) {
		asked++
		if asked == 1 {
			s.Fatalf("a wait has timed out")
		}
		wasAlone = !company.TryRLock()
		s.Holds("the second time")
	})
	t.Run("asked", func(t *testing.T) { Holds(t, Over("step 4", predecessorwatch.New), late) })
	require.Equal(t, 2, asked)
	require.True(t, wasAlone, "no other story may be told beside the second")
}
