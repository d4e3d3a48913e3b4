// Command command makes the book in out/book, and OPEN=1 opens it: make book.
package main

import (
	"os"
	"path/filepath"

	"zklock/internal/show/setting"
	"zklock/internal/teach/book"
	"zklock/internal/upkeep/words"
)

func main() { os.Exit(run(".", filepath.Join("out", "book"))) }

func run(root, folder string) int {
	files, err := book.Build(root)
	if err == nil {
		err = files.Write(folder)
	}
	if err != nil {
		words.Fprintln(os.Stderr, err)
		return 1
	}
	front := filepath.Join(folder, "index.html")
	words.Fprintf(os.Stdout, "%d files; open %s\n", len(files), front)
	if err := setting.Open(front); err != nil {
		words.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
