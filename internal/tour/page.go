package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"zklock/internal/lockcheck"
	"zklock/internal/page"
	"zklock/internal/zkserver"
)

// writePage records the tour's page, writes it to out/tour.html or where PAGE
// says, and says where it is. OPEN=1 opens it in the browser.
func writePage(ctx context.Context, server *zkserver.Server, score Score, say sayer) error {
	var steps []string
	table := page.Score{}
	for _, c := range score.Columns {
		table.Columns = append(table.Columns, c.subject.Name)
		if c.step != "" {
			steps = append(steps, c.step)
		}
	}
	for _, g := range score.groups() {
		group := page.Group{Title: g.title}
		for _, r := range g.rows {
			row := page.Row{Label: r.label}
			for _, cell := range r.cells {
				row.Cells = append(row.Cells, fmt.Sprint(cell))
			}
			group.Rows = append(group.Rows, row)
		}
		table.Groups = append(table.Groups, group)
	}
	rec, err := page.Record(ctx, server, steps, score.Crowds[len(score.Crowds)-1], say)
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	rec.Score = &table
	rec.Answers = check(server, subjects(score.Columns), lockcheck.Properties, say)
	say("")

	file, err := filepath.Abs(cmp.Or(os.Getenv("PAGE"), filepath.Join("out", "tour.html")))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := rec.Write(out); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\nSee it move: file://%s\n", file)
	if os.Getenv("OPEN") == "" {
		return nil
	}
	open := "xdg-open"
	if runtime.GOOS == "darwin" {
		open = "open"
	}
	if err := exec.Command(open, file).Start(); err != nil {
		fmt.Fprintf(os.Stderr, "OPEN=1: %v: open the file above in a browser\n", err)
	}
	return nil
}
