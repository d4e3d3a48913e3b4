package property

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lang"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// A holds the lock. Its session ends by an accident, as on a machine that pauses, and B gets the
// lock beside it. The lock is right, so there is no verdict.
func TestAnAccidentIsNoEvidence(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	story := New(lang.Text{EN: "nobody gets the lock beside A"}, lang.Text{}, lang.Text{}, func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		a.Acquire()
		waiting := s.queue(b)[0]
		s.EndSession(a.Client)
		waiting.Acquired()
		s.Fails("B got the lock beside A")
	})
	r := Check(server, Over("step 4", predecessorwatch.New), story)
	assert.Equal(t, Stuck, r.Verdict, r.Evidence)
	assert.Contains(t, r.Evidence, "which this check did not cause; then B got the lock beside A")
	assert.Contains(t, r.Asked, "A: create /lock, create /lock/lock-, getChildren /lock; B: ")
}
