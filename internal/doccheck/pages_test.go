package doccheck

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"zklock/internal/zktest"
)

const root = "../.."

func TestMain(m *testing.M) { zktest.Main(m) }

// repository is all that the tests of this file look at.
type repository struct {
	pages   []page
	files   []goFile
	targets map[string]bool // of the Makefile
}

var readRepository = sync.OnceValues(func() (repository, error) {
	pages, err1 := readPages(root)
	files, err2 := readGoFiles(root)
	makefile, err3 := os.ReadFile(filepath.Join(root, "Makefile"))
	return repository{pages, files, targets(string(makefile))}, errors.Join(err1, err2, err3)
})

func repo(t *testing.T) repository {
	t.Helper()
	r, err := readRepository()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.pages) < 15 || len(r.files) < 40 || len(r.targets) < 5 {
		t.Fatalf("%d pages, %d Go files, %d make targets: this is not the repository", len(r.pages), len(r.files), len(r.targets))
	}
	return r
}

var target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)

func targets(makefile string) map[string]bool {
	found := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(makefile, -1) {
		found[m[1]] = true
	}
	return found
}

// folder is where the code that a page speaks of is: the folder of its step, or
// of its graduation exercise; "" if it may be anywhere.
func (p page) folder() string {
	parts := strings.Split(p.original(), "/")
	switch {
	case strings.HasPrefix(parts[0], "step"):
		return parts[0]
	case len(parts) > 3 && parts[1] == "graduation":
		return path.Join(parts[:3]...)
	}
	return ""
}

// in lists the Go files below a folder; "" is the whole repository.
func (r repository) in(folder string) (found []goFile) {
	for _, f := range r.files {
		if folder == "" || strings.HasPrefix(f.path, folder+"/") {
			found = append(found, f)
		}
	}
	return found
}

// check tests that a check finds nothing on any page.
func check(t *testing.T, finds func(repository, page) []string) {
	t.Helper()
	t.Parallel()
	r := repo(t)
	for _, p := range r.pages {
		for _, problem := range finds(r, p) {
			t.Error(problem)
		}
	}
}

// at says where on a page something is wrong.
func (p page) at(line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...))
}

func TestEveryLinkLeadsSomewhere(t *testing.T) { check(t, repository.badLinks) }

func (r repository) badLinks(p page) (problems []string) {
	for _, l := range p.links() {
		if why := r.deadEnd(p, l.target); why != "" {
			problems = append(problems, p.at(l.line, "%s: %s", l.target, why))
		}
	}
	return problems
}

var scheme = regexp.MustCompile(`^[a-z]+:`)

