package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/lockcheck"
)

// A mistake is a published one, W1 to W17, as a test of a step has it.
type mistake struct {
	number int
	file   string // the step's wrong_test.go
	test   *ast.FuncDecl
	source *ast.File // without comments: they tell
	files  *token.FileSet
	text   string // what the comment above it says
}

// unasked are the mistakes that no property asks for: a test of their own shows
// them. The property is the one that suffers, nil if a lock's answers do not
// show it.
var unasked = map[int]*lockcheck.Property{
	7:  nil,
	10: lockcheck.OneHolder,
	13: lockcheck.FirstCome,
	15: lockcheck.WakesOne,
}

// besides is what suffers, too, where the property that a mistake lacks does not say so.
var besides = map[int]*lockcheck.Property{8: lockcheck.OneHolder}

var numbered = regexp.MustCompile(`^(?:Test)?W(\d+)\D`)

// mistakes reads the published mistakes out of the steps' wrong_test.go. Of one
// that several steps have, the first counts.
func mistakes() (map[int]mistake, error) {
	paths, _ := filepath.Glob("step[0-9][0-9]_*/wrong_test.go")
	found := map[int]mistake{}
	for _, path := range paths {
		files := token.NewFileSet()
		told, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		source, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		text := map[int]string{} // the comment may stand above the type
		for _, group := range told.Comments {
			if m := numbered.FindStringSubmatch(group.Text()); m != nil {
				n, _ := strconv.Atoi(m[1])
				text[n] = group.Text()
			}
		}
		for _, d := range source.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			m := numbered.FindStringSubmatch(f.Name.Name)
			if m == nil {
				continue
			}
			n, _ := strconv.Atoi(m[1])
			if _, known := found[n]; !known {
				found[n] = mistake{n, path, f, source, files, text[n]}
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no published mistakes found: run this in the root of the repository")
	}
	return found, nil
}

// code prints the wrong lock: the function that makes it, and all that it uses
// of its file, in the order of the file.
func (m mistake) code() string {
	declared := map[string][]ast.Decl{} // a type's methods stand under its name
	for _, d := range m.source.Decls {
		for _, name := range names(d) {
			declared[name] = append(declared[name], d)
		}
	}
	used := map[ast.Decl]bool{}
	var use func(ast.Node)
	use = func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				for _, d := range declared[id.Name] {
					if !used[d] {
						used[d] = true
						use(d)
					}
				}
			}
			return true
		})
	}
	use(m.test.Body)
	var shown []ast.Node
	for _, d := range m.source.Decls {
		if used[d] {
			shown = append(shown, d)
		}
	}
	for _, s := range m.test.Body.List { // functions that the constructor uses
		if assign, ok := s.(*ast.AssignStmt); ok {
			if _, ok := assign.Rhs[0].(*ast.FuncLit); ok {
				shown = append(shown, s)
			}
		}
	}
	if makes := m.constructor(); makes != nil {
		shown = append(shown, &ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("newLock")}, Tok: token.DEFINE, Rhs: []ast.Expr{makes}})
	}
	var text bytes.Buffer
	for _, n := range shown {
		_ = format.Node(&text, m.files, n)
		text.WriteString("\n\n")
	}
	return strings.TrimSpace(text.String())
}

// names are what a declaration is looked up by.
func names(d ast.Decl) (all []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if strings.HasPrefix(d.Name.Name, "Test") {
			return nil
		}
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				all = append(all, id.Name)
			}
			return true
		})
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				all = append(all, spec.Name.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					all = append(all, id.Name)
				}
			}
		}
	}
	return all
}

// constructor is the function in the test that makes the lock, if it is
// written there.
func (m mistake) constructor() (makes *ast.FuncLit) {
	ast.Inspect(m.test.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || makes != nil {
			return makes == nil
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Over" {
			makes, _ = call.Args[len(call.Args)-1].(*ast.FuncLit)
		}
		return true
	})
	return makes
}

