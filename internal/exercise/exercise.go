// Package exercise checks the locks that a learner writes. The starter of an exercise is a Go
// package in the folder exercise of its step. Copy copies it into the folder yours, and its test
// calls Check.
package exercise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"zklock/internal/lang"
	"zklock/internal/property"
)

// An Exercise is a lock for the learner to write: that of a step, or one of the three after the
// steps.
type Exercise struct {
	Name string // "4", or "election"
	Home string // the folder of the solution, whose folder exercise has the starter

	// Check asks for the properties in this order, which is the chapter's.
	Properties []*property.Property
}

// Folder is the folder of the learner's packages. git ignores it.
var Folder = "yours"

// Find returns an exercise by its name: "4" and "04" are the same. If the name is empty, Find
// returns the first exercise that is not done.
func Find(name string) (Exercise, error) {
	var names []string
	for _, e := range All {
		isNext := name == "" && !e.Progress().Done
		if isNext || e.Name == strings.TrimLeft(name, "0") {
			return e, nil
		}
		names = append(names, e.Name)
	}
	if name == "" {
		return Exercise{}, fmt.Errorf("all exercises are done: choose one, for example with STEP=4. There are: %s",
			strings.Join(names, ", "))
	}
	return Exercise{}, fmt.Errorf("STEP=%s: there is no such exercise. There are: %s", name, strings.Join(names, ", "))
}

// IsStep reports whether the exercise is a step's lock.
func (e Exercise) IsStep() bool { return strings.HasPrefix(e.Home, "step") }

func (e Exercise) String() string { return e.Title().EN }

// Title returns the name of the exercise for a reader.
func (e Exercise) Title() lang.Text {
	if e.IsStep() {
		return lang.Of("step %s", "第 %s 步", e.Name)
	}
	return lang.Both(e.Name, e.Name)
}

// Dir returns the folder of the learner's package.
func (e Exercise) Dir() string {
	return filepath.Join(Folder, strings.ReplaceAll(e.String(), " ", ""))
}

// starter returns the folder that Copy copies.
func (e Exercise) starter() string { return filepath.Join(e.Home, "exercise") }

// Copy copies the starter and its test into Dir. If Dir has a Go file already, Copy does nothing,
// and returns false.
func (e Exercise) Copy() (copied bool, err error) { return e.copyOf(e.starter()) }

func (e Exercise) copyOf(starter string) (copied bool, err error) {
	there, err := filepath.Glob(filepath.Join(e.Dir(), "*.go"))
	if err != nil || len(there) > 0 {
		return false, err
	}
	files, err := filepath.Glob(filepath.Join(starter, "*.go"))
	if err != nil {
		return false, err
	}
	if len(files) == 0 {
		return false, fmt.Errorf("there is no starter in %s: go to the root of the repository", starter)
	}
	if err := os.MkdirAll(e.Dir(), 0o755); err != nil {
		return false, err
	}
	_ = os.Remove(filepath.Join(e.Dir(), progressFile)) // it is about a lock that was moved away
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(filepath.Join(e.Dir(), filepath.Base(file)), text, 0o644); err != nil {
			return false, err
		}
	}
	return true, nil
}

// CopyFrom is Copy with our lock of a stair, such as 5.5, in place of the starter. It refuses if Dir has a Go file already.
func (e Exercise) CopyFrom(stair string) error {
	work, err := e.upTo(stair)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	copied, err := e.copyOf(work)
	if err != nil {
		return err
	}
	if !copied {
		return fmt.Errorf("FROM=%s: %s has Go files already, and they are not overwritten: move them away first", stair, e.Dir())
	}
	return nil
}

// upTo makes a temporary folder with our lock of a stair: the starter, and step 5's diffs up to that stair.
func (e Exercise) upTo(stair string) (work string, err error) {
	wanted, err := strconv.Atoi(strings.TrimPrefix(stair, e.Name+"."))
	isStair := strings.HasPrefix(stair, e.Name+".") && err == nil && wanted >= 1 && wanted <= len(Stairs)
	if e.Name != Step5.Name || !isStair {
		return "", fmt.Errorf("FROM=%s: there is no such stair. There are those of step 5, with STEP=5: FROM=5.1 to FROM=5.%d",
			stair, len(Stairs))
	}
	if work, err = os.MkdirTemp("", "stairs"); err != nil {
		return "", err
	}
	if err := e.climb(work, wanted); err != nil {
		return "", errors.Join(err, os.RemoveAll(work))
	}
	return work, nil
}

// climb copies the starter into a folder that is in no repository, and applies the first diffs.
func (e Exercise) climb(work string, diffs int) error {
	if err := os.CopyFS(work, os.DirFS(e.starter())); err != nil {
		return err
	}
	for n := 1; n <= diffs; n++ {
		diff, err := filepath.Abs(filepath.Join(e.Home, "stairs", fmt.Sprintf("5.%d.diff", n)))
		if err != nil {
			return err
		}
		apply := exec.Command("git", "apply", diff)
		apply.Dir = work
		apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(work))
		if said, err := apply.CombinedOutput(); err != nil {
			return fmt.Errorf("git apply %s: %w: %s", diff, err, said)
		}
	}
	return nil
}

// Build compiles the test of a learner's package to a program. make exercise runs it. make play and
// make explore start it as a client of the lock.
func (e Exercise) Build(program string) error { return build(e.Dir(), program) }

// BuildStair is Build for our lock of a stair: for the go command, its files stand in place of the starter's.
func (e Exercise) BuildStair(stair, program string) error {
	work, err := e.upTo(stair)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	starter, err := filepath.Abs(e.starter())
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(work, "*.go"))
	if err != nil {
		return err
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[filepath.Join(starter, filepath.Base(file))] = string(text)
	}
	list, err := overlay(work, texts)
	if err != nil {
		return err
	}
	return build(starter, program, "-overlay", list)
}

// build compiles the test of a package.
func build(folder, program string, flags ...string) error {
	pkg, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	noDebugger := "-ldflags=-s" // without a debugger's tables, linking takes half a second less
	args := append([]string{"test", "-c", noDebugger, "-o", program}, flags...)
	said, err := exec.Command("go", append(args, pkg)...).CombinedOutput()
	if err != nil && len(said) > 0 {
		return errors.New(string(said))
	}
	return err
}

// LastSaved returns a text that changes when a Go file is saved in one of the folders that match a
// pattern.
func LastSaved(folders string) (times string) {
	paths, _ := filepath.Glob(filepath.Join(folders, "*.go")) // the pattern is our own
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			times += fmt.Sprintln(path, info.ModTime(), info.Size())
		}
	}
	return times
}
