package doccheck

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/tables"
	"zklock/internal/upkeep/words"
)

func TestEveryLinkLeadsSomewhere(t *testing.T) { check(t, repository.badLinks) }

func (r repository) badLinks(p Page) (problems []string) {
	for _, l := range p.Of("Link", "Image") {
		if why := r.deadEnd(p, l.Text); why != "" {
			problems = append(problems, p.at(l.Line, "%s: %s", l.Text, why))
		}
	}
	for _, html := range p.Of("RawHTML", "HTMLBlock") {
		if html.Text != "<br>" && !folded.MatchString(html.Text) && !made.MatchString(html.Text) {
			problems = append(problems, p.at(html.Line, "%s: a link in HTML would not be looked at", html.Text))
		}
	}
	return problems
}

// folded is what hides the answer to a prediction until somebody asks for it.
var folded = regexp.MustCompile(`^(<details>\n<summary>[^<>]+</summary>|</details>)\n?$`)

// made marks a list that go generate writes.
var made = regexp.MustCompile(`^<!-- (made from the table of [a-z]+: go generate \./\.\.\.|end) -->\n?$`)

var scheme = regexp.MustCompile(`^[a-z]+:`)

// resolve is where a link leads, from the repository's root, without its anchor.
func (p Page) resolve(target string) string {
	file, _, _ := strings.Cut(target, "#")
	switch {
	case scheme.MatchString(target):
		return target
	case file == "":
		return p.Path
	}
	return path.Join(path.Dir(p.Path), file)
}

