package doccheck

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Said lists the formats of what a test file says by chapter.Says and SaysIn, by the
// page that it holds to them. Pages are named from the folder of the test.
func Said(test *ast.File) map[string][]string {
	said := map[string][]string{}
	for _, decl := range test.Decls {
		for n := range ast.Preorder(decl) {
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
				formats = slices.DeleteFunc(literals(decl), func(s string) bool { return !strings.Contains(s, "%") })
			}
			said[page] = append(said[page], formats...)
		}
	}
	return said
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
