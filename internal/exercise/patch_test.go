package exercise

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// patchRow matches a row of docs/break.md: | W8 | what happens | the property that is then refused |
var patchRow = regexp.MustCompile(`(?m)^\| (W\d+) \| [^|]+ \| ([^|]+) \|$`)

// docs/break.md has a game: apply a patch to step 4's lock, and guess which test fails. Each
// patch applies, and the property that the page names is then refused by step 4's own tests.
func TestThePatchesOfStep4(t *testing.T) {
	server, err := zktest.Shared()
	require.NoError(t, err)
	root, err := os.Getwd()
	require.NoError(t, err)
	rows := patchRows(t, "docs/break.md")
	patches, err := filepath.Glob(filepath.Join(Step4.Home, "mistakes", "*.patch"))
	require.NoError(t, err)
	require.Len(t, rows, len(patches), "patches in docs/break.md")
	for _, row := range rows {
		name, refused := row[1], row[2]
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
			subtest := "^TestProperties$/" + regexp.QuoteMeta(strings.ReplaceAll("step 4: "+refused, " ", "_")) + "$"
			ask := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", list, "-run", subtest, "./"+Step4.Home)
			ask.Env = server.Environ()
			said, err = ask.CombinedOutput()
			t.Logf("%s", said)
			assert.Error(t, err, "step 4's tests accept %s", name)
			assert.Contains(t, string(said), "step 4: want ✓ here, not ✗")
		})
	}
}

// Both pages name the property that a patch breaks as the test does. It prints English, so the Chinese page has both
// names.
func TestThePropertiesThatThePatchesBreak(t *testing.T) {
	english, chinese := patchRows(t, "docs/break.md"), patchRows(t, "docs/break.zh-CN.md")
	require.Len(t, chinese, len(english))
	for i, row := range english {
		at := slices.IndexFunc(property.Has(4), func(p *property.Property) bool { return p.Name.EN == row[2] })
		if assert.GreaterOrEqual(t, at, 0, "step 4 has no property %q", row[2]) {
			assert.Equal(t, property.Has(4)[at].Name.ZH+"（"+row[2]+"）", chinese[i][2])
		}
	}
}

func patchRows(t *testing.T, path string) [][]string {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	rows := patchRow.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, rows, "patches in %s", path)
	return rows
}
