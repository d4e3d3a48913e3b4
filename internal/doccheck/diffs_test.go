package doccheck

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// changed is a folder that exists only for the compiler.
const changed = "internal/doccheck/changed"

// A change of lock.go that a page shows can be made, at one place, and the result compiles: a learner
// may type it in. The stairs of step 5 have a test of their own.
func TestTheDiffsOfThePagesApplyAndCompile(t *testing.T) {
	r := read(t)
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	work, replace := t.TempDir(), map[string]string{} // the files of the changed locks, and where they are
	for _, p := range r.pages {
		folder := lockOf(p.path)
		for _, b := range p.blocks() {
			if folder == "" || b.language != "diff" || !isEnglish(p.path) {
				continue
			}
			lock, err := b.applied(r.code[folder+"/lock.go"])
			if !assert.NoError(t, err, "%s:%d: %s/lock.go", p.path, b.line, folder) {
				continue
			}
			file := filepath.Join(work, fmt.Sprintf("%d.go", len(replace)))
			require.NoError(t, os.WriteFile(file, []byte(lock), 0o600))
			name := fmt.Sprintf("%s_line_%d", strings.NewReplacer("/", "_", ".md", "").Replace(p.path), b.line)
			to := filepath.Join(top, changed, name)
			for other := range r.code {
				if path.Dir(other) == folder && !strings.HasSuffix(other, "_test.go") {
					replace[filepath.Join(to, path.Base(other))] = filepath.Join(top, other)
				}
			}
			replace[filepath.Join(to, "lock.go")] = file
		}
	}
	require.Greater(t, len(replace), 10, "files of changed locks")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	overlay := filepath.Join(work, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+changed+"/...")
	build.Dir = root
	said, err := build.CombinedOutput()
	assert.NoError(t, err, "the compiler, on changed locks in folders named after page and line: %s", said)
}

// lockOf returns the folder whose lock a page changes, or "".
func lockOf(page string) string {
	folder := strings.TrimSuffix(folderOf(page), "/")
	switch {
	case page == "docs/break.md":
		return "step04_predecessor_watch"
	case strings.HasPrefix(folder, "step05"):
		return ""
	case strings.HasPrefix(folder, "step"):
		return folder
	}
	return ""
}

// applied makes the change of a diff. A line … is between two hunks. The lines of each must occur once in the text.
func (b block) applied(text string) (string, error) {
	from := 0
	for i, l := range append(slices.Clone(b.lines), betweenHunks) {
		if l != betweenHunks {
			continue
		}
		var err error
		text, err = applyHunk(text, b.lines[from:i])
		if err != nil {
			return "", err
		}
		from = i + 1
	}
	return text, nil
}

const betweenHunks = "…"

func applyHunk(text string, hunk []string) (string, error) {
	before, after := "\n", "\n"
	for _, l := range hunk {
		if l == "" {
			l = " " // an editor may have removed it
		}
		mark, code := l[:1], l[1:]+"\n"
		if mark != "+" {
			before += code
		}
		if mark != "-" {
			after += code
		}
	}
	if n := strings.Count(text, before); n != 1 {
		return "", fmt.Errorf("it has the lines to change %d times", n)
	}
	return strings.Replace(text, before, after, 1), nil
}
