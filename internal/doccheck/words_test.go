package doccheck

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused lists words that readers stumbled over, most of them in their second language: an odd
// clause costs them more than a term that was explained once. These words must not be used on a
// page, in a hint, or in what a command or a page in the browser says. On the right is what to say
// instead. The test does not check comments in Go: reviewers do.
var refused = []refusal{
	{say(`\bfor ever\b`), "forever"},
	{say(`\b(?:is|are) inside\b`), "holds the lock, hold the lock"},
	{say(`\bwhoever\b`), "a client that …, people who …"},
	{say(`\ball the same\b`), "anyway"},
	{say(`\blikewise\b`), "also, the same"},
	{say(`\bin vain\b`), "without effect"},
	{say(`\bevery order\b`), "every interleaving"},
	{say(`\blocks? for work\b`), "the production lock"},
	{say(`\bnone of ours\b`), "we must not rely on it"},
	{say(`\b(?:is|are|was|were|been|be) told\b`), "is notified, learns"},
	{say(`, too[.,;:)]`), "also, before the verb"},

	// For each of these the glossary has another term. It also names these words, because the
	// course's documents use some of them.
	{say(`应答`), "响应"},
	{say(`隔离令牌`), "围栏令牌"},
	{say(`读来的|没有?试过`), "未实测"},
	{say(`(?:不停地|一再|反复)询问`), "轮询"},
	{say(`换手`), "易主"},
	{say(`临界区`), "持有锁"},
	{say(`轮到的那个`), "排在下一位的客户端"},
	{say(`死掉|死了`), "崩溃"},
}

// A refusal is a word, and what to say instead.
type refusal struct {
	word   *regexp.Regexp
	better string
}

func say(word string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + word) }

func TestNoPageHasARefusedWord(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		for _, l := range p.said() {
			refuse(t, p.path, l)
		}
	}
	for name, text := range r.code {
		if !strings.HasSuffix(name, "_test.go") {
			refuseInStrings(t, name, text)
		}
	}
	scripts, err := Files(root, ".js", ".tmpl")
	require.NoError(t, err)
	for name, text := range scripts {
		refuseInStrings(t, name, text)
	}
}

// said returns what a page says in words: its headings, prose, tables and drawings, except the
// glossary.
func (p page) said() (all []line) {
	for _, s := range p.sections {
		isGlossary := s.heading == "Glossary" || s.heading == "术语表"
		if isGlossary {
			continue
		}
		all = append(all, line{s.line, s.heading})
		all = append(all, s.prose...)
		for _, b := range s.blocks {
			for i, text := range b.lines {
				if isDrawing(b) {
					all = append(all, line{b.line + 1 + i, text})
				}
			}
		}
	}
	return all
}

// refuseInStrings checks the strings of a program, or all of a template.
func refuseInStrings(t assert.TestingT, name, text string) {
	for i, written := range strings.Split(text, "\n") {
		words := written
		if path.Ext(name) != ".tmpl" {
			words = strings.Join(stringLiteral.FindAllString(written, -1), " ")
		}
		refuse(t, name, line{i + 1, words})
	}
}

func refuse(t assert.TestingT, name string, l line) {
	for _, r := range refused {
		if found := r.word.FindString(l.text); found != "" {
			t.Errorf("%s:%d: %q: say %s", name, l.number, found, r.better)
		}
	}
}

// A refused word must be found where a reader sees it, and not in code.
func TestARefusedWordIsFound(t *testing.T) {
	for _, c := range []struct {
		page  string
		found int
	}{
		{"A client waits for ever.\n", 1},
		{"| what | Whoever unlocks |\n", 1},
		{"## Every order\n", 1},
		{"```mermaid\nNote over A: waits in vain\n```\n", 1},
		{"服务器的应答丢失了。\n", 1},
		{"```go\n// Whoever has the hold can unlock.\n```\n", 0},
		{"A client that unlocks, forever. 响应\n", 0},
	} {
		var seen recorder
		for _, l := range parse("README.md", c.page).said() {
			refuse(&seen, "README.md", l)
		}
		assert.Len(t, seen.errors, c.found, "in %q: %v", c.page, seen.errors)
	}
	var seen recorder
	refuseInStrings(&seen, "a.go", "x := says(\"it waits for ever\") // for ever\n")
	assert.Len(t, seen.errors, 1, "in a string, and not in a comment: %v", seen.errors)
}

// A recorder keeps the errors that a test reports.
type recorder struct{ errors []string }

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
