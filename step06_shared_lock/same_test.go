package sharedlock

import (
	"bytes"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const step5 = "../step05_reentrant/"

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// The session is step 5's, and so are its tests.
func TestTheSessionIsStep5s(t *testing.T) {
	for _, name := range []string{"session.go", "lease.go", "handshake.go"} {
		theirs := strings.Replace(text(t, step5+name), "package reentrant\n", "package sharedlock\n", 1)
		require.Equal(t, theirs, text(t, name), "%s and step 5's", name)
	}
}

// What a reader of these files has to get through, comments included.
func TestTheFilesAreShort(t *testing.T) {
	for _, c := range []struct {
		most  int
		files string
	}{
		{300, "lock.go"},
		{120, "hold.go"},
		{330, "session.go lease.go handshake.go"},
		{300, step5 + "lock.go"},
		{120, step5 + "hold.go"},
		{330, step5 + "session.go " + step5 + "lease.go " + step5 + "handshake.go"},
		{160, step5 + "cohort.go"},
	} {
		lines := 0
		for _, path := range strings.Fields(c.files) {
			lines += strings.Count(text(t, path), "\n")
		}
		if lines > c.most {
			t.Errorf("%s: %d lines, and the budget is %d", c.files, lines, c.most)
		}
	}
}

// The lesson of this step is what its lock has that step 5's has not: so it must be
// little. Comments and blank lines are not counted.
func TestTheLockIsStep5sWithKinds(t *testing.T) {
	const most = 90
	changed := 0
	for _, name := range []string{"lock.go", "hold.go"} {
		theirs, ours := code(t, step5+name), code(t, name)
		changed += len(theirs) + len(ours) - 2*inCommon(theirs, ours)
	}
	t.Logf("lines that differ: %d", changed)
	require.LessOrEqual(t, changed, most, "lines of code that differ between step 5 and step 6")
}

// code lists a file's lines of code.
func code(t *testing.T, path string) (lines []string) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution) // without its comments
	require.NoError(t, err)
	var all bytes.Buffer
	require.NoError(t, format.Node(&all, files, f))
	for line := range strings.Lines(all.String()) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "package ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// inCommon counts the lines that a diff of a and b does not show: those of the
// longest sequence which both have.
func inCommon(a, b []string) int {
	longest := make([]int, len(b)+1) // with the first lines of a, and as many of b
	for _, line := range a {
		diagonal := 0
		for i, other := range b {
			above := longest[i+1]
			if line == other {
				longest[i+1] = diagonal + 1
			} else {
				longest[i+1] = max(above, longest[i])
			}
			diagonal = above
		}
	}
	return longest[len(b)]
}
