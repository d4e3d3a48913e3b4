package doccheck

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// A repository is what the pages are compared with.
type repository struct {
	pages    map[string]page
	code     map[string]string // the Go files
	makefile string
}

func read(t *testing.T) repository {
	t.Helper()
	r := repository{pages: map[string]page{}}
	texts, err := Files(root, ".md")
	require.NoError(t, err)
	for name, text := range texts {
		r.pages[name] = parse(name, text)
	}
	r.code, err = Files(root, ".go")
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	r.makefile = string(makefile)
	return r
}

func exists(file string) bool {
	_, err := os.Stat(filepath.Join(root, file))
	return err == nil
}

func TestLinksLeadSomewhere(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		for _, s := range p.sections {
			for _, l := range s.links() {
				file, anchor := p.resolve(l.text)
				switch {
				case isElsewhere.MatchString(file):
				case !exists(file):
					t.Errorf("%s:%d: %s: no such file", p.path, l.number, l.text)
				case anchor != "" && !slices.Contains(r.pages[file].anchors(), anchor):
					t.Errorf("%s:%d: %s: no such heading", p.path, l.number, l.text)
				}
			}
		}
	}
}

var belowHeader = regexp.MustCompile(`^\|[-:| ]+\|$`)

// The second row of each table is the line below its header. If a blank line separates a row from
// its table, the row is shown as text.
func TestNoRowStandsOutsideItsTable(t *testing.T) {
	for _, p := range read(t).pages {
		for _, s := range p.sections {
			for i, row := range s.rows {
				isFirst := i == 0 || s.rows[i-1].number != row.number-1
				hasLine := i+1 < len(s.rows) && belowHeader.MatchString(s.rows[i+1].text)
				if isFirst && !hasLine {
					t.Errorf("%s:%d: a row without a table: %s", p.path, row.number, row.text)
				}
			}
		}
	}
}

var pageInCode = regexp.MustCompile(`\bdocs/[\w.-]+\.md\b`)

func TestPagesNamedInTheCodeExist(t *testing.T) {
	for name, text := range read(t).code {
		for _, page := range pageInCode.FindAllString(text, -1) {
			if !exists(page) {
				t.Errorf("%s: there is no %s", name, page)
			}
		}
	}
}

// Go code on the page of a step, or of leased, must be in a file of that folder, letter for letter.
// On any other page it may be from any Go file. Hints are sketches, so their code need not be in a
// file.
func TestGoCodeStandsInTheFiles(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		for _, b := range p.blocks() {
			if b.language != "go" || isHints(p.path) {
				continue
			}
			if !r.has(folderOf(p.path), strings.Join(b.lines, "\n")) {
				t.Errorf("%s:%d: this code stands in no file of %q", p.path, b.line, folderOf(p.path))
			}
		}
	}
}

func isHints(page string) bool { return strings.HasPrefix(path.Base(page), "hints.") }

// folderOf returns the folder whose code and tests a page is about, or "" for the whole repository.
func folderOf(page string) string {
	folder, _, _ := strings.Cut(page, "/")
	if isStep := strings.HasPrefix(folder, "step"); isStep || folder == "leased" {
		return folder + "/"
	}
	return ""
}

func (r repository) has(folder, code string) bool {
	for name, text := range r.code {
		if strings.HasPrefix(name, folder) && strings.Contains("\n"+text, "\n"+code+"\n") {
			return true
		}
	}
	return false
}

// A line that a page quotes from a run begins with ». A test prints this line by chapter.Says,
// which compares the page with what was measured. This test only checks that there is such a test.
func TestQuotedLinesAreSaidByATest(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		said := r.saidIn(folderOf(p.path))
		for _, b := range p.blocks() {
			for i, text := range b.lines {
				quoted, isQuoted := strings.CutPrefix(text, "» ")
				isPartOfAList := strings.HasPrefix(quoted, " ") || strings.HasPrefix(quoted, "|")
				matches := func(format *regexp.Regexp) bool { return format.MatchString(quoted) }
				if isQuoted && isEnglish(p.path) && !isPartOfAList && !slices.ContainsFunc(said, matches) {
					t.Errorf("%s:%d: no test says this: %s", p.path, b.line+1+i, quoted)
				}
			}
		}
	}
}

func isEnglish(page string) bool { return !strings.Contains(page, ".zh") }

