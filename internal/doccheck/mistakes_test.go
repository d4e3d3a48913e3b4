package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every mistake has its paragraph, and every test of one is named there.
func TestEveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "mistakes.md"))
	must(t, err)
	parts := regexp.MustCompile(`(?m)^### (W\d+): `).FindAllStringSubmatchIndex(string(text), -1)
	if len(parts) != 17 {
		t.Fatalf("%d mistakes, want 17", len(parts))
	}
	r := repo(t)
	named := map[string]bool{}
	link := regexp.MustCompile("`(Test\\w+)` in \\[[^\\]]+\\]\\(\\.\\./([^)#]+)\\)")
	for i, at := range parts {
		end := len(text)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		id, part := string(text[at[2]:at[3]]), string(text[at[0]:end])
		for _, want := range []string{"**The idea.**", "**What happens.**", "**The test.**", "**The fix.**"} {
			if strings.Count(part, want) != 1 {
				t.Errorf("%s: want %s once", id, want)
			}
		}
		tests := link.FindAllStringSubmatch(part, -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", id)
		}
		for _, m := range tests {
			named[m[2]+" "+m[1]] = true
			if !has(r.in(filepath.ToSlash(filepath.Dir(m[2]))), m[1]) || !r.holds(m[2], "func "+m[1]+"(") {
				t.Errorf("%s: there is no %s in %s", id, m[1], m[2])
			}
			if !regexp.MustCompile(id + `([^0-9]|$)`).MatchString(m[1]) {
				t.Errorf("%s names %s", id, m[1])
			}
		}
	}
	for _, f := range r.files {
		for _, name := range f.tests {
			if regexp.MustCompile(`^TestW\d`).MatchString(name) && !named[f.path+" "+name] {
				t.Errorf("docs/mistakes.md does not name %s in %s", name, f.path)
			}
		}
	}
}

// holds tells whether a file holds a text.
func (r repository) holds(file, text string) bool {
	for _, f := range r.files {
		if f.path == file {
			return strings.Contains(f.text, text)
		}
	}
	return false
}
