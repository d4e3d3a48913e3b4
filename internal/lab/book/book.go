// Package book makes a website from the repository's Markdown files, in both languages. The site
// does what Markdown cannot do: it hides an answer until the reader has made a prediction, and it
// plays recorded runs within the text. It needs no server, and loads nothing from elsewhere. make
// book writes it to a folder, and make play serves it.
package book

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/doccheck"
	"zklock/internal/lab/explorer"
	"zklock/internal/lab/herd"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

//go:embed book.html.tmpl
var markup string

//go:embed book.css
var css string

//go:embed book.js
var script string

//go:embed run.js
var runScript string

var templates = template.Must(template.New("page").Parse(markup))

// An edition is the book in one language.
type edition struct {
	language string // of the HTML: en or zh-CN
	folder   string // where its files are: "" or zh-CN/
	pages    []*page
	road     int               // how many pages the road has: they follow the guide
	sources  map[string]string // the repository's Markdown, figures and runs, by their paths
	runs     *recording
}

// A page is one Markdown file, which becomes one HTML file.
type page struct {
	path, source string
	name         string // of the HTML file, without its extension: the same in both languages
	title        string
	edition      *edition
}

// Files are the files of the book, by their names.
type Files map[string][]byte

// Build makes all files of the book from the repository in the folder root.
func Build(root string) (Files, error) {
	sources, err := doccheck.Files(root, ".md", ".svg", ".json")
	if err != nil {
		return nil, err
	}
	runs, err := readRuns(sources)
	if err != nil {
		return nil, err
	}
	english := &edition{language: "en", sources: sources, runs: runs}
	chinese := &edition{language: "zh-CN", folder: "zh-CN/", sources: sources, runs: runs}
	for source, text := range sources {
		if !isPage(source) {
			continue
		}
		e := english
		if isChinese(source) {
			e = chinese
		}
		e.pages = append(e.pages, newPage(source, text, e))
	}
	files := Files{}
	for _, e := range []*edition{english, chinese} {
		if err := e.sort(); err != nil {
			return nil, err
		}
		if err := e.write(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

var (
	pages = regexp.MustCompile(`^(README|step\d\d_\w+/\w+|docs/[\w-]+?|` +
		`leased/(README|jobs|settings|operations|beside|storm/README))(\.zh-CN)?\.md$`)
	stepName = regexp.MustCompile(`^step\d\d`)
	heading  = regexp.MustCompile(`(?m)^# (.+)$`)
)

// isPage reports whether a file is one that learners read.
func isPage(source string) bool {
	return pages.MatchString(source) && source != "docs/CONTRIBUTING.md"
}

func isChinese(source string) bool { return strings.HasSuffix(source, ".zh-CN.md") }

func newPage(source, text string, e *edition) *page {
	p := &page{path: source, source: text, name: nameOf(source), edition: e}
	p.title = p.name
	if first := heading.FindStringSubmatch(text); first != nil {
		p.title = first[1]
	}
	return p
}

// nameOf returns the name of a page's HTML file, without its extension.
func nameOf(source string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(source, ".md"), ".zh-CN")
	switch {
	case base == "README":
		return "index"
	case base == "docs/README":
		return "guide"
	case stepName.MatchString(base) && path.Base(base) != "README": // a chapter's second page
		return stepName.FindString(base) + "-" + path.Base(base)
	case stepName.MatchString(base):
		return stepName.FindString(base)
	case path.Base(base) == "README":
		return path.Base(path.Dir(base))
	}
	return path.Base(base)
}

// network is the name of the page on which the reader plays the network. Its Markdown only says so:
// the book has the game in its place.
const network = "network"

// lacks reports whether this page has no link to the page with this name. A teacher gives the course page to learners
// after the class, and their book does not have the teacher's other pages.
func (p *page) lacks(name string) bool {
	return p.name == "course" && (name == "workshop" || name == "workshop_exam")
}

// linked matches an entry of the guide's list of the other pages, and captures its link.
var linked = regexp.MustCompile(`(?m)^- \[[^\]]+\]\(([^)#\s]+)\)`)

// sort puts the pages in order: the guide, the pages of the road, those that the guide lists below
// it, and then the rest.
func (e *edition) sort() error {
	guide := e.page("guide")
	if guide == nil {
		return fmt.Errorf("there is no guide in %q", e.language)
	}
	order := []string{guide.path}
	for _, stop := range doccheck.Road(guide.path, guide.source) {
		if e.at(stop.Path) == nil {
			return fmt.Errorf("%s lists %s, which is no page of the book", guide.path, stop.Path)
		}
		order = append(order, stop.Path)
		e.road++
	}
	for _, link := range linked.FindAllStringSubmatch(guide.source, -1) {
		order = append(order, path.Join(path.Dir(guide.path), link[1]))
	}
	place := func(p *page) int {
		if i := slices.Index(order, p.path); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(e.pages, func(a, b *page) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a.name, b.name))
	})
	return nil
}

// page returns the page with this name, or nil.
func (e *edition) page(name string) *page {
	return e.find(func(p *page) bool { return p.name == name })
}

// at returns the page that is made from a file of the repository, or nil.
func (e *edition) at(source string) *page {
	return e.find(func(p *page) bool { return p.path == source })
}

