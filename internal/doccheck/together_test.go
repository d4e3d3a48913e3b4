package doccheck

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var renew = flag.Bool("renew", false, "write the outputs into the Chinese pages, and into twins.txt what the pages say now")

// twins.txt keeps a sum of each page's text and of its Chinese twin's, as they were
// when somebody last saw that both say the same.
func TestBothEditionsChangeTogether(t *testing.T) {
	t.Parallel()
	r := repo(t)
	kept, err := os.ReadFile("twins.txt")
	require.NoError(t, err)
	now, alone := r.sums(string(kept))
	assert.Empty(t, strings.Join(alone, "\n"))
	if !*renew {
		assert.Equal(t, string(kept), now, "twins.txt. If both pages of each pair say the same: go test ./internal/doccheck -renew")
		return
	}
	for english, zh := range r.twins() {
		require.NoError(t, os.WriteFile(filepath.Join(root, zh.Path), []byte(quoting(zh, r.pages[english])), 0o644))
	}
	if len(alone) == 0 {
		require.NoError(t, os.WriteFile("twins.txt", []byte(now), 0o644))
	}
}

// sums is what twins.txt has to be, and which pages have changed alone.
func (r repository) sums(kept string) (now string, alone []string) {
	twins := r.twins()
	for _, name := range slices.Sorted(maps.Keys(twins)) {
		en, zh := r.pages[name], twins[name]
		now += fmt.Sprintf("%s %s %s\n", en.sum(), zh.sum(), name)
		switch had := regexp.MustCompile(`(?m)^(\w+) (\w+) ` + name + `$`).FindStringSubmatch(kept); {
		case had == nil:
		case had[1] != en.sum() && had[2] == zh.sum():
			alone = append(alone, en.changedAlone(zh, name))
		case had[1] == en.sum() && had[2] != zh.sum():
			alone = append(alone, zh.changedAlone(en, name))
		}
	}
	return now, alone
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

func (p Page) changedAlone(twin Page, name string) string {
	return p.at(1, "its text has changed, and that of %s has not: change it too. If it need not, take the line of %s out of twins.txt", twin.Path, name)
}

// sum is a short sum of a page's words. Numbers, code and links are left out: they
// are compared one by one.
func (p Page) sum() string {
	var words strings.Builder
	for _, text := range p.Of("Heading", "Paragraph", "TextBlock", "TableCell") {
		for word := range strings.FieldsSeq(figures.ReplaceAllString(text.Words, "")) {
			words.WriteString(word)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(words.String())))[:8]
}

func TestAPageThatChangesAloneIsFound(t *testing.T) {
	t.Parallel()
	pair := func(en, zh string) repository {
		const path = chinese + "/README.md"
		return repository{pages: map[string]Page{"README.md": Parse("README.md", en), path: Parse(path, "[English](../../README.md)\n\n"+zh)}}
	}
	kept, _ := pair("one\ntwo 2", "一二 2").sums("")
	for _, c := range []struct{ en, zh, alone string }{
		{"one\ntwo 2", "一二 2", ""},
		{"one two 3", "一\n二 3", ""}, // neither its lines nor its numbers: the other tests compare these
		{"one three", "一二", "README.md:1: "},
		{"one two", "一三", chinese + "/README.md:1: "},
		{"one three", "一三", ""},
	} {
		now, alone := pair(c.en, c.zh).sums(kept)
		assert.Equal(t, c.en == "one three" || c.zh == "一三", now != kept, "the text of %q and %q has changed", c.en, c.zh)
		if c.alone == "" {
			assert.Empty(t, alone)
		} else if assert.Len(t, alone, 1) {
			assert.True(t, strings.HasPrefix(alone[0], c.alone), alone[0])
		}
	}
}
