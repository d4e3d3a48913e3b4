package book

import (
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// notes are what docs/workshop.md says of a chapter, for who speaks to the slides: the
// rows of its plans, the paragraphs and the items of its lists that lead to the chapter.
func (e *edition) notes(p *page) string {
	workshop := e.page("workshop")
	if workshop == nil || !stepName.MatchString(p.name) {
		return ""
	}
	w := newWriter(workshop)
	doc := w.markdown.Parser().Parse(text.NewReader(w.source))
	var blocks []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !entering || !ok {
			return ast.WalkContinue, nil
		}
		if path.Join(path.Dir(workshop.Path), string(link.Destination)) != p.Path {
			return ast.WalkContinue, nil
		}
		var block ast.Node = link
		for !isNote(block) {
			block = block.Parent()
		}
		if len(blocks) == 0 || blocks[len(blocks)-1] != block {
			blocks = append(blocks, block)
		}
		return ast.WalkContinue, nil
	})
	for _, block := range blocks {
		w.out.WriteString("<p>")
		for child := block.FirstChild(); child != nil; child = child.NextSibling() {
			w.inner(child)
			w.out.WriteString(" ")
		}
		w.out.WriteString("</p>\n")
	}
	return strings.TrimSpace(w.out.String())
}

// isNote tells whether a block is large enough to be understood alone.
func isNote(n ast.Node) bool {
	switch n.(type) {
	case *extended.TableRow, *ast.Paragraph, *ast.ListItem:
		return true
	}
	return n.Parent() == nil
}

// inner writes what is in a cell or in an item; of what is in a line, the thing itself.
func (w *writer) inner(n ast.Node) {
	if n.Type() == ast.TypeInline {
		w.write(n)
		return
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		w.write(child)
	}
}
