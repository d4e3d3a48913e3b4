package reentrant

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// stairFiles are the files that the chapter's diffs change.
var stairFiles = []string{"lock.go", "hold.go", "session.go"}

// The chapter builds this package from the exercise's starter, by its diffs. This test applies the
// diffs as the chapter has them. Each stair compiles and gives the lock what the one before lacked.
// The last one is this package.
func TestTheStairs(t *testing.T) {
	diffs := diffsOf(t, "README.md")
	require.Equal(t, diffs, diffsOf(t, "README.zh-CN.md"), "the diffs of the two editions")

	here, err := filepath.Abs(".")
	require.NoError(t, err)
	work, replace := t.TempDir(), map[string]string{}
	addStair := func(n int) {
		for _, file := range append(stairFiles, "errors.go") {
			stair := filepath.Join(work, fmt.Sprintf("stair%d-%s", n, file))
			require.NoError(t, os.WriteFile(stair, read(t, filepath.Join(work, file)), 0o666))
			replace[filepath.Join(here, fmt.Sprintf("stair%d", n), file)] = stair
		}
	}
	for _, file := range append(stairFiles, "errors.go") {
		require.NoError(t, os.WriteFile(filepath.Join(work, file), read(t, filepath.Join("exercise", file)), 0o666))
	}
	addStair(0)
	for i, diff := range diffs {
		apply := exec.CommandContext(t.Context(), "git", "apply", "-")
		apply.Dir = work
		apply.Stdin = strings.NewReader(diff)
		said, err := apply.CombinedOutput()
		require.NoError(t, err, "apply diff %d of the chapter: %s", i+1, said)
		addStair(i + 1)
	}
	for _, file := range stairFiles {
		require.Equal(t, code(read(t, file)), code(read(t, filepath.Join(work, file))), "%s, after the last diff", file)
	}

	// For the go command the stairs are packages of this folder, and so is the test that checks them.
	replace[filepath.Join(here, "stairs", "stairs_test.go")] = filepath.Join(here, "testdata", "stairs_test.go")
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list, program := filepath.Join(work, "overlay.json"), filepath.Join(work, "stairs.test")
	require.NoError(t, os.WriteFile(list, overlay, 0o666))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", program, "./stairs")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "build the stairs: %s", said)

	ask := exec.CommandContext(t.Context(), program, "-test.v")
	ask.Env = append(os.Environ(), "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(zktest.Servers(), ","))
	said, err = ask.CombinedOutput()
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "»") || err != nil {
			fmt.Fprint(t.Output(), strings.TrimLeft(line, " "))
		}
	}
	require.NoError(t, err, "the stairs are not what the chapter says")
}

// diffsOf are the blocks of diff in a page.
func diffsOf(t *testing.T, page string) (diffs []string) {
	t.Helper()
	const stairs = 7
	for _, block := range regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllSubmatch(read(t, page), -1) {
		diffs = append(diffs, string(block[1]))
	}
	require.Len(t, diffs, stairs, "blocks of diff in %s", page)
	return diffs
}

// code is a Go file without what is above its package clause.
func code(file []byte) string {
	_, code, _ := strings.Cut("\n"+string(file), "\npackage ")
	return code
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}
