package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/check/steps"
	"zklock/internal/check/tables"
	"zklock/internal/lang"
	"zklock/internal/property"
)

// hunt shows a wrong lock, asks which property it lacks, and holds the lock
// against the property that is named.
func (w *workshop) hunt(ctx context.Context, which string) error {
	n := 1 + rand.IntN(len(tables.Mistakes))
	if which != "" {
		n, _ = strconv.Atoi(strings.TrimPrefix(strings.ToUpper(which), "W"))
	}
	if n < 1 || n > len(tables.Mistakes) {
		return fmt.Errorf("there is no mistake %q: they are W1 to W%d", which, len(tables.Mistakes))
	}
	m := tables.Mistakes[n-1]
	code, err := codeOf(m)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "W%d, a lock that was published, in Go:\n\n", n)
	fmt.Fprintf(w.out, "%s\n\n", code)
	fmt.Fprintf(w.out, "What is not shown is as in %s.\nWhich property does it lack?\n", tables.Find(m.Step).Folder)
	for i, p := range property.Properties {
		fmt.Fprintf(w.out, "%3d  %s\n", i+1, p.Name)
	}
	fmt.Fprintf(w.out, "  0  none of these: its answers are right, and something else is wrong\nYour answer: ")
	line, _ := w.in.ReadString('\n')
	choice, err := strconv.Atoi(strings.TrimSpace(line))
	isOutOfRange := choice < 0 || choice > len(property.Properties)
	if err != nil || isOutOfRange {
		return fmt.Errorf("this is no number of the list: %q", strings.TrimSpace(line))
	}
	named := tables.Nothing
	if choice > 0 {
		named = property.Properties[choice-1].Name.EN
	}
	fmt.Fprintf(w.out, "%s\n\nrunning it: %s in %s\n", named, m.Test, m.File())
	seen, err := w.verdicts(ctx, m, named)
	if err != nil {
		return err
	}
	for _, verdict := range seen {
		fmt.Fprintf(w.out, "  %s\n", verdict)
	}
	right, more := isRight(m, named, seen)
	fmt.Fprint(w.out, more)
	said := "Not this one."
	if right {
		said = "Right."
	}
	if right && choice > 0 {
		step := steps.Of(m.Step) // the mistake is a change of it
		if property.Check(w.server, step, property.Properties[choice-1], 0).Verdict == property.No {
			said = fmt.Sprintf("True, and %s lacks that, too. What did this change break?", step.Name)
		}
	}
	fmt.Fprintf(w.out, "\n%s\n", said)
	section, err := told(m)
	fmt.Fprintf(w.out, "\n%s\n", section)
	return err
}

var (
	aMistake = regexp.MustCompile(`(?m)^// W\d`)
	comment  = regexp.MustCompile(`(?m)^[ \t]*//.*\n?|[ \t]+//.*$`)
)

// codeOf is a wrong lock as its file has it: what stands there before the first mistake,
// and then all from this mistake's comment to its test. Its comments tell, and are left out.
func codeOf(m tables.Mistake) (string, error) {
	text, err := os.ReadFile(m.File())
	if err != nil {
		return "", err
	}
	_, file, _ := strings.Cut(string(text), "\n)\n") // behind the imports
	file, _, _ = strings.Cut(file, "\nfunc "+m.Test)
	mistakes := aMistake.FindAllStringIndex(file, -1)
	if len(mistakes) == 0 {
		return "", fmt.Errorf("%s has no %s", m.File(), m.Key())
	}
	common := file[:mistakes[0][0]]
	own := file[mistakes[len(mistakes)-1][0]:]
	return strings.TrimSpace(common + comment.ReplaceAllString(own, "")), nil
}

// told is what the page of the mistakes says of one.
func told(m tables.Mistake) (string, error) {
	page := "docs/mistakes.md"
	if lang.Chinese() {
		page = "docs/mistakes.zh-CN.md"
	}
	text, err := os.ReadFile(page)
	section := regexp.MustCompile(`(?s)\n### (` + m.Key() + `\b.*?)\n##`).FindSubmatch(text)
	if err != nil || section == nil {
		return "", errors.Join(err, fmt.Errorf("%s has no %s", page, m.Key()))
	}
	return strings.TrimSpace(string(section[1])), nil
}

// isRight tells whether the mistake is said rightly to lack a property, after its test has
// seen these verdicts, and what else there is to say.
func isRight(m tables.Mistake, named string, seen []string) (right bool, more string) {
	what := m.Suffers
	breaksSomething := what != "" && what != tables.Nothing
	switch {
	case m.ShowsTwoInside && named == what:
		more = "  The property's own story does not meet it, but what the test has seen is two inside.\n"
	case breaksSomething && !m.ShowsTwoInside:
		more = fmt.Sprintf("  No property asks for this by itself; the test shows it. What suffers: %s\n", what)
	}
	lacking := "✗ " + named + ": "
	refutes := func(verdict string) bool { return strings.HasPrefix(verdict, lacking) }
	return named == what || slices.ContainsFunc(seen, refutes), more
}

var verdictLine = regexp.MustCompile(`(?:✗|✓|–|\?) .*: .*`)

// verdicts runs the mistake's test, and holds its lock against one more property.
func (w *workshop) verdicts(ctx context.Context, m tables.Mistake, asked string) ([]string, error) {
	if err := w.serve(ctx); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	passes, err := w.test(ctx, tables.Find(m.Step).Folder, &said, "-v", "-timeout=120s", "-run", m.Run(), "-ask", asked)
	if err == nil && !passes {
		err = fmt.Errorf("%s", said.String())
	}
	return verdictLine.FindAllString(said.String(), -1), err
}
