package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
	"zklock/internal/check/tables"
	"zklock/internal/upkeep/words"
)

// A mistake is a published one, as the test of a step has it.
type mistake struct {
	tables.Mistake
	test   *ast.FuncDecl
	source *ast.File // without comments: they tell
	lines  *token.FileSet
	text   string // what the comment above it says
}

// findMistake reads the code of a published mistake out of its step's wrong_test.go.
func findMistake(n int) (mistake, error) {
	if n < 1 || n > len(tables.Mistakes) {
		return mistake{}, words.Errorf("they are W1 to W%d", len(tables.Mistakes))
	}
	m := tables.Mistakes[n-1]
	text, err := os.ReadFile(m.File())
	if err != nil {
		return mistake{}, err
	}
	lines := token.NewFileSet()
	source, err := parser.ParseFile(lines, m.File(), text, parser.SkipObjectResolution)
	if err != nil {
		return mistake{}, err
	}
	comment := regexp.MustCompile(fmt.Sprintf(`(?m)^// W%d\D.*\n(?://.*\n)*`, n)) // it may stand above the type
	for _, d := range source.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == m.Test {
			return mistake{m, f, source, lines, strings.ReplaceAll(string(comment.Find(text)), "// ", "")}, nil
		}
	}
	return mistake{}, words.Errorf("%s has no %s", m.File(), m.Test)
}

// told is what the comment says, in the reader's language.
func (m mistake) told() string {
	if words.Chinese() {
		return words.Whole(strings.Join(strings.Fields(m.text), " ")).String()
	}
	return strings.TrimSpace(m.text)
}

var declares = regexp.MustCompile(`^(?:type|var|func(?: \(\w+ \*?(\w+)\))?) (\w+)`)

// code prints the wrong lock: all that its test uses of the file, in the order of the
// file, and the functions that the test itself makes the lock with.
func (m mistake) code() string {
	used := map[ast.Node]bool{}
	var use func(text string)
	use = func(text string) {
		for _, d := range m.source.Decls {
			if name := declares.FindStringSubmatch(m.print(d)); name != nil && !used[d] { // a method goes with its type
				if regexp.MustCompile(`\b` + cmp.Or(name[1], name[2]) + `\b`).MatchString(text) {
					used[d] = true
					use(m.print(d))
				}
			}
		}
	}
	use(m.print(m.test.Body))
	var shown []ast.Node
	for _, d := range m.source.Decls {
		if used[d] {
			shown = append(shown, d)
		}
	}
	ast.Inspect(m.test.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if _, ok := n.Rhs[0].(*ast.FuncLit); ok {
				shown = append(shown, n)
				return false
			}
		case *ast.CallExpr:
			if over, ok := n.Fun.(*ast.SelectorExpr); ok && over.Sel.Name == "Over" {
				if _, named := n.Args[1].(*ast.Ident); !named {
					shown = append(shown, &ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("newLock")}, Tok: token.DEFINE, Rhs: n.Args[1:]})
				}
				return false
			}
		}
		return true
	})
	return m.print(shown...)
}

func (m mistake) print(nodes ...ast.Node) string {
	var text strings.Builder
	for _, n := range nodes {
		_ = format.Node(&text, m.lines, n)
		text.WriteString("\n\n")
	}
	return strings.TrimSpace(text.String())
}

// hunt shows a wrong lock, asks which property it lacks, and holds the lock
// against the property that is named.
func (w *workshop) hunt(ctx context.Context, which string) error {
	n := 1 + rand.IntN(len(tables.Mistakes))
	if which != "" {
		n, _ = strconv.Atoi(strings.TrimPrefix(strings.ToUpper(which), "W"))
	}
	m, err := findMistake(n)
	if err != nil {
		return words.Errorf("there is no mistake %q: %w", which, err)
	}
	words.Fprintf(w.out, "W%d, a lock that was published, in Go:\n\n", n)
	fmt.Fprintf(w.out, "%s\n\n", m.code())
	words.Fprintf(w.out, "What is not shown is as in %s.\nWhich property does it lack?\n", tables.Find(m.Step).Folder)
	for i, p := range lockcheck.Properties {
		words.Fprintf(w.out, "%3d  %s\n", i+1, p.Name)
	}
	words.Fprintf(w.out, "  0  none of these: its answers are right, and something else is wrong\nYour answer: ")
	line, _ := w.in.ReadString('\n')
	choice, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || choice < 0 || choice > len(lockcheck.Properties) {
		return words.Errorf("this is no number of the list: %q", strings.TrimSpace(line))
	}
	named := tables.Nothing
	if choice > 0 {
		named = lockcheck.Properties[choice-1].Name
	}
	words.Fprintf(w.out, "%s\n\nrunning it: %s in %s\n", named, m.Test, m.File())
	seen, err := w.tests(ctx, m, named)
	if err != nil {
		return err
	}
	for _, verdict := range seen {
		fmt.Fprintf(w.out, "  %s\n", verdict)
	}
	right, more := m.lacks(named, seen)
	fmt.Fprint(w.out, more)
	said := words.Of("Not this one.")
	if right {
		said = words.Of("Right.")
	}
	if right && choice > 0 {
		step := steps.Of(m.Step) // the mistake is a change of it
		if lockcheck.Check(w.server, step, lockcheck.Properties[choice-1], 0).Verdict == lockcheck.No {
			said = words.Of("True, and %s lacks that, too. What did this change break?", step.Name)
		}
	}
	words.Fprintf(w.out, "\n%s\n\n%s\n", said, m.told())
	return nil
}

// lacks tells whether the mistake is said rightly to lack a property, after its test has
// seen these verdicts, and what else there is to say.
func (m mistake) lacks(named string, seen []string) (right bool, more words.Text) {
	what := m.Suffers
	switch {
	case m.ShowsTwoInside && named == what:
		more = words.Of("  The property's own story does not meet it, but what the test has seen is two inside.\n")
	case what != "" && what != tables.Nothing && !m.ShowsTwoInside:
		more = words.Of("  No property asks for this by itself; the test shows it. What suffers: %s\n", what)
	}
	return named == what ||
		slices.ContainsFunc(
			seen,
			func(verdict string) bool { return strings.HasPrefix(verdict, "✗ "+words.Whole(named).String()+": ") },
		), more
}

var verdictLine = regexp.MustCompile(`(?:✗|✓|–|\?) .*: .*`)

// tests runs the mistake's test, and holds its lock against one more property.
// It returns the verdicts.
func (w *workshop) tests(ctx context.Context, m mistake, asked string) (verdicts []string, err error) {
	test := exec.CommandContext(
		ctx,
		"go",
		"test",
		"-count=1",
		"-timeout",
		"120s",
		"-v",
		"-run",
		m.Run(),
		"./"+tables.Find(m.Step).Folder,
	)
	if err := w.serve(ctx); err != nil {
		return nil, err
	}
	test.Env = append(w.environment(), "LOCKCHECK_ASK="+asked)
	text, err := test.CombinedOutput()
	if err != nil {
		return nil, words.Errorf("%s\n%w", text, err)
	}
	return verdictLine.FindAllString(string(text), -1), nil
}
