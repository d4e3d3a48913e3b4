// Package chapter compares the text of a chapter with what is measured. A test that has measured
// something reports it in a sentence:
//
//	chapter.Says(t, "%d waiters, one release: %d notifications", 10, n)
//
// Says prints the sentence after a », and fails the test unless README.md of the test's package has
// the sentence, letter for letter. So every number that a chapter quotes comes from a run, and no
// run can disagree with it. The Chinese chapter quotes the same line.
package chapter

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Rough is a number that differs from run to run. A sentence prints it with %v.
type Rough struct {
	value  float64
	factor float64
}

// About returns a number that may differ in the chapter: it may be greater or smaller by the
// factor.
func About[N int | int64 | float64](value N, factor float64) Rough {
	return Rough{float64(value), factor}
}

// String rounds to two digits, because more digits would be noise.
func (r Rough) String() string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(r.value, 'g', 2, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// crowd is the environment variable by which a reader chooses how many clients take part.
const crowd = "WAITERS"

// Size returns the chapter's number of clients, or the number that a reader sets, for example by
// WAITERS=100, after writing down a prediction. In that case Says prints what was measured, and
// does not look for it in the chapter.
func Size(t *testing.T, chapters int) int {
	t.Helper()
	n, err := size(os.Getenv(crowd), chapters)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// most is the number of clients that a test can have on two cores, before its patience ends.
const most = 150

func size(asked string, chapters int) (int, error) {
	if asked == "" {
		return chapters, nil
	}
	n, err := strconv.Atoi(asked)
	isOutOfRange := n < 1 || n > most
	if err != nil || isOutOfRange {
		return 0, fmt.Errorf(
			"%s=%s: this is how many clients take part, a number from 1 to %d (a prediction is not typed in: write it down)",
			crowd,
			asked,
			most,
		)
	}
	return n, nil
}

// Says prints the sentence, and fails the test unless README.md of the test's package has it.
func Says(t *testing.T, format string, args ...any) {
	t.Helper()
	SaysIn(t, "README.md", format, args...)
}

// SaysIn is Says for the text of another file.
func SaysIn(t *testing.T, file, format string, args ...any) {
	t.Helper()
	fmt.Fprintln(t.Output(), "» "+fmt.Sprintf(format, args...))
	hasFailed := t.Failed() // then the test itself has said what is wrong
	if hasFailed || os.Getenv(crowd) != "" {
		return
	}
	if err := pageSays(file, format, args); err != nil {
		sentence := fmt.Sprintf(format, args...)
		t.Cleanup(func() { // after everything that the test still reports
			t.Errorf("%s does not say what was measured: %q (%v)", file, sentence, err)
		})
	}
}

// pageSays looks for the sentence in a page.
func pageSays(file, format string, args []any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return compare(string(text), format, args)
}

// compare looks for the sentence in the text, where it must be a line, or lines, of its own. Rough
// numbers may differ by their factor, and have commas.
func compare(text, format string, args []any) error {
	const gap = "\x00"
	var rough []Rough
	inText := slices.Clone(args)
	for i, arg := range args {
		if r, ok := arg.(Rough); ok {
			rough = append(rough, r)
			inText[i] = gap
		}
	}
	sentence := fmt.Sprintf(format, inText...)
	pattern := strings.ReplaceAll(regexp.QuoteMeta(sentence), gap, `([0-9.,]*[0-9])`)
	found := regexp.MustCompile(`(?m)^(?:» )?` + pattern + `$`).FindStringSubmatch(text)
	if found == nil {
		return errors.New("no such line")
	}
	for i, r := range rough {
		inPage := found[i+1]
		said, err := strconv.ParseFloat(strings.ReplaceAll(inPage, ",", ""), 64)
		isOutOfRange := said < r.value/r.factor || said > r.value*r.factor
		if err != nil || isOutOfRange {
			return fmt.Errorf("it says %v, measured %v", inPage, r)
		}
	}
	return nil
}
