package doccheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who has read the errors.go of one of these steps has read all four.
func TestTheErrorsOfSteps1To4AreTheSame(t *testing.T) {
	t.Parallel()
	var all []file
	for _, f := range repo(t).files {
		if regexp.MustCompile(`^step0[1-4]_[a-z_]+/errors\.go$`).MatchString(f.path) {
			all = append(all, f)
		}
	}
	require.Len(t, all, 4, "errors.go of steps 1 to 4")
	for _, f := range all {
		_, first, _ := strings.Cut(all[0].text, "\n") // behind the package clause
		_, own, _ := strings.Cut(f.text, "\n")
		assert.Equal(t, first, own, "%s and %s", all[0].path, f.path)
	}
}