func (e *edition) find(is func(*page) bool) *page {
	if i := slices.IndexFunc(e.pages, is); i >= 0 {
		return e.pages[i]
	}
	return nil
}

// say returns a text in the edition's language.
func (e *edition) say(t lang.Text) string {
	if e.language == "en" {
		return t.EN
	}
	return t.ZH
}

var both = lang.Both

// labels are the texts of the book itself, by the names that the template and the script use.
var labels = map[string]lang.Text{
	"skip":     both("To the text", "跳到正文"),
	"contents": both("Contents", "目录"),
	"theme":    both("Light / dark", "浅色／深色"),
	"road":     both("The road", "学习路线"),
	"pages":    both("Beside the road", "其他页面"),
	"question": both("Answer before you read on", "先回答，再往下读"),
	"yours":    both("Your answer", "你的答案"),
	"compare":  both("Compare", "对照答案"),
	"show":     both("Show me", "直接看答案"),
	"again":    both("Answer again", "重新回答"),
	"said":     both("You said: ", "你的答案是："),
	"right":    both("That is right.", "答对了。"),
	"near":     both("That is close.", "很接近。"),
	"far":      both("That is not close.", "相差较远。"),
	"wrong":    both("That is not the answer.", "答案不是这一项。"),
	"veiled":   both("What follows answers the question above.", "下面的内容会透露上一个问题的答案。"),
	"previous": both("Previous", "上一页"),
	"next":     both("Next", "下一页"),
	"answer":   both("The answer", "答案"),
	"table":    both("A table", "表格"),
	"run":      both("A recorded run", "一次运行的记录"),
	"parts":    both("Parts of the run", "运行的各个阶段"),
	"drawing":  both("The clients around the lock's directory", "锁的目录和周围的客户端"),
}

func (e *edition) labels() map[string]string {
	own := map[string]string{}
	for name, label := range labels {
		own[name] = e.say(label)
	}
	return own
}

// write adds the edition's files.
func (e *edition) write(files Files) error {
	for i, p := range e.pages {
		if p.name == network {
			if err := e.writeNetwork(files, i); err != nil {
				return err
			}
			continue
		}
		r, err := p.render()
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		view := map[string]any{
			"Language": e.language, "Name": p.name, "Title": p.title, "Say": e.labels(),
			"CSS": template.CSS(stage.Colours + css + herd.Style), "Script": template.JS(stage.Common + script),
			"Text": template.HTML(r.html), "Contents": e.contents(p, r.sections),
		}
		if e.hasOnRoad(i) {
			view["Before"], view["After"] = e.beside(i-1), e.beside(i+1)
		}
		if r.plays {
			view["Player"] = template.JS(stage.Script + stage.Clock + stage.Strip + herd.Script + runScript)
		}
		view["Other"], view["OtherLanguage"], view["OtherWords"] = "zh-CN/"+p.name+".html", "zh-CN", "中文"
		if e.folder != "" {
			view["Other"], view["OtherLanguage"], view["OtherWords"] = "../"+p.name+".html", "en", "English"
		}
		var html bytes.Buffer
		if err := templates.Execute(&html, view); err != nil {
			return err
		}
		files[e.folder+p.name+".html"] = html.Bytes()
	}
	return nil
}

// writeNetwork adds the page of the network, which is page i.
func (e *edition) writeNetwork(files Files, i int) error {
	other := "zh-CN/" + network + ".html"
	if e.folder != "" {
		other = "../" + network + ".html"
	}
	beside := explorer.Book{Home: "index.html", Next: e.beside(i+1).Name + ".html", Other: other}
	p, err := explorer.Network(e.language, beside)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err := p.Write(&html); err != nil {
		return err
	}
	files[e.folder+network+".html"] = html.Bytes()
	return nil
}

// An entry is a page in the table of contents.
type entry struct {
	Name, Title string
	Current     bool
	Sections    []section
}

// A section is a part of a page that begins with a heading of the second level.
type section struct{ ID, Title string }

// hasOnRoad reports whether page i is on the road.
func (e *edition) hasOnRoad(i int) bool { return i >= 1 && i <= e.road }

// beside returns the entry of page i if it is on the road, or nil.
func (e *edition) beside(i int) *entry {
	if !e.hasOnRoad(i) {
		return nil
	}
	return &entry{Name: e.pages[i].name, Title: e.pages[i].title}
}

// contents lists the guide, the road and the other pages.
func (e *edition) contents(current *page, sections []section) (contents struct{ First, Road, Pages []entry }) {
	for i, p := range e.pages {
		if current.lacks(p.name) {
			continue
		}
		item := entry{Name: p.name, Title: p.title, Current: p == current}
		if item.Current {
			item.Sections = sections
		}
		switch {
		case i == 0:
			contents.First = append(contents.First, item)
		case e.hasOnRoad(i):
			contents.Road = append(contents.Road, item)
		default:
			contents.Pages = append(contents.Pages, item)
		}
	}
	return contents
}

// Write writes the files into a folder. Anything else in the folder is deleted.
func (f Files) Write(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, content := range f {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// policy lets a page of the book use the scripts and styles in it, and load nothing.
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP serves the files from memory.
func (f Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	content, ok := f[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(content) // an error means that the browser no longer waits for the file
}
