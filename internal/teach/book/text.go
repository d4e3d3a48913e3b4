package book

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"zklock/internal/upkeep/words"
)

// A writer turns a page's Markdown into HTML.
type writer struct {
	*page
	source   []byte
	markdown goldmark.Markdown
	out      bytes.Buffer
	sections []section
	anchors  []string // of the headings that are still to come
	asked    int      // questions so far
	plays    bool     // a run
	printed  []output
	veil     bool // what follows is hidden until the question is answered
	err      error
}

// The word by which a prediction is found, and the heading of the output that answers it.
var (
	predict    = regexp.MustCompile(`^(?:Predict|先预测)`)
	whatIsSeen = regexp.MustCompile(`^(?:What you see|运行结果)$`)
)

func newWriter(p *page) *writer {
	w := &writer{page: p, source: []byte(p.Source), anchors: p.Anchors()}
	w.markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(
		html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(links{p}, 100))))
	return w
}

// A page that was rendered.
type rendered struct {
	html     string
	sections []section
	plays    bool     // a run, and so needs the script for that
	asked    int      // questions
	printed  []output // by the tests
}

// An output is what tests have printed, as a section of a chapter has it.
type output struct {
	section section
	text    string
}

// render makes the page's HTML.
func (p *page) render() (rendered, error) {
	w := newWriter(p)
	doc := w.markdown.Parser().Parse(text.NewReader(w.source))
	veilBelow := false // the next section with what is seen answers the question
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
		case w.tells(n):
			n = w.mistake(n)
		default:
			w.block(n)
			w.runBelow(n)
		}
		if n == nil {
			break
		}
	}
	w.unhide()
	return rendered{w.out.String(), w.sections, w.plays, w.asked, w.printed}, w.err
}

// endsSection tells whether nothing follows a block but the next heading.
func endsSection(n ast.Node) bool {
	if n == nil || n.NextSibling() == nil {
		return false
	}
	return n.NextSibling().Kind() == ast.KindHeading
}

// said is what a reader sees of a node.
func (w *writer) said(n ast.Node) string {
	var said strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				said.Write(t.Value(w.source))
			}
			if entering && t.SoftLineBreak() {
				said.WriteByte(' ')
			}
		case *ast.TextBlock, *ast.ListItem, *extended.TableCell:
			if !entering {
				said.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return said.String()
}

// heading ends what was hidden, and begins a section.
func (w *writer) heading(h *ast.Heading) {
	w.unhide()
	id, title := w.anchors[0], w.said(h)
	w.anchors = w.anchors[1:]
	h.SetAttributeString("id", []byte(id))
	w.sections = append(w.sections, section{ID: id, Title: title, Level: h.Level})
	w.write(h)
}

// block writes a block, and adds what it says to its section.
func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		w.keep(n)
		fmt.Fprintf(&w.out, "<pre tabindex=\"0\" class=%q><code>", w.kind(n))
		language := string(n.Language(w.source))
		for line := range strings.Lines(outdented(language, string(n.Lines().Value(w.source)))) {
			w.out.WriteString(codeLine(language, line))
		}
		w.out.WriteString("</code></pre>\n")
		return // output and code are not searched: they would fill the index
	case *extended.Table:
		label := w.edition.say(labels["table"])
		fmt.Fprintf(&w.out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=%q>", label)
		w.write(n)
		w.out.WriteString("</div>\n")
	case *ast.Paragraph:
		if isWay(n) {
			n.SetAttributeString("class", []byte("way"))
		}
		w.write(n)
		w.run(n)
	default:
		w.write(n)
	}
	if len(w.sections) > 0 {
		last := &w.sections[len(w.sections)-1]
		last.Text = strings.TrimSpace(last.Text + " " + w.said(n))
	}
}

// keep keeps what the tests have printed, for the page of the code.
func (w *writer) keep(n *ast.FencedCodeBlock) {
	var printed []string
	for line := range strings.Lines(string(n.Lines().Value(w.source))) {
		if strings.HasPrefix(line, "» ") {
			printed = append(printed, line)
		}
	}
	if len(printed) > 0 && len(w.sections) > 0 {
		w.printed = append(w.printed, output{w.sections[len(w.sections)-1], strings.Join(printed, "")})
	}
}

// kind is the class of a code block: what is typed or was printed, whose long lines are
// broken, or code.
func (w *writer) kind(n *ast.FencedCodeBlock) string {
	if language := string(n.Language(w.source)); language == "" || language == "sh" {
		return "printed"
	}
	return "code"
}

// outdented is Go code without the tabs that all of its lines begin with.
func outdented(language, code string) string {
	for language == "go" && !outside.MatchString(code) {
		code = tab.ReplaceAllString(code, "")
	}
	return code
}

var (
	outside = regexp.MustCompile(`(?m)^[^\t\n]`) // a line that does not begin with a tab
	tab     = regexp.MustCompile(`(?m)^\t`)
)

// codeLine is a line of code. One of a diff says what becomes of it.
func codeLine(language, line string) string {
	safe := template.HTMLEscapeString(line)
	switch {
	case language == "diff" && strings.HasPrefix(line, "+"):
		return "<ins>" + safe + "</ins>"
	case language == "diff" && strings.HasPrefix(line, "-"):
		return "<del>" + safe + "</del>"
	}
	return safe
}

// isWay tells whether a paragraph is the line of links below a page's title.
func isWay(n *ast.Paragraph) bool {
	title, ok := n.PreviousSibling().(*ast.Heading)
	if !ok || title.Level != 1 {
		return false
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if child.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// write writes the HTML of a node.
func (w *writer) write(n ast.Node) {
	w.err = errors.Join(w.err, w.markdown.Renderer().Render(&w.out, w.source, n))
}

// hide hides what follows until the last question is answered.
func (w *writer) hide() {
	fmt.Fprintf(&w.out, "<div class=\"after\" data-after=%q>\n", w.key())
	w.veil = true
}

func (w *writer) unhide() {
	if w.veil {
		w.out.WriteString("</div>\n")
	}
	w.veil = false
}

// key names the last question: the same in both languages.
func (w *writer) key() string { return fmt.Sprintf("%s-%d", w.name, w.asked) }

// links renders what leads to another place: a page of the repository is a page of
// the book, a figure stands in the page, a step's code has a page of its own, and
// what the book does not have is no link.
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

// target is where a link of the Markdown leads in the book, or "".
func (l links) target(to string) string {
	if elsewhere.MatchString(to) || strings.HasPrefix(to, "#") {
		return to
	}
	file, anchor, hasAnchor := strings.Cut(to, "#")
	file = path.Join(path.Dir(l.Path), file)
	if hasAnchor {
		anchor = "#" + anchor
	}
	if p := l.edition.at(file); p != nil {
		return p.name + ".html" + anchor
	}
	if code := l.edition.code(file); code != "" {
		return code
	}
	other := isChinese(file)
	if !isPage(file) || l.edition.sources[file] == "" {
		return ""
	}
	if other {
		return "zh-CN/" + nameOf(file) + ".html" + anchor
	}
	return "../" + nameOf(file) + ".html" + anchor
}

func (l links) image(out util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	file := path.Join(path.Dir(l.Path), string(n.(*ast.Image).Destination))
	figure, ok := l.edition.sources[file]
	if !ok {
		return ast.WalkStop, words.Errorf("there is no figure %s", file)
	}
	alt := template.HTMLEscapeString((&writer{source: source}).said(n))
	fmt.Fprintf(out, "<span class=\"figure\" role=\"img\" aria-label=\"%s\">%s</span>", alt, figure)
	return ast.WalkSkipChildren, nil
}
