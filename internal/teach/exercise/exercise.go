// Package exercise is what stands behind the learner's own locks. Each exercise is a
// Go package in the folder yours, which Lay makes, and its test calls Check.
package exercise

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zklock/internal/check/tables"
	"zklock/internal/property"
)

// An Exercise is what the learner is to write: a step's lock, or one of those that
// come after the steps.
type Exercise struct {
	Name  string               // "4", or "election"
	Home  string               // step04_predecessor_watch: where the solution is, and the folder exercise
	Goals []*property.Property // when one fails, those behind it are not told

	write  []string // the files that the learner is to write, as far as the solution has them
	before string   // the folder whose files the starter is made from
}

// All are the exercises in their order. A step begins as it is itself or as the one before.
// Steps 2 to 4 are made for one property; those after them have parts.
var All = []Exercise{
	step(1, 1),
	step(2, 1, property.FirstCome),
	step(3, 2, property.SilentWait),
	step(4, 3, property.WakesOne),
	step(5, 5),
	step(6, 6),
	after("semaphore", property.SemaphoreProperties),
	after("multilock", property.MultiLockProperties),
	after("election", property.ElectionProperties),
}

func step(n, before int, own ...*property.Property) Exercise {
	goals := append([]*property.Property{property.OneHolder}, own...)
	for _, p := range property.Asked(n) {
		if !slices.Contains(goals, p) {
			goals = append(goals, p)
		}
	}
	return Exercise{
		Name:   strconv.Itoa(n),
		Home:   tables.Find(strconv.Itoa(n)).Folder,
		Goals:  goals,
		write:  []string{"lock.go", "hold.go"},
		before: tables.Find(strconv.Itoa(before)).Folder,
	}
}

func after(name string, goals []*property.Property) Exercise {
	home := "internal/teach/exercise/after/" + name
	return Exercise{Name: name, Home: home, Goals: goals, write: []string{name + ".go"}, before: home}
}

// Find returns an exercise by its name: "4" and "04" are the same. Without a name it
// is the first that is not done.
func Find(asked string) (Exercise, error) {
	var names []string
	for _, e := range All {
		isNext := asked == "" && !e.Done()
		if isNext || e.Name == strings.TrimLeft(asked, "0") {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Exercise{}, fmt.Errorf("STEP=%s: there is no such exercise. There are: %s", asked, strings.Join(names, ", "))
}

// IsStep tells whether the exercise is a step's lock.
func (e Exercise) IsStep() bool { return strings.HasPrefix(e.Home, "step") }

func (e Exercise) String() string {
	if e.IsStep() {
		return "step " + e.Name
	}
	return e.Name
}

// NotTested are what no property of the exercise can find out.
func (e Exercise) NotTested() []string {
	step, err := strconv.Atoi(e.Name)
	if err != nil {
		return nil
	}
	return property.NotTested(step)
}

// After lists the exercises after this one.
func (e Exercise) After() []Exercise {
	i := slices.IndexFunc(All, func(other Exercise) bool { return other.Name == e.Name })
	return All[i+1:]
}

// pkg is the name of the learner's package, and of its folder.
func (e Exercise) pkg() string {
	if e.IsStep() {
		return "step" + e.Name
	}
	return e.Name
}

// Folder is where the learner's packages are. git, and the pattern ./..., leave it out.
var Folder = "yours"

// Dir is the folder of the learner's package.
func (e Exercise) Dir() string { return filepath.Join(Folder, e.pkg()) }

// Files are texts by the files' names.
type Files map[string][]byte

// read reads some files of a folder. One that is not there is left out.
func read(dir string, names ...string) (Files, error) {
	all := Files{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	return all, nil
}

// Write writes the files into a folder, which it makes where that is missing.
func (all Files) Write(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	for name, text := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return err
}

// Yours returns the learner's files in a folder: all of the package but its tests.
func Yours(dir string) (Files, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return read(dir, names...)
}

// Solution returns those files of the step that the learner is to write, as they would stand in
// the learner's package.
func (e Exercise) Solution() (Files, error) {
	all, err := read(e.Home, e.write...)
	return e.moved(all), err
}

var clause = regexp.MustCompile(`(?m)^package \w+$`)

// moved returns the files as they would stand in the learner's package.
func (e Exercise) moved(all Files) Files {
	for name, text := range all {
		all[name] = clause.ReplaceAll(text, []byte("package "+e.pkg()))
	}
	return all
}

// Changed tells whether the learner has begun.
func (e Exercise) Changed() (bool, error) {
	yours, err := Yours(e.Dir())
	if err != nil || len(yours) == 0 {
		return false, err
	}
	laid, err := e.Laid()
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(laid, func(name string, _ []byte) bool { return strings.HasSuffix(name, "_test.go") })
	return !maps.EqualFunc(yours, laid, bytes.Equal), nil
}

// Version names what the files are.
func (all Files) Version() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", all)))
}

// An Answer is what Check has found of one property.
type Answer struct {
	Property, Verdict string
	Evidence          string
}

func (a Answer) holds() bool { return property.Verdict(a.Verdict).Accepted() }

// A Record is what Check has found of one version, and which hints were given. It is
// kept beside the learner's files.
type Record struct {
	Version string   // of the files; the answers are about it
	Answers []Answer // of the properties that were asked
	Failed  []string // the properties that did not hold when they were last asked, of whatever version
	Hints   map[string]int
}

// isAbout forgets the answers if they are about another version than this one.
func (r *Record) isAbout(yours Files) {
	version := yours.Version()
	if version == r.Version {
		return
	}
	r.Version, r.Answers = version, nil
}

const recordFile = ".check.json"

// Recorded reads the record in a folder.
func Recorded(dir string) (r Record) {
	text, _ := os.ReadFile(filepath.Join(dir, recordFile)) // there is none before the first check
	_ = json.Unmarshal(text, &r)
	return r
}

// Keep writes the record into a folder.
func (r Record) Keep(dir string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	return errors.Join(err, Files{recordFile: text}.Write(dir))
}

// answer notes an answer in the place of an earlier one.
func (r *Record) answer(a Answer) {
	r.Answers = slices.DeleteFunc(r.Answers, func(old Answer) bool { return old.Property == a.Property })
	r.Answers = append(r.Answers, a)
	r.Failed = slices.DeleteFunc(r.Failed, func(old string) bool { return old == a.Property })
	if !a.holds() {
		r.Failed = append(r.Failed, a.Property)
	}
}

func (r Record) asked(p *property.Property) bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Property == p.Name.EN })
}

