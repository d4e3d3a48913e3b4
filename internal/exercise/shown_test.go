package exercise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Steps 2 and 3 show the wrong lock of TestMine as a diff, line for line.
func TestTheChapterShowsTheLockOfTestMine(t *testing.T) {
	for _, e := range []Exercise{Step2, Step3} {
		name := mistakes[e.Name].variant()
		at := slices.IndexFunc(variants[e.Name], func(v Variant) bool { return v.Name == name })
		page, err := os.ReadFile(filepath.Join(e.Home, "README.md"))
		require.NoError(t, err)
		diff := variants[e.Name][at].Hunks
		isShown := strings.Contains(unindented(string(page)), unindented(diff))
		assert.True(t, isShown, "%s lacks the diff of %s: %s", e, name, diff)
	}
}

// unindented returns the lines of a diff without their indentation. A mark in front of a line stays.
func unindented(diff string) string {
	var lines []string
	for line := range strings.SplitSeq(diff, "\n") {
		if line != "" {
			line = line[:1] + strings.TrimSpace(line[1:])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
