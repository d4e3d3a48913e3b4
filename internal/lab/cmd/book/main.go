// Command book writes the book into out/book, for make book. The flag -open opens it in a browser.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"zklock/internal/lab/book"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

func main() {
	open := flag.Bool("open", false, "opens the book in a browser")
	flag.Parse()
	if err := run(".", filepath.Join("out", "book"), *open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, folder string, open bool) error {
	files, err := book.Build(root)
	if err != nil {
		return err
	}
	if err := files.Write(folder); err != nil {
		return err
	}
	front := filepath.Join(folder, front())
	fmt.Printf("%d files; open %s\n", len(files), front)
	if open {
		return stage.Open(front)
	}
	return nil
}

// front returns the first page, in the language that the reader wants.
func front() string {
	if lang.Chinese() {
		return filepath.Join("zh-CN", "index.html")
	}
	return "index.html"
}