func (r Record) holds(p *property.Property) bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Property == p.Name.EN && a.holds() })
}

// Fails tells whether a property that was asked does not hold.
func (r Record) Fails() bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool { return !a.holds() })
}

// NotWoken tells whether the story of a property has ended as a Lock did not return
// whose turn had come.
func (r Record) NotWoken(p *property.Property) bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool {
		return a.Property == p.Name.EN && waitedForLock.MatchString(a.Evidence)
	})
}

var waitedForLock = regexp.MustCompile(`waited in vain for\W.+('s Lock|[A-Z] or [A-Z] to be let in|a waiter to be let in)\W`)

// Held counts the goals that were found to hold.
func (e Exercise) Held(r Record) (n int) {
	for _, p := range e.Goals {
		if r.holds(p) {
			n++
		}
	}
	return n
}

// Missing is the property to go on with: the first that was found not to hold, and that
// comes soonest in the step's parts, or else the first that was not asked. It is nil if
// all hold.
func (e Exercise) Missing(r Record) *property.Property {
	parts := e.Parts()
	var failed, unasked *property.Property
	for _, p := range e.Goals {
		switch {
		case !r.asked(p):
			unasked = cmp.Or(unasked, p)
		case r.holds(p): // it is not missing
		case failed == nil || parts.bringing(p) < parts.bringing(failed):
			failed = p
		}
	}
	return cmp.Or(failed, unasked)
}

// Done tells whether all properties hold, and nothing was saved since.
func (e Exercise) Done() bool {
	r := Recorded(e.Dir())
	yours, err := Yours(e.Dir())
	if err != nil {
		return false
	}
	return e.Missing(r) == nil && r.Version == yours.Version()
}

// Saved tells whether something was saved since the last check.
func (e Exercise) Saved() bool {
	yours, err := Yours(e.Dir())
	return err != nil || Recorded(e.Dir()).Version != yours.Version()
}

// LastSaved changes when a Go file is saved in a folder, or in one of those that a pattern
// names.
func LastSaved(folders string) (times string) {
	paths, _ := filepath.Glob(filepath.Join(folders, "*.go"))
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			times += fmt.Sprintln(path, info.ModTime(), info.Size())
		}
	}
	return times
}