var (
	stringLiteral = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	verb          = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]`)
	threeLetters  = regexp.MustCompile(`[a-z]{3}`)
)

// saidIn lists the formats, as regular expressions, in the tests of a folder that call
// chapter.Says.
func (r repository) saidIn(folder string) (all []*regexp.Regexp) {
	for name, text := range r.code {
		isTest := strings.HasSuffix(name, "_test.go") && strings.HasPrefix(name, folder)
		if !isTest || !strings.Contains(text, "chapter.Says") {
			continue
		}
		for _, literal := range stringLiteral.FindAllString(text, -1) {
			format, _ := strconv.Unquote(literal)
			for part := range strings.SplitSeq(format, "\n") {
				fixed := verb.Split(strings.TrimPrefix(part, "» "), -1)
				if !threeLetters.MatchString(strings.Join(fixed, "")) {
					continue // it would match anything
				}
				for i := range fixed {
					fixed[i] = regexp.QuoteMeta(fixed[i])
				}
				all = append(all, regexp.MustCompile("^"+strings.Join(fixed, ".+")+"$"))
			}
		}
	}
	return all
}

var nameOfTest = regexp.MustCompile(`^(Test|Example|Benchmark)[A-Z]\w*$`)

func TestNamedTestsExist(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		for _, s := range p.sections {
			for _, word := range s.words {
				if nameOfTest.MatchString(word.text) && !r.hasTest(folderOf(p.path), word.text) {
					t.Errorf("%s:%d: there is no %s", p.path, word.number, word.text)
				}
			}
		}
	}
}

// hasTest reports whether a folder has a test whose name begins like this.
func (r repository) hasTest(folder, pattern string) bool {
	declared := regexp.MustCompile(`(?m)^func (?:` + pattern + `)\w*\(`)
	for name, text := range r.code {
		if strings.HasPrefix(name, folder) && declared.MatchString(text) {
			return true
		}
	}
	return false
}

var mistakesTest = regexp.MustCompile(`func (TestW\d+\w*)\(`)

func TestEveryPublishedMistakeIsOnThePage(t *testing.T) {
	r := read(t)
	told := map[string]bool{}
	for _, s := range r.pages["docs/mistakes.md"].sections {
		for _, word := range s.words {
			told[word.text] = true
		}
	}
	for name, text := range r.code {
		for _, test := range mistakesTest.FindAllStringSubmatch(text, -1) {
			if !told[test[1]] {
				t.Errorf("docs/mistakes.md does not name %s of %s", test[1], name)
			}
		}
	}
}

var mistakesHeading = regexp.MustCompile(`^W\d+: `)

// Each mistake of the page is in its last table, which says what goes wrong.
func TestEveryPublishedMistakeIsInTheTableOfWhatGoesWrong(t *testing.T) {
	const last = "By what goes wrong"
	mistakes := read(t).pages["docs/mistakes.md"]
	var inTable []string
	for _, s := range mistakes.sections {
		if s.heading == last {
			for _, link := range s.links() {
				inTable = append(inTable, link.text)
			}
		}
	}
	for _, s := range mistakes.sections {
		if link := "#" + Anchor(s.heading); mistakesHeading.MatchString(s.heading) && !slices.Contains(inTable, link) {
			t.Errorf("%s: the table %q has no link to %s", mistakes.path, last, link)
		}
	}
}

var function = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)\(`)

// From step to step, lock.go keeps its functions and their order, so that the diff is the lesson.
func TestEachStepKeepsTheFunctionsOfTheOneBefore(t *testing.T) {
	ended := []string{"NewEphemeral", "isFirst"} // in steps 2 and 4
	steps := map[string][]string{}
	for name, text := range read(t).code {
		if path.Base(name) == "lock.go" && path.Dir(name)+"/" == folderOf(name) && strings.HasPrefix(name, "step") {
			for _, found := range function.FindAllStringSubmatch(text, -1) {
				steps[name] = append(steps[name], found[1])
			}
		}
	}
	require.Len(t, steps, 6, "files lock.go")
	names := slices.Sorted(maps.Keys(steps))
	for i, name := range names[1:] {
		before := slices.DeleteFunc(steps[names[i]], func(f string) bool { return slices.Contains(ended, f) })
		kept := slices.DeleteFunc(slices.Clone(steps[name]), func(f string) bool { return !slices.Contains(before, f) })
		require.Equal(t, before, kept, "the functions of %s that %s has as well, in their order", names[i], name)
	}
}

// The folder of a step, or leased, must build in an empty module, with only the client library.
func TestALockImportsNothingOfOurs(t *testing.T) {
	looked := 0
	for name, text := range read(t).code {
		isLock := path.Dir(name)+"/" == folderOf(name) && !strings.HasSuffix(name, "_test.go")
		if !isLock {
			continue
		}
		looked++
		itsOwn := `"zklock/leased/internal/` // is copied with the folder
		if strings.Contains(strings.ReplaceAll(text, itsOwn, ""), `"zklock/`) {
			t.Errorf("%s imports a package of ours", name)
		}
	}
	require.Greater(t, looked, 10, "files of the locks")
}
