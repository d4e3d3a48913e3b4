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
)

// A part is one idea of a step that brings several. The step's folder parts holds
// each as a patch, whose head has the part's title and the property that it brings.
// Part 0 is the exercise's starter, and the last part is the step's own lock.
type part struct {
	title, property string
	diff            string
}

// parts returns the parts of a step from 1 on; most steps have none.
func (e exercise) parts() (all []part) {
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

// part is the number of the part that brings a property, 0 if none does.
func (e exercise) part(property string) int {
	return slices.IndexFunc(e.parts(), func(p part) bool { return p.property == property }) + 1
}

func (e exercise) partName(n int) string {
	parts := e.parts()
	return fmt.Sprintf("part %d of %d: %s", n, len(parts), parts[n-1].title)
}

// todo is what a starter says of the work to do, at the end of a comment.
var todo = regexp.MustCompile(`(?m)^//\n// TODO (?:.*\n)(?:^//.*\n)*`)

// at returns the files of a step's lock as they are after part n, by their names.
// What stands above each file's package clause is always the step's own.
func (e exercise) at(ctx context.Context, n int) (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "zklock-part-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, starter := range e.starter() {
		step, err := os.ReadFile(filepath.Join(e.home, name))
		if err != nil {
			return nil, err
		}
		head := clause.FindIndex(step)[1]
		text := append(bytes.Clone(step[:head]), todo.ReplaceAll(starter[clause.FindIndex(starter)[1]:], nil)...)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	for i, p := range e.parts()[:n] {
		apply := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-")
		apply.Dir, apply.Stdin = dir, strings.NewReader(p.diff)
		if said, err := apply.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("part %d of %s: %v: %w\n%s", i+1, e, apply.Args, err, said)
		}
	}
	files = map[string][]byte{}
	for name := range e.starter() {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// buildPart compiles the judge with a step's lock as it is after part n in the place
// of the exercise.
func (j *judge) buildPart(ctx context.Context, e exercise, n int) (program string, err error) {
	files, err := e.at(ctx, n)
	if err != nil {
		return "", err
	}
	return j.build(ctx, e.replacedBy(files))
}

// showPart shows what a part changes, and what its property answers before and after.
// Without a number it lists the parts.
func showPart(ctx context.Context, e exercise, which string, out io.Writer) error {
	parts := e.parts()
	if len(parts) == 0 {
		return fmt.Errorf("STEP=%s: this step has one idea, and no parts; steps 05 and 06 have", e.name)
	}
	n, err := strconv.Atoi(which)
	if which == "" {
		for i, p := range parts {
			fmt.Fprintf(out, "part %d  %2d lines  %s\n", i+1, p.changed(), p.title)
		}
		fmt.Fprintf(out, "One of them, with what it is good for: make part STEP=%s PART=1\n", e.name)
		return nil
	}
	if err != nil || n < 1 || n > len(parts) {
		return fmt.Errorf("PART=%s: step %s has the parts 1 to %d", which, e.name, len(parts))
	}
	p := parts[n-1]
	fmt.Fprintf(out, "Step %s, part %d of %d: %s\n\n%s\n", e.name, n, len(parts), p.title, coloured(p.diff, out))
	j, err := newJudge(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	for before, when := range []string{"before", "after"} {
		program, err := j.buildPart(ctx, e, n-1+before)
		if err == nil {
			_, err = j.ask(ctx, program, e, only(p.property), func(a answer) {
				fmt.Fprintf(out, "%-6s  %s %s: %s\n", when, a.Verdict, a.Property, a.Evidence)
			})
		}
		if err != nil {
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
	file, ok := out.(*os.File)
	if !ok {
		return diff
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		return diff
	}
	return changedLine.ReplaceAllStringFunc(diff, func(line string) string {
		return map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m"}[line[0]] + line + "\x1b[0m"
	})
}
