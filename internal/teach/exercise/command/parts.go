package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"zklock/internal/teach/exercise"
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
			fmt.Fprintf(w.out, "part %d  %3d lines  %s\n", i+1, changed(p.Diff), p.Title)
		}
		fmt.Fprintf(w.out, "One of them, with what it is good for: make part STEP=%s PART=1\n", e.Name)
		return nil
	}
	n, err := strconv.Atoi(which)
	isOutOfRange := n < 1 || n > len(all)
	if err != nil || isOutOfRange {
		return fmt.Errorf("PART=%s: step %s has the parts 1 to %d", which, e.Name, len(all))
	}
	before, err := e.At(n - 1)
	if err != nil {
		return err
	}
	after, err := e.At(n)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "Step %s, %s\n\n", e.Name, all.Name(n))
	if err := w.diff(ctx, before, after); err != nil {
		return err
	}
	if err := w.serve(ctx); err != nil {
		return err
	}
	own := all[n-1].Properties[0]
	if err := w.answers(ctx, "before", before, own); err != nil {
		return err
	}
	return w.answers(ctx, "after", after, own)
}

// answers prints what a property answers to a version of a step.
func (w *workshop) answers(ctx context.Context, when string, version exercise.Files, property string) error {
	dir, err := exercise.Scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := version.Write(dir); err != nil {
		return err
	}
	if _, err := w.test(ctx, dir, io.Discard, "-run", exercise.Run(property)); err != nil {
		return err
	}
	for _, a := range exercise.Recorded(dir).Answers {
		fmt.Fprintf(w.out, "%-6s  %s %s: %s\n", when, a.Verdict, a.Property, a.Evidence)
	}
	return nil
}

// withParts finds a step that has parts: without a name, the first that is not done.
func withParts(step string) (e exercise.Exercise, err error) {
	if step == "" {
		for _, e := range exercise.All {
			if len(e.Parts()) > 0 && !e.Done() {
				return e, nil
			}
		}
	}
	if e, err = exercise.Find(step); err != nil {
		return e, err
	}
	if len(e.Parts()) == 0 {
		return e, fmt.Errorf("STEP=%s: this step has one idea, and no parts; steps 5 and 6 have", e.Name)
	}
	return e, nil
}

// changed counts the lines that a patch takes away and adds.
func changed(diff string) int { return len(changedLine.FindAllString(diff, -1)) }

var changedLine = regexp.MustCompile(`(?m)^[+-](?:[^+-].*)?$`)
