package book

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Files are the book, by the names of its files.
type Files map[string][]byte

// Write writes the files into a folder, and nothing else stays there.
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

// policy lets a page of the book run what is in it, load the indexes of the search, which
// lie beside it, and nothing else.
const policy = "default-src 'none'; " +
	"script-src 'self' 'unsafe-inline'; " +
	"style-src 'unsafe-inline'; " +
	"img-src data:; " +
	"base-uri 'none'; " +
	"form-action 'none'; " +
	"frame-ancestors 'none'"

// kinds are what the files are to a browser.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// ServeHTTP serves the files out of memory.
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
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	_, _ = w.Write(content) // unless nobody waits for it any more
}
