package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/words"
)

// A part is one idea of a step that brings several. The step's folder parts holds
// each as a patch, whose head has the part's title and the property that it brings.
// Part 0 is the exercise's starter, and the last part is the step's own lock.
type part struct{ title, property, diff string }

type parts []part

// parts returns the parts of a step from 1 on; most steps have none.
func (e exercise) parts() (all parts) {
	for {
		text, err := os.ReadFile(filepath.Join(e.home, "parts", strconv.Itoa(len(all)+1)+".diff"))
		if err != nil {
			return all
		}
		head, diff, _ := strings.Cut(string(text), "\n\n")
		title, property, _ := strings.Cut(head, "\n✗ → ✓ ")
		all = append(all, part{title, property, diff})
	}
}

// bringing is the number of the part that brings a property, 0 if none does.
func (all parts) bringing(property string) int {
	return slices.IndexFunc(all, func(p part) bool { return p.property == property }) + 1
}

func (all parts) name(n int) string {
	return fmt.Sprintf("part %d of %d: %s", n, len(all), all[n-1].title)
}

// todo is what a starter says of the work to do, at the end of a comment.
var todo = regexp.MustCompile(`(?m)^//\n// TODO (?:.*\n)(?:^//.*\n)*`)

// at returns the files of a step's lock as they are after part n, in the exercise.
// What stands above each file's package clause is always the step's own.
func (w *workshop) at(ctx context.Context, e exercise, n int) (files, error) {
	now := e.own()
	for name, starter := range e.starter() {
		head := now[name][:clause.FindIndex(now[name])[1]]
		now[name] = append(bytes.Clone(head), todo.ReplaceAll(starter[clause.FindIndex(starter)[1]:], nil)...)
	}
	dir, err := os.MkdirTemp(w.scratch, "part-")
	if err != nil {
		return nil, err
	}
	if err := now.write(dir); err != nil {
		return nil, err
	}
	for i, p := range e.parts()[:n] {
		apply := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-")
		apply.Dir, apply.Stdin = dir, strings.NewReader(p.diff)
		if said, err := apply.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("part %d of %s: %v: %w\n%s", i+1, e, apply.Args, err, said)
		}
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	return read(paths).moved(), nil
}

// part shows what a part changes, and what its property answers before and after.
// Without a number it lists the parts.
func (w *workshop) part(ctx context.Context, e exercise, which string) error {
	all := e.parts()
	if len(all) == 0 {
		return fmt.Errorf("STEP=%s: this step has one idea, and no parts; steps 05 and 06 have", e.name)
	}
	if which == "" {
		for i, p := range all {
			words.Fprintf(w.out, "part %d  %2d lines  %s\n", i+1, p.changed(), p.title)
		}
		words.Fprintf(w.out, "One of them, with what it is good for: make part STEP=%s PART=1\n", e.name)
		return nil
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 || n > len(all) {
		return fmt.Errorf("PART=%s: step %s has the parts 1 to %d", which, e.name, len(all))
	}
	p := all[n-1]
	words.Fprintf(w.out, "Step %s, %s\n\n", e.name, all.name(n))
	fmt.Fprintln(w.out, coloured(p.diff, w.out))
	for before, when := range []string{"before", "after"} {
		version, err := w.at(ctx, e, n-1+before)
		if err != nil {
			return err
		}
		if err := w.askOf(ctx, e, version, func(a answer) {
			words.Fprintf(w.out, "%-6s  %s %s: %s\n", when, a.Verdict, a.Property, a.Evidence)
		}, "-only", p.property); err != nil {
			return err
		}
	}
	return nil
}

// changed counts the lines that the part takes away and adds.
func (p part) changed() int { return len(changedLine.FindAllString(p.diff, -1)) }

var changedLine = regexp.MustCompile(`(?m)^[+-](?:[^+-].*)?$`)

// coloured makes a diff green and red, on a terminal.
func coloured(diff string, out io.Writer) string {
	info, err := os.Stdout.Stat()
	if out != os.Stdout || err != nil || info.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		return diff
	}
	return changedLine.ReplaceAllStringFunc(diff, func(line string) string {
		return map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m"}[line[0]] + line + "\x1b[0m"
	})
}
