package doccheck

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// A repository is all that pages are held against.
type repository struct {
	pages    []Page
	files    []goFile
	makefile string
}

var readRepository = sync.OnceValues(func() (r repository, err error) {
	pages, err1 := Pages(root)
	err2 := walk(root, ".go", func(path, text string) error {
		f := goFile{path: path, text: text, says: map[string][]string{}}
		r.files = append(r.files, f)
		return r.files[len(r.files)-1].look()
	})
	makefile, err3 := os.ReadFile(filepath.Join(root, "Makefile"))
	r.pages, r.makefile = pages, string(makefile)
	return r, errors.Join(err1, err2, err3)
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
// of its graduation exercise; "" if it may be anywhere.
func (p Page) folder() string {
	parts := strings.Split(p.original(), "/")
	switch {
	case strings.HasPrefix(parts[0], "step"):
		return parts[0]
	case len(parts) > 3 && parts[1] == "graduation":
		return path.Join(parts[:3]...)
	}
	return ""
}

// A goFile is one Go file, with what pages can name in it.
type goFile struct {
	path  string // from the repository's root, with slashes
	text  string
	tests []string            // its tests, examples and benchmarks
	says  map[string][]string // the formats of what it says, by the page that it holds to them
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

func has(files []goFile, test string) bool {
	return slices.ContainsFunc(files, func(f goFile) bool { return slices.Contains(f.tests, test) })
}

var testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)([^a-z]|$)`)

// look finds a test file's tests, and its calls to chapter.Says and SaysIn.
func (f *goFile) look() error {
	if !strings.HasSuffix(f.path, "_test.go") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range parsed.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if name := function.Name.Name; function.Recv == nil && testName.MatchString(name) && name != "TestMain" {
			f.tests = append(f.tests, name)
		}
		for n := range ast.Preorder(function) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				continue
			}
			page, format := "README.md", 1
			switch types.ExprString(call.Fun) {
			case "chapter.Says":
			case "chapter.SaysIn":
				page, format = strings.Join(literals(call.Args[1]), ""), 2
			default:
				continue
			}
			formats := []string{strings.Join(literals(call.Args[format]), "")}
			if formats[0] == "" { // a variable: it is one of the strings of this function
				formats = slices.DeleteFunc(literals(function), func(s string) bool { return !strings.Contains(s, "%") })
			}
			page = path.Join(path.Dir(f.path), page)
			f.says[page] = append(f.says[page], formats...)
		}
	}
	return nil
}

// literals lists the strings in a piece of code.
func literals(code ast.Node) (all []string) {
	for n := range ast.Preorder(code) {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ := strconv.Unquote(literal.Value)
			all = append(all, value)
		}
	}
	return all
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z%]`)

// patterns turns a format into one regular expression for each line that it
// prints. A format of mere placeholders would fit any line, and so gives none,
// unless they are the cells of a table or a list below the line before.
func patterns(format string) (all []*regexp.Regexp) {
	printed := map[byte]string{'%': "%", 'd': `-?[0-9]+`, 'f': `-?[0-9]+(?:\.[0-9]+)?`, 'q': `".*"`}
	for line := range strings.SplitSeq("» "+format, "\n") {
		fixed := verb.Split(line, -1)
		if text := strings.Join(fixed, ""); !strings.ContainsFunc(text, unicode.IsLetter) && !strings.Contains(text, "|") && !strings.HasPrefix(text, "»   ") {
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
