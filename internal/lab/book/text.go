package book

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"zklock/internal/doccheck"
	"zklock/internal/lab/mermaid"
)

// A writer turns a page's Markdown into HTML.
type writer struct {
	*page
	markdown  []byte
	converter goldmark.Markdown
	out       bytes.Buffer
	sections  []section
	anchors   []string // of the headings so far
	asked     int      // the number of questions so far
	plays     bool     // the page plays a run
	veils     int      // what follows is hidden until so many questions of its section are answered
	err       error
}

// predict matches the word with which a prediction begins. whatIsSeen matches the heading of the
// output that answers it.
var (
	predict    = regexp.MustCompile(`^(?:Predict|先预测|先猜一猜|猜。)`)
	whatIsSeen = regexp.MustCompile(`^(?:What you see|运行结果|你会看到)$`)
)

// rendered is the result of rendering a page.
type rendered struct {
	html     string
	sections []section
	plays    bool // the page plays a run, and needs the script for it
}

// render renders the page as HTML.
func (p *page) render() (rendered, error) {
	w := &writer{page: p, markdown: []byte(p.source)}
	w.converter = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(
		html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(links{p}, 100))))
	doc := w.converter.Parser().Parse(text.NewReader(w.markdown))
	veilBelow := false // the next section that shows the output answers the question
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		heading, isHeading := n.(*ast.Heading)
		switch {
		case isHeading:
			w.heading(heading)
			if veilBelow && whatIsSeen.MatchString(w.said(heading)) {
				w.hide()
				veilBelow = false
			}
		case w.predicts(n):
			n = w.question(n)
			if endsSection(n) {
				veilBelow = true
			} else {
				w.hide()
			}
		default:
			w.block(n)
		}
		if n == nil {
			break
		}
	}
	w.unhide()
	return rendered{w.out.String(), w.sections, w.plays}, w.err
}

// endsSection reports whether a heading directly follows a block.
func endsSection(n ast.Node) bool {
	if n == nil || n.NextSibling() == nil {
		return false
	}
	return n.NextSibling().Kind() == ast.KindHeading
}

// said returns the text of a node, as a reader sees it.
func (w *writer) said(n ast.Node) string { return said(n, w.markdown) }

func said(n ast.Node, markdown []byte) string {
	var said strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, isText := n.(*ast.Text)
		if isText && entering {
			said.Write(t.Value(markdown))
			if t.SoftLineBreak() {
				said.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return said.String()
}

// heading writes a heading. It ends what was hidden, and a heading of the second level begins a
// section.
func (w *writer) heading(h *ast.Heading) {
	w.unhide()
	title := w.said(h)
	first := doccheck.Anchor(title)
	id := first
	for n := 1; slices.Contains(w.anchors, id); n++ {
		id = fmt.Sprintf("%s-%d", first, n)
	}
	w.anchors = append(w.anchors, id)
	h.SetAttributeString("id", []byte(id))
	if h.Level == 2 {
		w.sections = append(w.sections, section{ID: id, Title: title})
	}
	w.write(h)
}

// block writes a block.
func (w *writer) block(n ast.Node) {
	if w.run(n) {
		return
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		w.code(n)
	case *extended.Table:
		label := w.edition.say(labels["table"])
		fmt.Fprintf(&w.out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=%q>", label)
		w.write(n)
		w.out.WriteString("</div>\n")
	default:
		w.write(n)
	}
}

// code writes a block of code. If the block is what one types or what was printed, the page breaks
// its long lines. In a diff, added and removed lines are marked.
func (w *writer) code(n *ast.FencedCodeBlock) {
	language := string(n.Language(w.markdown))
	if language == "mermaid" {
		w.picture(string(n.Lines().Value(w.markdown)))
		return
	}
	kind := "code"
	if language == "" || language == "sh" {
		kind = "printed"
	}
	fmt.Fprintf(&w.out, "<pre tabindex=\"0\" class=%q><code>", kind)
	for line := range strings.Lines(string(n.Lines().Value(w.markdown))) {
		safe := template.HTMLEscapeString(line)
		switch {
		case language == "diff" && strings.HasPrefix(line, "+"):
			safe = "<ins>" + safe + "</ins>"
		case language == "diff" && strings.HasPrefix(line, "-"):
			safe = "<del>" + safe + "</del>"
		}
		w.out.WriteString(safe)
	}
	w.out.WriteString("</code></pre>\n")
}

// picture draws a diagram that Mermaid draws on the repository's host.
func (w *writer) picture(source string) {
	svg, err := mermaid.Draw(source)
	if err != nil {
		w.fail("%s: %w", w.path, err)
	}
	fmt.Fprintf(&w.out, "<div class=\"figure\" tabindex=\"0\">%s</div>\n", svg)
}

// write writes the HTML of a node.
func (w *writer) write(n ast.Node) {
	w.err = errors.Join(w.err, w.converter.Renderer().Render(&w.out, w.markdown, n))
}

// hide begins a part of the page that is hidden until the last question is answered.
func (w *writer) hide() {
	fmt.Fprintf(&w.out, "<div class=\"after\" data-after=%q>\n", w.key())
	w.veils++
}

func (w *writer) unhide() {
	w.out.WriteString(strings.Repeat("</div>\n", w.veils))
	w.veils = 0
}

// key returns the name of the last question, which is the same in both languages.
func (w *writer) key() string { return fmt.Sprintf("%s-%d", w.name, w.asked) }

func (w *writer) fail(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf(format, args...))
}

// links renders links and figures. A link to a page of the repository leads to the page of the
// book. A link to anything else that the book does not have becomes plain text. A figure is written
// into the page.
type links struct{ *page }

func (l links) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, l.link)
	r.Register(ast.KindImage, l.image)
}

var elsewhere = regexp.MustCompile(`^[a-z]+:`)

func (l links) link(out util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to := l.target(string(n.(*ast.Link).Destination))
	switch {
	case entering && to != "":
		fmt.Fprintf(out, "<a href=\"%s\">", template.HTMLEscapeString(to))
	case entering:
		fmt.Fprint(out, "<span class=\"file\">")
	case to != "":
		fmt.Fprint(out, "</a>")
	default:
		fmt.Fprint(out, "</span>")
	}
	return ast.WalkContinue, nil
}

// target returns where a link of the Markdown leads in the book, or "" if the book does not have
// it.
func (l links) target(to string) string {
	if elsewhere.MatchString(to) || strings.HasPrefix(to, "#") {
		return to
	}
	file, anchor, hasAnchor := strings.Cut(to, "#")
	file = path.Join(path.Dir(l.path), file)
	if hasAnchor {
		anchor = "#" + anchor
	}
	if l.lacks(nameOf(file)) {
		return ""
	}
	if p := l.edition.at(file); p != nil {
		return p.name + ".html" + anchor
	}
	if !isPage(file) || l.edition.sources[file] == "" {
		return ""
	}
	if isChinese(file) {
		return "zh-CN/" + nameOf(file) + ".html" + anchor
	}
	return "../" + nameOf(file) + ".html" + anchor
}

func (l links) image(out util.BufWriter, markdown []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	file := path.Join(path.Dir(l.path), string(n.(*ast.Image).Destination))
	figure, ok := l.edition.sources[file]
	if !ok {
		return ast.WalkStop, fmt.Errorf("there is no figure %s", file)
	}
	alt := template.HTMLEscapeString(said(n, markdown))
	fmt.Fprintf(out, "<span class=\"figure\" role=\"img\" aria-label=\"%s\">%s</span>", alt, figure)
	return ast.WalkSkipChildren, nil
}
