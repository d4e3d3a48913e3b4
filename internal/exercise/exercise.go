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
func (e Exercise) Copy() (copied bool, err error) {
	there, err := filepath.Glob(filepath.Join(e.Dir(), "*.go"))
	if err != nil || len(there) > 0 {
		return false, err
	}
	files, err := filepath.Glob(filepath.Join(e.starter(), "*.go"))
	if err != nil {
		return false, err
	}
	if len(files) == 0 {
		return false, fmt.Errorf("there is no starter in %s: go to the root of the repository", e.starter())
	}
	if err := os.MkdirAll(e.Dir(), 0o755); err != nil {
		return false, err
	}
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

// Build compiles the test of a learner's package to a program. make exercise runs it. make play and
// make explore start it as a client of the lock.
func (e Exercise) Build(program string) error {
	pkg, err := filepath.Abs(e.Dir())
	if err != nil {
		return err
	}
	noDebugger := "-ldflags=-s" // without a debugger's tables, linking takes half a second less
	said, err := exec.Command("go", "test", "-c", noDebugger, "-o", program, pkg).CombinedOutput()
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
