// Package doccheck reads the repository's Markdown, for the book.
package doccheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// A Page is one Markdown file.
type Page struct {
	Path   string // from the repository's root, with slashes
	Source string
	Pieces []Piece // in the order in which they begin; a row is followed by its cells
}

// A Piece is a node of the page's tree.
type Piece struct {
	Kind     string // goldmark's word: Heading, Paragraph, TableCell, CodeSpan, Link, …
	Line     int    // the number of the line on which it begins
	Text     string // of a link, where it leads
	Words    string // the text without the code in it
	Language string // of a code block
	Level    int    // of a heading
	Block    bool   // it is no part of a line
}

// Of lists the pieces of some kinds.
func (p Page) Of(kinds ...string) (all []Piece) {
	for _, piece := range p.Pieces {
		if slices.Contains(kinds, piece.Kind) {
			all = append(all, piece)
		}
	}
	return all
}

// Blocks lists the fenced code blocks.
func (p Page) Blocks() []Piece { return p.Of("FencedCodeBlock") }

// Files reads all files below root that have one of these extensions, by their paths.
// Folders that git does not keep, and those with a dot or a _ in front, are left out.
func Files(root string, extensions ...string) (texts map[string]string, err error) {
	tree := os.DirFS(root)
	texts = map[string]string{}
	return texts, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		isHidden := strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")
		isLeftOut := isHidden || d.Name() == "out"
		switch {
		case name == ".": // has a dot in front, and is not left out
			return nil
		case d.IsDir() && isLeftOut:
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(extensions, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		texts[name] = string(text)
		return err
	})
}

// InChinese is the Chinese page beside an English one.
func InChinese(page string) string { return strings.TrimSuffix(page, ".md") + ".zh-CN.md" }

// ForWhoChangesTheCode tells which pages lead through the code: the page of each folder in
// internal, and two in docs. They are in English alone, as the comments of the code are.
func ForWhoChangesTheCode(page string) bool {
	switch page {
	case "docs/CONTRIBUTING.md":
		return true
	}
	return strings.HasPrefix(page, "internal/") && path.Base(page) == "README.md"
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()

// Parse reads one page.
func Parse(path, page string) Page {
	p, source := Page{Path: path, Source: page}, []byte(page)
	_ = ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		missing := n.Pos() < 0 // a cell that the row lacks
		isNoPiece := missing || n.Kind() == ast.KindText || n.Kind() == ast.KindDocument
		if !entering || isNoPiece {
			return ast.WalkContinue, nil
		}
		line := 1 + bytes.Count(source[:n.Pos()], []byte("\n"))
		piece := Piece{Kind: n.Kind().String(), Line: line, Block: n.Type() != ast.TypeInline}
		piece.Text, piece.Words = textOf(n, source)
		switch n := n.(type) {
		case *ast.Link:
			piece.Text = string(n.Destination)
		case *ast.Image:
			piece.Text = string(n.Destination)
		case *ast.FencedCodeBlock:
			piece.Language = string(n.Language(source))
			piece.Text = strings.TrimSuffix(string(n.Lines().Value(source)), "\n")
		case *ast.HTMLBlock:
			piece.Text = string(n.Lines().Value(source))
		case *ast.Heading:
			piece.Level = n.Level
		}
		p.Pieces = append(p.Pieces, piece)
		return ast.WalkContinue, nil
	})
	return p
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Anchor is what a link has behind a # for the first heading of this text.
func Anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(notInAnchors.ReplaceAllString(heading, "")), " ", "-")
}

// Anchors lists what a link to this page may have behind a #, as the usual hosts
// of Markdown make it of the headings.
func (p Page) Anchors() (all []string) {
	for _, h := range p.Of("Heading") {
		first := Anchor(h.Text)
		name := first
		for n := 1; slices.Contains(all, name); n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		all = append(all, name)
	}
	return all
}

// textOf is what a reader sees of a node, and the same without its code.
func textOf(n ast.Node, source []byte) (all, words string) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		seen := ""
		switch n := n.(type) {
		case *ast.Text:
			seen = string(n.Value(source))
			if n.SoftLineBreak() {
				seen += " "
			}
		case *ast.RawHTML:
			seen = string(n.Segments.Value(source))
		}
		if entering {
			all += seen
		}
		if entering && n.Parent().Kind() != ast.KindCodeSpan {
			words += seen
		}
		return ast.WalkContinue, nil
	})
	return all, words
}
