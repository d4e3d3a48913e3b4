package main

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"zklock/internal/check/tables"
	"zklock/internal/show/page"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

var reading = template.Must(template.New("read").Parse(`<!doctype html>
<html lang="{{.Language}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>zklock: {{.Path}}</title>
<link rel="icon" href="data:,">
<style>
{{.CSS}}
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px; overflow-x: auto; }
code { font: 0.92em ui-monospace, "DejaVu Sans Mono", monospace; }
img { max-width: 100%; }
main { max-width: 860px; padding-bottom: 40px; }
blockquote { margin: 1em 0; padding: 2px 14px; border-left: 5px solid var(--line); color: var(--soft); }
</style>
</head>
<body><main>{{.Text}}</main></body>
</html>
`))

// kinds are the files that a reader can open, with what they are to a browser.
var kinds = map[string]string{".md": "text/html; charset=utf-8", ".svg": "image/svg+xml",
	".go": "text/plain; charset=utf-8", ".diff": "text/plain; charset=utf-8"}

// chapter leads to a step's chapter, in the reader's language.
func (s *service) chapter(w http.ResponseWriter, r *http.Request) {
	step, ok := tables.Step(r.PathValue("n"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	at := step.Folder + "/README.md"
	if strings.HasPrefix(r.URL.Query().Get("language"), "zh") {
		at = "docs/zh-CN/step0" + step.Key + ".md"
	}
	http.Redirect(w, r, "/read/"+at+"?token="+r.URL.Query().Get("token"), http.StatusSeeOther)
}

// read shows a file of the repository: a page of text as its reader wants it.
func (s *service) read(w http.ResponseWriter, r *http.Request) {
	at := r.PathValue("path")
	kind := kinds[path.Ext(at)]
	root, err := os.OpenRoot(s.repo) // out of which no path leads
	if err != nil || kind == "" {
		http.NotFound(w, r)
		return
	}
	defer root.Close()
	source, err := fs.ReadFile(root.FS(), at)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	if path.Ext(at) != ".md" {
		_, _ = w.Write(source) // unless nobody waits for it any more
		return
	}
	written, err := rendered(source, r.URL.Query().Get("token"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	language := "en"
	if strings.Contains(at, "zh-CN") {
		language = "zh-CN"
	}
	_ = reading.Execute(w, map[string]any{"Path": at, "Language": language, "CSS": template.CSS(page.Style), "Text": written})
}

// rendered is a page of text in HTML. Its links to other files of the repository bear the token.
func rendered(source []byte, token string) (template.HTML, error) {
	tree := markdown.Parser().Parse(text.NewReader(source))
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = known(n.Destination, token)
			}
		case *ast.Image:
			if entering {
				n.Destination = known(n.Destination, token)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, tree); err != nil {
		return "", err
	}
	return template.HTML(out.String()), nil
}

// known puts the token into a link, if that leads to a file.
func known(link []byte, token string) []byte {
	file, part, marked := strings.Cut(string(link), "#")
	if file == "" || strings.Contains(file, ":") {
		return link
	}
	with := fmt.Sprintf("%s?token=%s", file, token)
	if marked {
		with += "#" + part
	}
	return []byte(with)
}
