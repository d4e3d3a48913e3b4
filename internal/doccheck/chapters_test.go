package doccheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A chapter can be read in one go. Code and tables are not counted.
func TestAChapterIsShort(t *testing.T) {
	t.Parallel()
	const most = 1500 // words
	for _, p := range repo(t).pages {
		if match, _ := filepath.Match("step*/README.md", p.path); !match {
			continue
		}
		words := 0
		for _, l := range p.prose {
			if !strings.HasPrefix(l.text, "|") {
				words += len(strings.Fields(l.text))
			}
		}
		assert.LessOrEqual(t, words, most, "words of %s", p.path)
	}
}

// What a chapter shows of a part stands in that part's patch.
func TestADiffStandsInAPart(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range repo(t).pages {
		paths, err := filepath.Glob(filepath.Join(root, p.folder(), "parts", "*.diff"))
		require.NoError(t, err)
		var all strings.Builder
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all.WriteString("\n" + string(text))
		}
		for _, b := range p.blocks {
			if b.language == "diff" {
				seen++
				assert.True(t, strings.Contains(all.String(), "\n"+b.text()+"\n"), "%s:%d: no part of %s has this diff", p.path, b.first, p.folder())
			}
		}
	}
	assert.NotZero(t, seen, "diffs in the chapters")
}
