// Command book makes a site of the repository's Markdown, in both languages: a file
// for each chapter and each page, in out/book. It needs no server, and loads nothing
// from elsewhere. OPEN=1 opens it.
package main

import (
	"os"
	"path/filepath"

	"zklock/internal/show/setting"
	"zklock/internal/upkeep/words"
)

func main() { os.Exit(run(".", filepath.Join("out", "book"))) }

func run(root, folder string) int {
	files, err := build(root)
	if err == nil {
		err = write(folder, files)
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

// write writes the files into a folder, and nothing else stays there.
func write(folder string, files map[string][]byte) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, content := range files {
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
