package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A change replaces a piece of a file.
type change struct {
	in       string // the function, or what else is declared
	what     string // has been done
	nth      int    // of those with the same words
	line     int
	from, to int
	text     string
}

// String names the change, whatever stands above it in the file.
func (c change) String() string {
	if c.nth > 1 {
		return fmt.Sprintf("%s: %s (no. %d)", c.in, c.what, c.nth)
	}
	return c.in + ": " + c.what
}

// moved is a comparison moved by one.
var moved = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}

// flags are the constants of the client that are numbers.
var flags = regexp.MustCompile(`^zk\.(Flag|Perm)`)

// changes lists all single changes of a file: each condition negated, each
// comparison moved by one, each statement deleted, each constant changed.
func changes(source []byte) (all []change, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, 0)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	in, seen := "", map[string]int{}
	add := func(n ast.Node, text, what string) {
		c := change{in: in, what: what, line: files.Position(n.Pos()).Line, from: at(n.Pos()), to: at(n.End()), text: text}
		seen[c.String()]++
		c.nth = seen[c.String()]
		all = append(all, c)
	}
	was := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	replace := func(n ast.Node, text string) { add(n, text, fmt.Sprintf("`%s` becomes `%s`", was(n), text)) }
	negate := func(n ast.Node) { add(n, "!("+was(n)+")", fmt.Sprintf("`%s` negated", was(n))) }
	remove := func(body []ast.Stmt) {
		for _, n := range body {
			first, _, more := strings.Cut(was(n), "\n")
			first, _, _ = strings.Cut(first, " //")
			if more {
				first += " …"
			}
			add(n, "", fmt.Sprintf("`%s` deleted", first))
		}
	}
	number := func(n ast.Node) {
		if value, err := strconv.Atoi(was(n)); err == nil {
			replace(n, strconv.Itoa(value-1))
			replace(n, strconv.Itoa(value+1))
		}
	}
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.FuncDecl:
				in = n.Name.Name
			case *ast.ValueSpec:
				in = n.Names[0].Name
			case *ast.IfStmt:
				negate(n.Cond)
			case *ast.ForStmt:
				if n.Cond != nil {
					negate(n.Cond)
				}
			case *ast.BlockStmt:
				remove(n.List)
			case *ast.CaseClause:
				remove(n.Body)
			case *ast.CommClause:
				remove(n.Body)
			case *ast.BinaryExpr:
				if n.Op == token.LAND || n.Op == token.LOR {
					negate(n.X)
					negate(n.Y)
				}
				if op, ok := moved[n.Op]; ok {
					replace(n, was(n.X)+" "+op+" "+was(n.Y))
				}
			case *ast.UnaryExpr:
				number(n) // -1
				_, literal := n.X.(*ast.BasicLit)
				return !literal
			case *ast.BasicLit:
				number(n)
				if n.Kind == token.STRING && len(n.Value) > 2 {
					replace(n, `""`)
				} else if n.Kind == token.STRING {
					replace(n, `"x"`)
				}
			case *ast.Ident:
				if n.Name == "true" || n.Name == "false" {
					replace(n, map[string]string{"true": "false", "false": "true"}[n.Name])
				}
			case *ast.SelectorExpr:
				if flags.MatchString(was(n)) {
					replace(n, was(n)+" - 1")
					replace(n, was(n)+" + 1")
				}
			}
			return true
		})
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.line - b.line })
	return all, nil
}

// apply makes the change. An import that is used no more is kept, or the
// compiler would notice before the tests.
func (c change) apply(source []byte) []byte {
	text := string(source[:c.from]) + c.text + string(source[c.to:])
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		return []byte(text)
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, spec := range file.Imports {
		name := path.Base(strings.Trim(spec.Path.Value, `"`))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !used[name] {
			text = strings.Replace(text, text[spec.Pos()-1:spec.End()-1], "_ "+spec.Path.Value, 1)
		}
	}
	return []byte(text)
}
