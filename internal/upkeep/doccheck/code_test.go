package doccheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/tables"
)

// Who has read the errors.go of one step whose lock is no hold of a session, 1 to 4, has read
// those of all.
func TestTheErrorsOfSteps1To4AreTheSame(t *testing.T) {
	t.Parallel()
	var same []string
	for _, step := range tables.Steps() {
		if !lockcheck.Has(step.Key, lockcheck.ToldOfLoss) {
			same = append(same, step.Folder+"/errors.go")
		}
	}
	var all []file
	for _, f := range repo(t).files {
		if slices.Contains(same, f.path) {
			all = append(all, f)
		}
	}
	require.Len(t, all, len(same), "these are there: %v", same)
	for _, f := range all {
		_, first, _ := strings.Cut(all[0].text, "\n") // behind the package clause
		_, own, _ := strings.Cut(f.text, "\n")
		assert.Equal(t, first, own, "%s and %s", all[0].path, f.path)
	}
}
