package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// An exercise is what the learner is to write: a step, or one of those that come
// after the steps.
type exercise struct {
	name string // "04"
	home string // step04_predecessor_watch: where the solution is
}

// exercises are the steps, and what comes after them.
func exercises() (all []exercise) {
	for _, pattern := range []string{"step[0-9][0-9]_*", "docs/graduation/semaphore", "docs/graduation/multilock", "docs/graduation/election"} {
		homes, _ := filepath.Glob(pattern)
		for _, home := range homes {
			name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(home), "step"), "_")
			all = append(all, exercise{name, home})
		}
	}
	return all
}

// find returns an exercise by its name: "4" and "04" are the same. Without a name it
// is the first that is not done.
func find(asked string) (exercise, error) {
	name, known := asked, []string{}
	if n, err := strconv.Atoi(asked); err == nil {
		name = fmt.Sprintf("%02d", n)
	}
	for _, e := range exercises() {
		if e.name == name || asked == "" && !e.done() {
			return e, nil
		}
		known = append(known, e.name)
	}
	return exercise{}, fmt.Errorf("STEP=%s: there is no such exercise. Found here, which has to be the root of the repository: %s", asked, strings.Join(known, ", "))
}

func (e exercise) isStep() bool { return e.name < "a" }

func (e exercise) String() string {
	if e.isStep() {
		n, _ := strconv.Atoi(e.name)
		return fmt.Sprintf("step %02d", n)
	}
	return e.name
}

func (e exercise) dir() string             { return filepath.Join(e.home, "exercise") }
func (e exercise) path(name string) string { return filepath.Join(e.dir(), name) }

// files are texts by the files' names.
type files map[string][]byte

// read reads some files. One that cannot be read is left out.
func read(paths []string) files {
	all := files{}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			all[filepath.Base(path)] = text
		}
	}
	return all
}

// write writes the files into a folder, which it makes where that is missing.
func (all files) write(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	for name, text := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return err
}

// The starters, as they were before anybody worked on them.
//
//go:embed starters
var starters embed.FS

// starter returns the files that the learner changes, as they were.
func (e exercise) starter() files {
	all := files{}
	paths, _ := fs.Glob(starters, "starters/"+e.name+"/*")
	for _, path := range paths {
		all[strings.TrimSuffix(filepath.Base(path), ".txt")], _ = starters.ReadFile(path)
	}
	return all
}

// given is the file that stands beside the learner's.
const given = "errors.go"

// yours returns the learner's files, also those that the starter does not have.
func (e exercise) yours() files { return e.yoursIn("") }

// yoursIn is yours in a folder that is laid out as the repository is.
func (e exercise) yoursIn(root string) files {
	paths, _ := filepath.Glob(filepath.Join(root, e.path("*.go")))
	all := read(paths)
	maps.DeleteFunc(all, func(name string, _ []byte) bool { return name == given || strings.HasSuffix(name, "_test.go") })
	return all
}

// own returns the files of the solution.
func (e exercise) own() files {
	var paths []string
	for name := range e.starter() {
		paths = append(paths, filepath.Join(e.home, name))
	}
	return read(paths)
}

var clause = regexp.MustCompile(`(?m)^package \w+$`)

// moved returns the step's files as they would stand in the exercise.
func (all files) moved() files {
	for name, text := range all {
		all[name] = clause.ReplaceAll(text, []byte("package exercise"))
	}
	return all
}

// changed tells whether the learner has begun.
func (e exercise) changed() bool { return !maps.EqualFunc(e.yours(), e.starter(), bytes.Equal) }

// version names what the files are.
func (all files) version() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", all)))
}

// outDir holds what may be lost: git ignores it.
var outDir = "out/exercise"

// A record is what the last check has found, and which hints were given.
type record struct {
	Version  string // of the learner's files
	Held, Of int    // properties
	Missing  string // the first property that does not hold
	Hints    map[string]int
}

func (e exercise) recordFile() string { return filepath.Join(outDir, e.name+".json") }

func (e exercise) record() (r record) {
	text, _ := os.ReadFile(e.recordFile())
	_ = json.Unmarshal(text, &r)
	return r
}

func (e exercise) keep(r record) error {
	text, err := json.Marshal(r)
	return errors.Join(err, files{filepath.Base(e.recordFile()): text}.write(outDir))
}

// done tells whether the last check found that all properties hold, and nothing was
// saved since.
func (e exercise) done() bool {
	r := e.record()
	return r.Of > 0 && r.Missing == "" && r.Version == e.yours().version()
}
