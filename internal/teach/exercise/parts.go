package exercise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/property"
)

// A Part is one idea of a step that brings several. The step's folder parts holds
// each as a patch, whose head has the part's title and the properties that it brings: the
// first is its own, which it is made for. Before part 1 there is the exercise's starter,
// and the last part is the step's own lock.
type Part struct {
	Title      string
	Properties []string
	Diff       string
}

// Parts are those of a step, from part 1 on.
type Parts []Part

// Parts returns the parts of a step; most steps have none.
func (e Exercise) Parts() (all Parts) {
	for {
		text, err := os.ReadFile(filepath.Join(e.Home, "parts", strconv.Itoa(len(all)+1)+".diff"))
		if err != nil {
			return all
		}
		head, diff, _ := strings.Cut(string(text), "\n\n")
		lines := strings.Split(head, "\n✗ → ✓ ")
		all = append(all, Part{lines[0], lines[1:], diff})
	}
}

// bringing is the number of the part that brings a property, 0 if none does.
func (all Parts) bringing(p *property.Property) int {
	return slices.IndexFunc(all, func(part Part) bool { return slices.Contains(part.Properties, p.Name.EN) }) + 1
}

// own is the property that the part is made for.
func (p Part) own() *property.Property {
	for _, known := range slices.Concat(property.Asked(5), property.Asked(6)) {
		if known.Name.EN == p.Properties[0] {
			return known
		}
	}
	panic(p.Properties[0]) // which a test would have told
}

// Name names part n.
func (all Parts) Name(n int) string {
	return fmt.Sprintf("part %d of %d: %s", n, len(all), all[n-1].Title)
}

// patch changes the files in a folder.
func patch(dir, diff string, flags ...string) error {
	apply := exec.Command("git", append([]string{"apply", "--whitespace=nowarn"}, append(flags, "-")...)...)
	apply.Dir, apply.Stdin = dir, strings.NewReader(diff)
	if said, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", apply.Args, err, said)
	}
	return nil
}

// with changes files as it is told to do in a folder of theirs.
func (all Files) with(change func(dir string) error) (changed Files, err error) {
	dir, err := os.MkdirTemp("", "zklock-exercise-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := all.Write(dir); err != nil {
		return nil, err
	}
	if err := change(dir); err != nil {
		return nil, err
	}
	return Yours(dir)
}

// at returns the files of the lock as they are after part n, in the learner's package:
// those of the step, without what the later parts have brought. A step without parts is
// one part, and before it there is the step before.
func (e Exercise) at(n int) (Files, error) {
	from := e.Home
	if n == 0 {
		from = e.before
	}
	own, err := read(from, e.write...)
	if err != nil {
		return nil, err
	}
	parts := e.Parts()
	if len(parts) > 0 {
		own, err = own.with(func(dir string) error {
			for i := len(parts); i > n; i-- {
				if err := patch(dir, parts[i-1].Diff, "--reverse"); err != nil {
					return fmt.Errorf("part %d of %s: %w", i, e, err)
				}
			}
			return nil
		})
	}
	return e.moved(own), err
}

// At returns the whole package as it is after part n.
func (e Exercise) At(n int) (Files, error) {
	lock, err := e.at(n)
	if err != nil {
		return nil, err
	}
	return e.complete(lock)
}

// starter returns the files that the learner is to change. They are made from the step
// before, or in steps 5 and 6 from the step's own without its parts, by one more patch.
func (e Exercise) starter(chinese bool) (Files, error) {
	before, err := e.at(0)
	if err != nil {
		return nil, err
	}
	diff, err := os.ReadFile(filepath.Join(e.Home, "exercise", "starter.diff"))
	if err != nil {
		return nil, err
	}
	all, err := before.with(func(dir string) error { return patch(dir, string(diff)) })
	if err != nil {
		return nil, fmt.Errorf("the starter of %s: %w", e, err)
	}
	for name, text := range all {
		all[name] = inOneLanguage(text, chinese)
	}
	return all, nil
}

var (
	english = regexp.MustCompile(`^\s*//\WTODO`)
	inHan   = regexp.MustCompile(`^\s*//\W待办`)
	goesOn  = regexp.MustCompile(`^\s*// `)
)

// inOneLanguage leaves out the TODOs in the language that the reader does not want. A
// TODO goes on up to the next, or as far as the comment has words.
func inOneLanguage(text []byte, chinese bool) []byte {
	var kept bytes.Buffer
	leavesOut := false
	for line := range bytes.Lines(text) {
		switch {
		case english.Match(line):
			leavesOut = chinese
		case inHan.Match(line):
			leavesOut = !chinese
		case !goesOn.Match(line):
			leavesOut = false
		}
		if !leavesOut {
			kept.Write(line)
		}
	}
	return kept.Bytes()
}
