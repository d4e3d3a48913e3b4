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
	path     string // of the file
	source   string // the file as it is
	in       string // the function, or what else is declared
	what     string // has been done
	nth      int    // of those with the same words
	from, to int
	text     string
}

func (c change) line() int { return 1 + strings.Count(c.source[:c.from], "\n") }

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
var flags = regexp.MustCompile(`^zk\.(Flag|Perm)\w+$`)

// others are the texts that a constant is changed to; what is no constant has none.
func others(text string) []string {
	if n, err := strconv.Atoi(text); err == nil {
		return []string{strconv.Itoa(n - 1), strconv.Itoa(n + 1)}
	}
	if s, err := strconv.Unquote(text); err == nil && s != "" {
		return []string{`""`}
	}
	if flags.MatchString(text) {
		return []string{text + " - 1", text + " + 1"}
	}
	return map[string][]string{`""`: {`"x"`}, "true": {"false"}, "false": {"true"}}[text]
}

// changes lists all single changes of a file: each condition negated, each
// comparison moved by one, each statement deleted, each constant changed.
// Those with the same words are numbered, also over several files: seen counts them.
func changes(path, source string, seen map[string]int) (all []change, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	in := ""
	add := func(n ast.Node, text, what string) {
		seen[in+what]++
		all = append(all, change{path, source, in, what, seen[in+what], at(n.Pos()), at(n.End()), text})
	}
	was := func(n ast.Node) string { return source[at(n.Pos()):at(n.End())] }
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
			}
			if e, ok := n.(ast.Expr); ok {
				for _, other := range others(was(e)) {
					replace(e, other)
				}
				return others(was(e)) == nil
			}
			return true
		})
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.from - b.from })
	return all, nil
}

// version is what stands behind a package's name, as in math/rand/v2.
var version = regexp.MustCompile(`/v\d+$`)

// made is the file with the change. An import that is used no more is kept, or the
// compiler would notice before the tests.
func (c change) made() string {
	text := c.source[:c.from] + c.text + c.source[c.to:]
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		return text
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
		name := path.Base(version.ReplaceAllString(strings.Trim(spec.Path.Value, `"`), ""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !used[name] {
			text = strings.Replace(text, text[spec.Pos()-1:spec.End()-1], "_ "+spec.Path.Value, 1)
		}
	}
	return text
}