// deadEnd says why a link leads nowhere, or "". What is on other hosts is not
// looked at.
func (r repository) deadEnd(from page, to string) string {
	if scheme.MatchString(to) {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	name := from.path
	if file != "" {
		name = path.Join(path.Dir(from.path), file)
	}
	switch {
	case strings.HasPrefix(file, "/"):
		return "a path from the root of the disk"
	case strings.HasPrefix(name, "../"):
		return "it leaves the repository"
	case strings.HasPrefix(name, "out/"):
		return "git does not keep this folder, so who has just cloned does not have it"
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	for _, p := range r.pages {
		if p.path == name {
			if p.anchors()[anchor] {
				return ""
			}
			return "no such heading"
		}
	}
	return "an anchor in a file that is no page"
}

func TestGoCodeStandsInTheFiles(t *testing.T) { check(t, repository.badCode) }

// badCode: Go code in a chapter is the step's own, letter for letter; elsewhere
// that of any file. Of a list of functions each stands there. A block that is a
// whole file need only compile, and a hint need only be Go.
func (r repository) badCode(p page) (problems []string) {
	for _, b := range p.blocks {
		if b.language != "go" || stands(b, p.shows(r)) {
			continue
		}
		switch {
		case path.Base(p.path) == "hints.md":
			if err := parses(b.text()); err != nil {
				problems = append(problems, p.at(b.first, "this is not Go: %v", err))
			}
		case p.path == use: // TestUseInYourOwnService runs it
		case strings.HasPrefix(b.text(), "package "):
			if err := compiles(b.text()); err != nil {
				problems = append(problems, p.at(b.first, "this file does not compile: %v", err))
			}
		default:
			problems = append(problems, p.at(b.first, "this code stands in no Go file of %q:\n%s", p.folder(), b.text()))
		}
	}
	return problems
}

// shows lists the files that a page shows code of. The exercises and the wrong
// locks begin as copies of a step: a page's code must be the step's own.
func (p page) shows(r repository) (files []goFile) {
	for _, f := range r.in(p.folder()) {
		if !strings.Contains(f.path, "/exercise/") && path.Base(f.path) != "wrong_test.go" {
			files = append(files, f)
		}
	}
	return files
}

func stands(b block, files []goFile) bool {
	want := "\n" + b.text() + "\n"
	if slices.ContainsFunc(b.lines, func(line string) bool { return !strings.HasPrefix(line, "func ") || strings.HasSuffix(line, "{") }) {
		return slices.ContainsFunc(files, func(f goFile) bool { return strings.Contains("\n"+f.text, want) })
	}
	for _, line := range b.lines {
		if !slices.ContainsFunc(files, func(f goFile) bool { return strings.Contains("\n"+f.text, "\n"+line+" {") }) {
			return false
		}
	}
	return true
}

// parses takes a file, declarations, or statements, whose end may be left open.
func parses(text string) (err error) {
	for open := range 4 {
		for _, around := range []string{"%s", "package p\n%s", "package p\nfunc f() {\n%s\n}"} {
			sketch := fmt.Sprintf(around, text+strings.Repeat("\n}", open))
			if _, err = parser.ParseFile(token.NewFileSet(), "", sketch, parser.SkipObjectResolution); err == nil {
				return nil
			}
		}
	}
	return err
}

func compiles(text string) error {
	dir, err := os.MkdirTemp("", "zklock-doccheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "page.go")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err
	}
	return run("go", "vet", name)
}

// run runs a command at the repository's root.
func run(name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Dir = root
	output, err := command.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(output))))
	}
	return nil
}

func TestEveryQuotedLineIsSaidByATest(t *testing.T) { check(t, repository.badQuotes) }

// badQuotes: what a page quotes from a run, a » in front, is what a test holds
// that page to. Pages that are no chapters may also quote a chapter's lines.
func (r repository) badQuotes(p page) (problems []string) {
	var said []*regexp.Regexp
	for _, f := range r.files {
		for _, s := range f.says {
			if s.page == p.original() {
				said = append(said, s.patterns()...)
			}
		}
	}
	inChapters := map[string]bool{}
	for _, other := range r.pages {
		for _, l := range other.quoted() {
			inChapters[l.text] = inChapters[l.text] || other.folder() != ""
		}
	}
	for _, l := range p.quoted() {
		matches := func(pattern *regexp.Regexp) bool { return pattern.MatchString(l.text) }
		if !slices.ContainsFunc(said, matches) && (p.folder() != "" || !inChapters[l.text]) {
			problems = append(problems, p.at(l.number, "no test says this: %s", l.text))
		}
	}
	return problems
}

// quoted lists the lines of a page's code blocks that begin with a ».
func (p page) quoted() (lines []line) {
	for _, b := range p.blocks {
		for i, text := range b.lines {
			if strings.HasPrefix(text, "»") {
				lines = append(lines, line{b.first + i, text})
			}
		}
	}
	return lines
}

var testWord = regexp.MustCompile(`^(Test[A-Z]\w+)(/\S*)?$`)

func TestEveryNamedTestExists(t *testing.T) { check(t, repository.badNames) }

// badNames: a test that a page names exists, and in a chapter, in that step.
func (r repository) badNames(p page) (problems []string) {
	for _, l := range p.prose {
		for _, span := range spans(l.text) {
			m := testWord.FindStringSubmatch(span)
			if m != nil && !has(r.in(p.folder()), m[1]) {
				problems = append(problems, p.at(l.number, "there is no %s in %q", m[1], p.folder()))
			}
		}
	}
	return problems
}

func has(files []goFile, test string) bool {
	return slices.ContainsFunc(files, func(f goFile) bool { return slices.Contains(f.tests, test) })
}
