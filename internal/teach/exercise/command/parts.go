package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"zklock/internal/teach/exercise"
	"zklock/internal/upkeep/words"
)

// part shows what a part changes, and what its property answers before and after.
// Without a number it lists the parts.
func (w *workshop) part(ctx context.Context, step, which string) error {
	e, err := withParts(step)
	if err != nil {
		return err
	}
	all := e.Parts()
	if which == "" {
		for i, p := range all {
			words.Fprintf(w.out, "part %d  %3d lines  %s\n", i+1, changed(p.Diff), p.Title)
		}
		words.Fprintf(w.out, "One of them, with what it is good for: make part STEP=%s PART=1\n", e.Name)
		return nil
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 || n > len(all) {
		return words.Errorf("PART=%s: step %s has the parts 1 to %d", which, e.Name, len(all))
	}
	p := all[n-1]
	words.Fprintf(w.out, "Step %s, %s\n\n", e.Name, all.Name(n))
	fmt.Fprintln(w.out, coloured(p.Diff, w.out))
	if err := w.serve(ctx); err != nil {
		return err
	}
	for before, when := range []string{"before", "after"} {
		a, err := w.answerOf(ctx, e, n-1+before, p.Properties[0])
		if err != nil {
			return err
		}
		words.Fprintf(w.out, "%-6s  %s %s: %s\n", when, a.Verdict, a.Property, a.Evidence)
	}
	return nil
}

// withParts finds a step that has parts: without a name, the first that is not done.
func withParts(step string) (e exercise.Exercise, err error) {
	for _, e := range exercise.All {
		if step == "" && len(e.Parts()) > 0 && !e.Done() {
			return e, nil
		}
	}
	if e, err = exercise.Find(step); err != nil {
		return e, err
	}
	if len(e.Parts()) == 0 {
		return e, words.Errorf("STEP=%s: this step has one idea, and no parts; steps 5 and 6 have", e.Name)
	}
	return e, nil
}

// answerOf asks a step, as it is after part n, for one property.
func (w *workshop) answerOf(
	ctx context.Context,
	e exercise.Exercise,
	n int,
	property string,
) (a exercise.Answer, err error) {
	version, err := e.At(n)
	if err != nil {
		return a, err
	}
	dir, err := exercise.Scratch()
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := version.Write(dir); err != nil {
		return a, err
	}
	if _, err := w.test(ctx, dir, io.Discard, "-run", exercise.Run(property)); err != nil {
		return a, err
	}
	answers := exercise.Recorded(dir).Answers
	if len(answers) != 1 {
		return a, words.Errorf("part %d of %s has no answer for %q", n, e, property)
	}
	return answers[0], nil
}

// changed counts the lines that a patch takes away and adds.
func changed(diff string) int { return len(changedLine.FindAllString(diff, -1)) }

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
