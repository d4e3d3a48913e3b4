package doccheck

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var renew = flag.Bool("renew", false, "copy the outputs that the English pages quote into the Chinese pages")

// renewOutputs writes the Chinese pages with the outputs of the English ones.
func (r repository) renewOutputs(t *testing.T) {
	for english, zh := range r.twins() {
		require.NoError(t, os.WriteFile(filepath.Join(root, zh.Path), []byte(quoting(zh, r.pages[english])), 0o644))
	}
}

// quoting is the Chinese page with the outputs of the English one.
func quoting(zh, en Page) string {
	source := zh.Source
	blocks := slices.DeleteFunc(en.Blocks(), func(b Piece) bool { return b.Language != "" })
	for i, old := range slices.DeleteFunc(zh.Blocks(), func(b Piece) bool { return b.Language != "" }) {
		if i < len(blocks) && output.MatchString(old.Text) {
			now := strings.Join(texts(asPrinted(blocks[i].lines())), "\n")
			source = strings.Replace(source, "```\n"+old.Text+"\n```", "```\n"+now+"\n```", 1)
		}
	}
	return source
}
