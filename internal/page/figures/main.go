// Command figures records what the chapters show on a real ZooKeeper, and
// writes their pictures into docs/figures.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"zklock/internal/page"
	"zklock/internal/zkserver"
)

func main() {
	if err := run(filepath.Join("docs", "figures")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	server, err := zkserver.Start(context.Background())
	if err != nil {
		return err
	}
	defer server.Stop()
	drawings, err := page.Figures(server)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, d := range drawings {
		file := filepath.Join(folder, d.Name+".svg")
		if err := os.WriteFile(file, []byte(d.File()), 0o644); err != nil {
			return err
		}
		fmt.Println(file)
	}
	return nil
}
