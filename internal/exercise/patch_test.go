package exercise

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// docs/break.md has a game: apply a patch to step 4's lock, and guess which test fails. Each
// patch applies, and the property that the page names is then refused by step 4's own tests.
func TestThePatchesOfStep4(t *testing.T) {
	server, err := zktest.Shared()
	require.NoError(t, err)
	root, err := os.Getwd()
	require.NoError(t, err)
	page, err := os.ReadFile("docs/break.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (W\d+) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1)
	patches, err := filepath.Glob(filepath.Join(Step4.Home, "mistakes", "*.patch"))
	require.NoError(t, err)
	require.Len(t, rows, len(patches), "patches in docs/break.md")
	for _, row := range rows {
		name, property := row[1], row[2]
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lock := filepath.Join(Step4.Home, "lock.go")
			text, err := os.ReadFile(lock)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, Step4.Home), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, lock), text, 0o644))
			apply := exec.CommandContext(t.Context(), "git", "apply", filepath.Join(root, Step4.Home, "mistakes", name+".patch"))
			apply.Dir = dir
			said, err := apply.CombinedOutput()
			require.NoError(t, err, "%s", said)
			text, err = os.ReadFile(filepath.Join(dir, lock))
			require.NoError(t, err)

			list, err := overlay(dir, map[string]string{filepath.Join(root, lock): string(text)})
			require.NoError(t, err)
			subtest := "^TestProperties$/" + regexp.QuoteMeta(strings.ReplaceAll("step 4: "+property, " ", "_")) + "$"
			ask := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", list, "-run", subtest, "./"+Step4.Home)
			ask.Env = server.Environ()
			said, err = ask.CombinedOutput()
			t.Logf("%s", said)
			assert.Error(t, err, "step 4's tests accept %s", name)
			assert.Contains(t, string(said), "step 4: want ✓ here, not ✗")
		})
	}
}