// deadEnd says why a link leads nowhere, or "". What is on other hosts is not
// looked at.
func (r repository) deadEnd(from Page, to string) string {
	name := from.resolve(to)
	_, anchor, _ := strings.Cut(to, "#")
	switch {
	case scheme.MatchString(to):
		return ""
	case strings.HasPrefix(to, "/"):
		return "a path from the root of the disk"
	case strings.HasPrefix(name, "../"):
		return "it leaves the repository"
	case strings.HasPrefix(name, "out/"):
		return "git does not keep this folder, so who has just cloned does not have it"
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	if !slices.Contains(r.pages[name].Anchors(), anchor) {
		return "no such heading"
	}
	return ""
}

func TestEveryCodeBlockIsClosed(t *testing.T) { check(t, repository.badFences) }

var fence = regexp.MustCompile("(?m)^[> ]*```")

func (r repository) badFences(p Page) []string {
	if fences := fence.FindAllString(p.Source, -1); len(fences) != 2*len(p.Blocks()) {
		return []string{p.at(
			1,
			"a code block is not closed: %d code blocks, %d lines with ```",
			len(p.Blocks()),
			len(fences),
		)}
	}
	return nil
}

func TestCodeStandsInTheFiles(t *testing.T) { check(t, repository.badCode) }

// badCode: Go code in a chapter is the step's own, letter for letter, and a diff that of
// one of its parts; elsewhere that of any file. Of a list of functions each stands there.
// A hint need only be Go. TestUseInYourOwnService runs what docs/use.md shows.
func (r repository) badCode(p Page) (problems []string) {
	for _, b := range p.Blocks() {
		isCode := b.Language == "go" || b.Language == "diff"
		if !isCode || p.original() == "docs/use.md" {
			continue
		}
		if stands(b.Text, r.shown(p, b.Language)) {
			continue
		}
		if !p.isHints() {
			problems = append(
				problems,
				p.at(b.Line, "this stands in no %s file of %q:\n%s", b.Language, p.folder(), b.Text),
			)
		} else if err := parses(b.Text); err != nil {
			problems = append(problems, p.at(b.Line, "this is not Go: %v", err))
		}
	}
	return problems
}

// isHints tells whether a page has an exercise's hints, which make hint shows one at a time.
func (p Page) isHints() bool { return strings.HasPrefix(path.Base(p.Path), "hints.") }

// shown lists the files that a page shows code of. The starters and the wrong locks
// are changes of a step: a page's code must be the step's own.
func (r repository) shown(p Page, language string) []file {
	return slices.DeleteFunc(r.in(p.folder()), func(f file) bool {
		name := path.Base(f.path)
		return path.Ext(name) != "."+language || name == "starter.diff" || name == "wrong_test.go"
	})
}

func stands(code string, files []file) bool {
	in := func(text string) bool {
		return slices.ContainsFunc(files, func(f file) bool { return strings.Contains("\n"+f.text, "\n"+text) })
	}
	lines := strings.Split(code, "\n")
	isHead := func(line string) bool { return strings.HasPrefix(line, "func ") && !strings.HasSuffix(line, "{") }
	if slices.ContainsFunc(lines, func(line string) bool { return !isHead(line) }) {
		return in(code + "\n")
	}
	return !slices.ContainsFunc(lines, func(line string) bool { return !in(line + " {") })
}

// parses takes a file, declarations, or statements, whose end may be left open.
func parses(code string) (err error) {
	for open := range 4 {
		for _, around := range []string{"%s", "package p\n%s", "package p\nfunc f() {\n%s\n}"} {
			sketch := fmt.Sprintf(around, code+strings.Repeat("\n}", open))
			if _, err = parser.ParseFile(token.NewFileSet(), "", sketch, parser.SkipObjectResolution); err == nil {
				return nil
			}
		}
	}
	return err
}

func TestEveryQuotedLineIsSaidByATest(t *testing.T) { check(t, repository.badQuotes) }

// badQuotes: what a page quotes from a run, a » in front, is what a test holds
// that page to. Pages that are no chapters may also quote a chapter's lines.
func (r repository) badQuotes(p Page) (problems []string) {
	if p.original() != p.Path {
		return nil // the test that says so holds them, too
	}
	var said []*regexp.Regexp
	for _, f := range r.files {
		for _, format := range f.says[p.Path] {
			said = append(said, patterns(format)...)
		}
	}
	inChapters := map[string]bool{}
	for _, other := range r.pages {
		for _, l := range other.quoted() {
			inChapters[l.Text] = inChapters[l.Text] || other.folder() != ""
		}
	}
	for _, l := range p.quoted() {
		matches := func(pattern *regexp.Regexp) bool { return pattern.MatchString(l.Text) }
		if !slices.ContainsFunc(said, matches) && (p.folder() != "" || !inChapters[l.Text]) {
			problems = append(problems, p.at(l.Line, "no test says this: %s", l.Text))
		}
	}
	return problems
}

// lines lists the lines of a code block.
func (p Piece) lines() (all []Piece) {
	for i, text := range strings.Split(p.Text, "\n") {
		all = append(all, Piece{Line: p.Line + 1 + i, Text: text, Language: p.Language})
	}
	return all
}

// quoted lists the lines of code blocks that begin with a ».
func (p Page) quoted() []Piece {
	return slices.DeleteFunc(p.code(), func(l Piece) bool { return !strings.HasPrefix(l.Text, "»") })
}

var testWord = regexp.MustCompile(`^(Test[A-Z]\w+)(/\S*)?$`)

func TestEveryNamedTestExists(t *testing.T) { check(t, repository.badNames) }

// badNames: a test that a page names exists, and in a chapter, in that step.
func (r repository) badNames(p Page) (problems []string) {
	for _, code := range p.Of("CodeSpan") {
		m := testWord.FindStringSubmatch(code.Text)
		if m != nil && !hasTest(r.in(p.folder()), func(name string) bool { return name == m[1] }) {
			problems = append(problems, p.at(code.Line, "there is no %s in %q", m[1], p.folder()))
		}
	}
	return problems
}

// Every mistake has its paragraph in both editions, as the table of mistakes has it, and
// every test of a mistake is one of the table.
func TestEveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	r := repo(t)
	english, chinese := r.pages["docs/mistakes.md"].sections(), r.pages["docs/mistakes.zh-CN.md"].sections()
	inEnglish := []string{"The idea.", "What happens.", "The test.", "The fix."}
	inChinese := []string{"思路。", "后果。", "测试。", "改法。"}
	var tests []string
	for _, m := range tables.Mistakes {
		tests = append(tests, m.File()+" "+m.Test)
		isTold(t, m, english, inEnglish, m.Key()+": "+m.Name, "In "+m.Document)
		isTold(t, m, chinese, inChinese, m.Key()+"："+words.Whole(m.Name).ZH, words.Whole(m.Document).ZH)
	}
	for _, f := range r.files {
		for _, name := range f.tests {
			if regexp.MustCompile(`^TestW\d`).MatchString(name) {
				assert.Contains(t, tests, f.path+" "+name, "what the table of mistakes names")
			}
		}
	}
}

// isTold tests that a mistake has a section of a page with this heading and these parts, that
// the section says where the mistake was published, and that it names its test.
func isTold(t *testing.T, m tables.Mistake, sections []Page, parts []string, heading, document string) {
	t.Helper()
	at := slices.IndexFunc(sections, func(s Page) bool { return s.Pieces[0].Text == heading })
	if !assert.GreaterOrEqual(t, at, 0, "no section has the heading %q", heading) {
		return
	}
	section := sections[at]
	emphasis := texts(section.Of("Emphasis"))
	require.NotEmpty(t, emphasis, heading)
	assert.Subset(t, emphasis, parts, heading)
	assert.Contains(t, emphasis[0], document, "%s: where it was published", heading)
	assert.Contains(t, texts(section.Of("CodeSpan")), m.Test, "%s: its test", heading)
	var leads []string
	for _, link := range section.Of("Link") {
		leads = append(leads, section.resolve(link.Text))
	}
	assert.Contains(t, leads, m.File(), "%s: where its test is", heading)
}

// sections splits a page before each of its headings.
func (p Page) sections() (all []Page) {
	for i, piece := range p.Pieces {
		if i == 0 || piece.Kind == "Heading" {
			all = append(all, Page{Path: p.Path})
		}
		last := &all[len(all)-1]
		last.Pieces = append(last.Pieces, piece)
	}
	return all
}
