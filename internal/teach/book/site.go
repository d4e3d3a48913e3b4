// Package book makes a site of the repository's Markdown, in both languages: a file for
// each chapter and each page. It needs no server, and loads nothing from elsewhere; make
// book writes it to a folder, and make play serves it.
package book

import (
	"bytes"
	_ "embed"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	shared "zklock/internal/show/page"
	"zklock/internal/upkeep/doccheck"
	"zklock/internal/upkeep/words"
)

//go:embed book.html.tmpl
var markup string

//go:embed book.css
var css string

//go:embed book.js
var script string

// An edition is the book in one language.
type edition struct {
	language string // of the HTML: en or zh-CN
	folder   string // where its files are: "" or zh-CN/
	pages    []*page
	sources  map[string]string // the repository's Markdown and Go files, by their paths
	codes    []*codePage
}

// A page is one Markdown file, and will be one HTML file.
type page struct {
	doccheck.Page
	name    string // of the HTML file, without its extension: the same in both languages
	edition *edition
}

// isChinese tells whether a page of the repository is in Chinese.
func isChinese(source string) bool { return strings.HasSuffix(source, ".zh-CN.md") }

// Build makes all files of the book, of the repository in a folder.
func Build(root string) (Files, error) {
	sources, err := doccheck.Files(root, ".md", ".go", ".svg", ".json")
	if err != nil {
		return nil, err
	}
	english := &edition{language: "en", sources: sources}
	chinese := &edition{language: "zh-CN", folder: "zh-CN/", sources: sources}
	for source, text := range sources {
		if !isPage(source) {
			continue
		}
		e := english
		if isChinese(source) {
			e = chinese
		}
		e.pages = append(e.pages, &page{doccheck.Parse(source, text), nameOf(source), e})
	}
	files := Files{}
	for _, e := range []*edition{english, chinese} {
		if err := e.sort(); err != nil {
			return nil, err
		}
		if err := e.compare(); err != nil {
			return nil, err
		}
		if err := e.write(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

var (
	pages    = regexp.MustCompile(`^(README|step\d\d_\w+/README|docs/.+?)(\.zh-CN)?\.md$`)
	stepName = regexp.MustCompile(`^step\d\d`)
)

func isPage(source string) bool {
	isHint := strings.HasPrefix(path.Base(source), "hints.")
	isLeftOut := isHint || doccheck.ForWhoChangesTheCode(source)
	return pages.MatchString(source) && !isLeftOut
}

// nameOf is the name of a page's HTML file, without its extension.
func nameOf(source string) string {
	source = strings.Replace(source, ".zh-CN.md", ".md", 1)
	base := strings.TrimSuffix(path.Base(source), ".md")
	switch {
	case source == "README.md":
		return "index"
	case source == "docs/README.md":
		return "guide"
	case stepName.MatchString(source):
		return stepName.FindString(source)
	case base == "README":
		return path.Base(path.Dir(source))
	}
	return base
}

// sort puts the pages into the order in which they are read: the front page, the way
// through, the chapters, then what the way through names, in its order, and the rest.
func (e *edition) sort() error {
	slices.SortFunc(e.pages, func(a, b *page) int { return strings.Compare(a.name, b.name) })
	way := e.page("guide")
	if way == nil || e.page("index") == nil {
		return words.Errorf("there is no front page, or no way through, in %q", e.language)
	}
	order := []string{"index", "guide"}
	for _, p := range e.pages {
		if stepName.MatchString(p.name) {
			order = append(order, p.name)
		}
	}
	for _, link := range way.Of("Link") {
		if to := e.at(path.Join(path.Dir(way.Path), strings.Split(link.Text, "#")[0])); to != nil {
			order = append(order, to.name)
		}
	}
	place := func(p *page) int {
		if i := slices.Index(order, p.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(e.pages, func(a, b *page) int { return place(a) - place(b) })
	return nil
}

// page is the one with this name, or nil.
func (e *edition) page(name string) *page {
	return find(e.pages, func(p *page) bool { return p.name == name })
}

// at is the page that is made of a file of the repository, or nil.
func (e *edition) at(source string) *page {
	return find(e.pages, func(p *page) bool { return p.Path == source })
}

func find[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// title is what the page's first heading says.
func (p *page) title() string {
	headings := p.Of("Heading")
	if len(headings) == 0 {
		return p.name
	}
	return headings[0].Text
}

// say is a text of the book itself in the edition's language.
func (e *edition) say(english string) string { return e.tell(words.Whole(english)) }

// tell is a text in the edition's language.
func (e *edition) tell(text words.Text) string {
	if e.language == "en" {
		return text.EN
	}
	return text.ZH
}

// labels are the texts of the book itself, by the names that the template and the
// script have for them.
var labels = map[string]string{
	"skip":      "To the text",
	"contents":  "Contents",
	"search":    "Search",
	"theme":     "Light / dark",
	"slides":    "Slides",
	"chapters":  "Chapters",
	"pages":     "Pages",
	"code":      "code, changes marked",
	"question":  "Answer before you read on",
	"mistake":   "What goes wrong, and for whom?",
	"yours":     "Your answer",
	"compare":   "Compare",
	"show":      "Show me",
	"again":     "Answer again",
	"said":      "You said",
	"right":     "That is right.",
	"near":      "That is near.",
	"far":       "That is far from it.",
	"wrong":     "That is another one.",
	"veiled":    "What follows answers the question above.",
	"found":     "places",
	"nothing":   "Nothing was found.",
	"searching": "What was found",
	"previous":  "Back",
	"next":      "On",
	"leave":     "Leave",
	"notes":     "Notes",
	"answer":    "The answer",
	"keys":      "Arrow keys: on and back. N: notes. Esc: leave.",
	"table":     "A table",
	"run":       "A recorded run",
	"parts":     "Parts of the run",
	"drawing":   "The clients around the lock's directory",
}

func (e *edition) labels() map[string]string {
	own := map[string]string{}
	for name, english := range labels {
		own[name] = e.say(english)
	}
	return own
}

var templates = template.Must(template.New("page").Parse(markup))

// A link of the contents.
type entry struct {
	Name, Title string
	Current     bool
	Code        *entry // the page with the chapter's code, if it has one
	Sections    []section
}

// A section is a heading of a page, and what stands below it.
type section struct {
	ID, Title string
	Level     int
	Text      string
}

// write adds the edition's files.
func (e *edition) write(files Files) error {
	for i, p := range e.pages {
		r, err := p.render()
		if err != nil {
			return words.Errorf("%s: %w", p.Path, err)
		}
		view := map[string]any{
			"Title": p.title(), "Text": template.HTML(r.html), "Contents": e.contents(p.name, r.sections),
			"Notes": template.HTML(e.notes(p)), "Before": e.beside(i - 1), "After": e.beside(i + 1),
		}
		if c := find(e.codes, func(c *codePage) bool { return c.step == p.name }); c != nil {
			c.chapter = r
		}
		if r.plays {
			view["Player"] = template.JS(player)
		}
		if err := e.execute(files, p.name, view); err != nil {
			return err
		}
		files[e.folder+"search/"+p.name+".js"] = searchIndex(p.name, p.title(), r.sections)
	}
	for _, c := range e.codes {
		view := map[string]any{
			"Title":    c.title(),
			"Text":     template.HTML(c.render()),
			"Contents": e.contents(c.name(), nil),
		}
		if err := e.execute(files, c.name(), view); err != nil {
			return err
		}
	}
	return nil
}

// beside is the entry of the page at a place of the order, if there is one.
func (e *edition) beside(i int) *entry {
	if i < 0 || i >= len(e.pages) {
		return nil
	}
	return &entry{Name: e.pages[i].name, Title: e.pages[i].title()}
}

// execute makes one HTML file.
func (e *edition) execute(files Files, name string, view map[string]any) error {
	view["Language"], view["Name"], view["Say"] = e.language, name, e.labels()
	var names []string
	for _, p := range e.pages {
		names = append(names, p.name)
	}
	view["Names"] = names
	view["CSS"], view["Script"] = template.CSS(shared.Colours+css), template.JS(shared.Common+script)
	view["Other"], view["OtherLanguage"], view["OtherWords"] = "zh-CN/"+name+".html", "zh-CN", "中文"
	if e.folder != "" {
		view["Other"], view["OtherLanguage"], view["OtherWords"] = "../"+name+".html", "en", "English"
	}
	var html bytes.Buffer
	if err := templates.Execute(&html, view); err != nil {
		return err
	}
	files[e.folder+name+".html"] = html.Bytes()
	return nil
}

// contents lists the chapters, and the other pages.
func (e *edition) contents(current string, sections []section) (contents struct{ First, Chapters, Pages []entry }) {
	for _, p := range e.pages {
		item := entry{Name: p.name, Title: p.title(), Current: p.name == current}
		if item.Current {
			item.Sections = slices.DeleteFunc(slices.Clone(sections), func(s section) bool { return s.Level != 2 })
		}
		switch {
		case p.name == "index" || p.name == "guide":
			contents.First = append(contents.First, item)
		case stepName.MatchString(p.name):
			if find(e.codes, func(c *codePage) bool { return c.step == p.name }) != nil {
				name := p.name + "-code"
				item.Code = &entry{Name: name, Title: e.say(labels["code"]), Current: name == current}
			}
			contents.Chapters = append(contents.Chapters, item)
		default:
			contents.Pages = append(contents.Pages, item)
		}
	}
	return contents
}
