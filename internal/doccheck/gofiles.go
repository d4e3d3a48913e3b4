package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// A goFile is one Go file, with what pages can name in it.
type goFile struct {
	path  string // from the repository's root, with slashes
	text  string
	tests []string   // its tests, examples and benchmarks
	says  []sentence // what its tests hold a page to
}

// A sentence is a call to chapter.Says or SaysIn: its format and the page.
type sentence struct {
	page   string // from the repository's root
	format string
}

// readGoFiles reads all Go files below root.
func readGoFiles(root string) (files []goFile, err error) {
	err = filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := goFile{path: filepath.ToSlash(relative), text: string(text)}
		if strings.HasSuffix(name, "_test.go") {
			err = f.look()
		}
		files = append(files, f)
		return err
	})
	return files, err
}

var testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)([^a-z]|$)`)

// look finds a test file's tests and sentences.
func (f *goFile) look() error {
	parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	constants := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if value, ok := literal(spec.Values[i]); ok {
						constants[name.Name] = value
					}
				}
			}
		}
		return true
	})
	for _, decl := range parsed.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if function.Recv == nil && testName.MatchString(function.Name.Name) && function.Name.Name != "TestMain" {
			f.tests = append(f.tests, function.Name.Name)
		}
		f.findSays(function, constants)
	}
	return nil
}

func (f *goFile) findSays(function *ast.FuncDecl, constants map[string]string) {
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); !ok || of.Name != "chapter" {
			return true
		}
		where, format := "README.md", -1
		switch {
		case selector.Sel.Name == "Says" && len(call.Args) >= 2:
			format = 1
		case selector.Sel.Name == "SaysIn" && len(call.Args) >= 3:
			format = 2
			if name, ok := call.Args[1].(*ast.Ident); ok {
				where = constants[name.Name]
			} else {
				where, _ = literal(call.Args[1])
			}
		default:
			return true
		}
		where = path.Join(path.Dir(f.path), where)
		if text, ok := literal(call.Args[format]); ok {
			f.says = append(f.says, sentence{where, text})
			return true
		}
		// The format is a variable: it is one of the strings of this function.
		ast.Inspect(function, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok && strings.Contains(text, "%") {
					f.says = append(f.says, sentence{where, text})
				}
			}
			return true
		})
		return true
	})
}

// literal is the value of a string literal, or of several with + between.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok1 := literal(e.X)
		right, ok2 := literal(e.Y)
		return left + right, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z%]`)

// patterns turns a sentence's format into one regular expression for each line
// that it prints. A format of mere placeholders would fit any line, and so gives
// none, unless they are the cells of a table or a list below the line before.
func (s sentence) patterns() (all []*regexp.Regexp) {
	for _, text := range strings.Split("» "+s.format, "\n") {
		fixed := verb.ReplaceAllString(text, "")
		if !strings.ContainsFunc(fixed, unicode.IsLetter) && !strings.Contains(fixed, "|") && !strings.HasPrefix(fixed, "»   ") {
			continue
		}
		var b strings.Builder
		at := 0
		for _, v := range verb.FindAllStringIndex(text, -1) {
			b.WriteString(regexp.QuoteMeta(text[at:v[0]]))
			switch text[v[1]-1] {
			case '%':
				b.WriteString("%")
			case 'd':
				b.WriteString(`-?[0-9]+`)
			case 'f':
				b.WriteString(`-?[0-9]+(?:\.[0-9]+)?`)
			case 'q':
				b.WriteString(`".*"`)
			default:
				b.WriteString(`.+`)
			}
			at = v[1]
		}
		b.WriteString(regexp.QuoteMeta(text[at:]))
		all = append(all, regexp.MustCompile("^"+b.String()+"$"))
	}
	return all
}
