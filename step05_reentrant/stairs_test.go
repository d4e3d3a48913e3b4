package reentrant

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// stairFiles are the files that the stairs change. lastStair is the number of the last one.
var stairFiles = []string{"lock.go", "hold.go", "session.go", "errors.go"}

const lastStair = 10

// The chapter builds this package from the exercise's starter. stairs/ has a diff for each stair. This test
// applies them. Each stair compiles and gives the lock what the one before lacked. The last one is this package.
func TestTheStairs(t *testing.T) {
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	work, replace := t.TempDir(), map[string]string{}
	addStair := func(n int) {
		for _, file := range stairFiles {
			text, err := os.ReadFile(filepath.Join(work, file))
			if errors.Is(err, os.ErrNotExist) {
				continue // the first stairs have no hold.go
			}
			require.NoError(t, err)
			stair := filepath.Join(work, fmt.Sprintf("stair%d-%s", n, file))
			require.NoError(t, os.WriteFile(stair, text, 0o666))
			replace[filepath.Join(here, fmt.Sprintf("stair%d", n), file)] = stair
		}
	}
	require.NoError(t, os.CopyFS(work, os.DirFS("exercise")))
	addStair(0)
	for n := 1; n <= lastStair; n++ {
		diff, err := filepath.Abs(fmt.Sprintf("stairs/5.%d.diff", n))
		require.NoError(t, err)
		apply := exec.CommandContext(t.Context(), "git", "apply", diff)
		apply.Dir = work
		said, err := apply.CombinedOutput()
		require.NoError(t, err, "apply %s: %s", diff, said)
		addStair(n)
	}
	// A wrong lock: the stair 5.5 without the line by which a client whose znode was deleted queues up again.
	const again = "continue // our znode was deleted: queue up again"
	stair5 := string(read(t, filepath.Join(work, "stair5-lock.go")))
	require.Contains(t, stair5, again)
	once := filepath.Join(work, "once-lock.go")
	require.NoError(t, os.WriteFile(once, []byte(strings.Replace(stair5, again, "return place{}, err", 1)), 0o666))
	replace[filepath.Join(here, "once", "lock.go")] = once
	for _, file := range []string{"session.go", "errors.go"} {
		replace[filepath.Join(here, "once", file)] = filepath.Join(work, "stair5-"+file)
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
	require.NoError(t, err, "the stairs are not what the chapter says:\n%s", said)
	lines := regexp.MustCompile("» stair .*").FindAllString(string(said), -1)
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(placeOf(a), placeOf(b)) })
	for _, line := range lines {
		fmt.Fprintln(t.Output(), line)
	}
}

// placeOf is where a line stands among the printed lines: by its stair, and there green before red.
func placeOf(line string) int {
	var stair int
	var mark string
	_, _ = fmt.Sscanf(line, "» stair 5.%d %s", &stair, &mark)
	if mark == "✓" {
		return 2 * stair
	}
	return 2*stair + 1
}

// pages are the two parts of the chapter.
var pages = []string{"README.md", "holder.md"}

// The chapter prints a few lines of each diff: a hunk without its head, where a line … stands for what is left out.
// They are lines of one diff, one after the other, and fit on a screen. Both editions print the same.
func TestThePrintedHunksAreOfTheDiffs(t *testing.T) {
	const mostChanged, mostContext = 15, 6
	for _, page := range pages {
		hunks := hunksIn(t, page)
		require.NotEmpty(t, hunks, "hunks in %s", page)
		require.Equal(t, hunks, hunksIn(t, strings.TrimSuffix(page, ".md")+".zh-CN.md"), "the hunks of the two editions")
		for _, hunk := range hunks {
			changed := len(regexp.MustCompile("(?m)^[-+]").FindAllString(hunk, -1))
			context := len(regexp.MustCompile("(?m)^[ \n]").FindAllString(hunk, -1))
			require.LessOrEqual(t, changed, mostChanged, "changed lines of a hunk in %s:\n%s", page, hunk)
			require.LessOrEqual(t, context, mostContext, "lines of context of a hunk in %s:\n%s", page, hunk)
			require.True(t, isOfADiff(t, hunk), "%s: no diff in stairs/ has these lines:\n%s", page, hunk)
		}
	}
}

// hunksIn are the blocks of diff in a page.
func hunksIn(t *testing.T, page string) (hunks []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllSubmatch(read(t, page), -1) {
		hunks = append(hunks, string(block[1]))
	}
	return hunks
}

// isOfADiff reports whether one of the diffs has the parts of a hunk, in their order.
func isOfADiff(t *testing.T, hunk string) bool {
	t.Helper()
	for n := 1; n <= lastStair; n++ {
		rest, has := "\n"+string(read(t, fmt.Sprintf("stairs/5.%d.diff", n))), true
		for _, part := range strings.Split(hunk, "…\n") {
			_, after, found := strings.Cut(rest, "\n"+part)
			rest, has = "\n"+after, has && found
		}
		if has {
			return true
		}
	}
	return false
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
