// Package changed breaks the repository's own code on purpose, for a build: a test that is
// to notice a mistake has to be seen to notice it.
package changed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Change puts one text in the place of another, which the file must have once.
type Change struct{ Was, Is string }

// Overlay writes what "go build -overlay" asks for, so that it takes the file with these
// changes for the file itself. Nothing in the repository is touched.
func Overlay(t *testing.T, file string, changes ...Change) (overlay string) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(source)
	for _, c := range changes {
		require.Equal(t, 1, strings.Count(text, c.Was), "places in %s that have %q", file, c.Was)
		text = strings.Replace(text, c.Was, c.Is, 1)
	}
	scratch := t.TempDir()
	broken := filepath.Join(scratch, filepath.Base(file))
	require.NoError(t, os.WriteFile(broken, []byte(text), 0o644))
	path, err := filepath.Abs(file)
	require.NoError(t, err)
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{path: broken}})
	require.NoError(t, err)
	overlay = filepath.Join(scratch, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, replaced, 0o644))
	return overlay
}
