// Command book makes the book in out/book, and OPEN=1 opens it: make book.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"zklock/internal/book"
	"zklock/internal/show/setting"
)

func main() {
	if err := run(".", filepath.Join("out", "book")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, folder string) error {
	files, err := book.Build(root)
	if err != nil {
		return err
	}
	if err := files.Write(folder); err != nil {
		return err
	}
	front := filepath.Join(folder, "index.html")
	fmt.Printf("%d files; open %s\n", len(files), front)
	return setting.Open(front)
}
