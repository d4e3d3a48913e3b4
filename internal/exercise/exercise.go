// Package exercise is the check of the locks that a learner writes. The starter of each is
// a Go package in the step's folder exercise. Copy lays it into the folder yours, and its
// test calls Check.
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

// An Exercise is a lock for the learner to write, or one of the three that come after the
// steps.
type Exercise struct {
	Name string // "4", or "election"
	Home string // the folder of the solution, whose folder exercise has the starter

	// Properties are asked in this order, which is the chapter's.
	Properties []*property.Property
}

// Folder is where the learner's packages are. git leaves it out.
var Folder = "yours"

// Find returns an exercise by its name: "4" and "04" are the same. Without a name it is the
// first that is not done.
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

// IsStep tells whether the exercise is a step's lock.
func (e Exercise) IsStep() bool { return strings.HasPrefix(e.Home, "step") }

func (e Exercise) String() string { return e.Title().EN }

// Title is what the exercise is called.
func (e Exercise) Title() lang.Text {
	if e.IsStep() {
		return lang.Of("step %s", "第 %s 步", e.Name)
	}
	return lang.Both(e.Name, e.Name)
}

// Dir is the folder of the learner's package.
func (e Exercise) Dir() string {
	return filepath.Join(Folder, strings.ReplaceAll(e.String(), " ", ""))
}

// starter is the folder that Copy copies.
func (e Exercise) starter() string { return filepath.Join(e.Home, "exercise") }

// Copy copies the starter and its test into Dir. It does nothing, and returns false, if there is
// a Go file already.
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

// Build makes a program of the test of a learner's package: make exercise, make play and make explore start
// it as a client of the lock.
func (e Exercise) Build(program string) error {
	pkg, err := filepath.Abs(e.Dir())
	if err != nil {
		return err
	}
	noDebugger := "-ldflags=-s" // without its tables a program is linked in half a second less
	said, err := exec.Command("go", "test", "-c", noDebugger, "-o", program, pkg).CombinedOutput()
	if err != nil && len(said) > 0 {
		return errors.New(string(said))
	}
	return err
}

// LastSaved changes when a Go file is saved in one of the folders that a pattern names.
func LastSaved(folders string) (times string) {
	paths, _ := filepath.Glob(filepath.Join(folders, "*.go")) // the pattern is our own
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			times += fmt.Sprintln(path, info.ModTime(), info.Size())
		}
	}
	return times
}