// hunt shows a wrong lock, asks which property it lacks, and holds the lock
// against the property that is named.
func hunt(ctx context.Context, which string, in *bufio.Reader, out io.Writer) error {
	all, err := mistakes()
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToUpper(which), "W"))
	if which == "" {
		known := slices.Collect(maps.Keys(all))
		n = known[rand.IntN(len(known))]
	} else if _, known := all[n]; err != nil || !known {
		return fmt.Errorf("there is no mistake %q: they are W1 to W17", which)
	}
	m := all[n]
	fmt.Fprintf(out, "W%d, a lock that was published, in Go:\n\n%s\n\n", n, m.code())
	fmt.Fprintf(out, "What is not shown is as in %s.\nWhich property does it lack?\n", filepath.Dir(m.file))
	for i, p := range lockcheck.Properties {
		fmt.Fprintf(out, "%3d  %s\n", i+1, p.Name)
	}
	fmt.Fprintln(out, "  0  none of these: its answers are right, and something else is wrong")
	fmt.Fprint(out, "Your answer: ")
	line, _ := in.ReadString('\n')
	choice, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || choice < 0 || choice > len(lockcheck.Properties) {
		return fmt.Errorf("this is no number of the list: %q", strings.TrimSpace(line))
	}
	named := ""
	if choice > 0 {
		named = lockcheck.Properties[choice-1].Name
	}
	fmt.Fprintf(out, "%s\n\nrunning it: %s in %s\n", cmp.Or(named, "none of these"), m.test.Name.Name, m.file)
	seen, err := m.run(ctx, named)
	if err != nil {
		return err
	}
	right := false
	for _, verdict := range seen {
		fmt.Fprintln(out, " ", verdict)
		right = right || choice > 0 && strings.HasPrefix(verdict, "✗ "+named+": ")
	}
	if suffers, ok := unasked[n]; ok {
		if suffers == nil {
			right = right || choice == 0
		} else {
			right = right || named == suffers.Name
			fmt.Fprintf(out, "  No property asks for this by itself; the test shows it. What suffers: %s\n", suffers.Name)
		}
	}
	if suffers, ok := besides[n]; ok && named == suffers.Name {
		right = true
		fmt.Fprintf(out, "  The property's own story does not meet it, but what the test has seen is two inside.\n")
	}
	said := map[bool]string{true: "Right.", false: "Not this one."}[right]
	if right && choice > 0 {
		base, err := m.base(ctx, named)
		if err != nil {
			return err
		}
		if base == "✗" {
			said = fmt.Sprintf("True, and %s lacks that, too. What did this change break?", m.step())
		}
	}
	fmt.Fprintf(out, "\n%s\n\n%s", said, m.text)
	return nil
}

// step is the one that the mistake is a change of.
func (m mistake) step() exercise {
	all := exercises()
	return all[slices.IndexFunc(all, func(e exercise) bool { return e.home == filepath.Dir(m.file) })]
}

// base holds the step's own lock against a property.
func (m mistake) base(ctx context.Context, property string) (verdict string, err error) {
	e := m.step()
	step, err := e.own()
	if err != nil {
		return "", err
	}
	j, err := newJudge(ctx)
	if err != nil {
		return "", err
	}
	defer j.close()
	program, err := j.build(ctx, e.replacedBy(step))
	if err != nil {
		return "", err
	}
	_, err = j.ask(ctx, program, e, only(property), func(a answer) { verdict = a.Verdict })
	return verdict, err
}

var verdictLine = regexp.MustCompile(`(?:✗|✓|–|\?) .*: .*`)

// run runs the mistake's test, and holds its lock against one more property.
// It returns the verdicts.
func (m mistake) run(ctx context.Context, asked string) (verdicts []string, err error) {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "120s", "-v",
		"-run", "^"+m.test.Name.Name+"$", "./"+filepath.Dir(m.file))
	test.Env = append(os.Environ(), "LOCKCHECK_ASK="+asked)
	text, err := test.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s\n%w", text, err)
	}
	for line := range strings.Lines(string(text)) {
		if verdict := verdictLine.FindString(strings.TrimSpace(line)); verdict != "" {
			verdicts = append(verdicts, verdict)
		}
	}
	return verdicts, nil
}
