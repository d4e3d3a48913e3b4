package wronglocks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/teach/exercise"
)

// Judge is what the test that Lay makes calls for each variant. A wrong lock is rejected by the
// property that has to, with the words that say what is wrong. A right one has all that is asked.
func (v Variant) Judge(t *testing.T, subjects ...property.Subject) {
	t.Run(v.String(), func(t *testing.T) {
		t.Parallel()
		t.Log(v.Belief)
		if v.Rejects != nil && v.isRejected(ask(t, v.Rejects, subjects)) {
			return
		}
		if v.Rejects != nil {
			t.Errorf("%q has not rejected it with the words %q. What the others say:", v.Rejects.Name, v.Words)
		}
		for _, p := range property.Asked(v.Step) {
			t.Run(p.Name.EN, func(t *testing.T) {
				t.Parallel()
				assert.True(t, ask(t, p, subjects).Verdict.Accepted())
			})
		}
	})
}

func ask(t *testing.T, p *property.Property, subjects []property.Subject) property.Result {
	server, err := zktest.Shared()
	require.NoError(t, err)
	r := property.Check(server, exercise.Asked(p, subjects), p, zktest.Patience)
	t.Log(r)
	return r
}

// isRejected tells whether a result says what is wrong, in the two lines that a learner sees.
func (v Variant) isRejected(r property.Result) bool {
	shown := strings.ReplaceAll(exercise.InTwoLines("seen: "+r.Evidence), "\n", " ")
	return r.Verdict == property.No && strings.Contains(shown, v.Words)
}
