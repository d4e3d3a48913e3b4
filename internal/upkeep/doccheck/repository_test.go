package doccheck

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// A repository is all that pages are held against.
type repository struct {
	pages    map[string]Page // by their paths
	files    []file
	makefile string
}

var readRepository = sync.OnceValues(func() (repository, error) {
	makefile, err1 := os.ReadFile(filepath.Join(root, "Makefile"))
	texts, err2 := Files(root, ".md", ".go", ".diff")
	r, err := repository{pages: map[string]Page{}, makefile: string(makefile)}, errors.Join(err1, err2)
	for name, text := range texts {
		if path.Ext(name) == ".md" {
			r.pages[name] = Parse(name, text)
			continue
		}
		f := file{path: name, text: text}
		if strings.HasSuffix(name, "_test.go") {
			err = errors.Join(err, f.look())
		}
		r.files = append(r.files, f)
	}
	return r, err
})

func repo(t *testing.T) repository {
	t.Helper()
	r, err := readRepository()
	require.NoError(t, err)
	require.Greater(t, len(r.pages), 15, "pages: this is not the repository")
	require.Greater(t, len(r.files), 40, "Go files: this is not the repository")
	return r
}

// check tests that a check finds nothing on any page.
func check(t *testing.T, finds func(repository, Page) []string) {
	t.Helper()
	t.Parallel()
	r := repo(t)
	for _, p := range r.pages {
		assert.Empty(t, strings.Join(finds(r, p), "\n"))
	}
}

// at says where on a page something is wrong.
func (p Page) at(line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.Path, line, fmt.Sprintf(format, args...))
}

// folder is where the code that a page speaks of is: the folder of its step, or
// of its exercise after the steps; "" if it may be anywhere.
func (p Page) folder() string {
	parts := strings.Split(p.original(), "/")
	switch {
	case strings.HasPrefix(parts[0], "step"):
		return parts[0]
	case slices.Contains([]string{"docs/semaphore.md", "docs/multilock.md", "docs/election.md"}, p.original()):
		return "internal/teach/exercise/after/" + strings.TrimSuffix(parts[1], ".md")
	}
	return ""
}

// A file holds Go or a diff, and what pages can name or show of it.
type file struct {
	path  string // from the repository's root, with slashes
	text  string
	tests []string            // its tests, examples and benchmarks
	says  map[string][]string // the formats of what it says, by the page that it holds to them
}

// in lists the files below a folder; "" is the whole repository.
func (r repository) in(folder string) []file {
	return slices.DeleteFunc(slices.Clone(r.files), func(f file) bool {
		return folder != "" && !strings.HasPrefix(f.path, folder+"/")
	})
}

func hasTest(files []file, is func(name string) bool) bool {
	return slices.ContainsFunc(files, func(f file) bool { return slices.ContainsFunc(f.tests, is) })
}

var testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)([^a-z]|$)`)

// look finds a test file's tests, and what they say.
func (f *file) look() error {
	parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range parsed.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && function.Recv == nil && testName.MatchString(function.Name.Name) && function.Name.Name != "TestMain" {
			f.tests = append(f.tests, function.Name.Name)
		}
	}
	f.says = map[string][]string{}
	for page, formats := range Said(parsed) {
		f.says[path.Join(path.Dir(f.path), page)] = formats
	}
	return nil
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z%]`)

// patterns turns a format into one regular expression for each line that it
// prints. A format of mere placeholders would fit any line, and so gives none,
// unless they are the cells of a table or a list below the line before.
func patterns(format string) (all []*regexp.Regexp) {
	printed := map[byte]string{'%': "%", 'd': `-?[0-9]+`, 'f': `-?[0-9]+(?:\.[0-9]+)?`, 'q': `".*"`}
	for line := range strings.SplitSeq("» "+format, "\n") {
		fixed := verb.Split(line, -1)
		text := strings.Join(fixed, "")
		hasLetters := strings.ContainsFunc(text, unicode.IsLetter)
		isRow := strings.Contains(text, "|")
		isExcerpt := strings.HasPrefix(text, "»   ")
		if !hasLetters && !isRow && !isExcerpt {
			continue
		}
		pattern := regexp.QuoteMeta(fixed[0])
		for i, v := range verb.FindAllString(line, -1) {
			pattern += cmp.Or(printed[v[len(v)-1]], ".+") + regexp.QuoteMeta(fixed[i+1])
		}
		all = append(all, regexp.MustCompile("^"+pattern+"$"))
	}
	return all
}
