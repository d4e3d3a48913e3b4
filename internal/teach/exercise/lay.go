package exercise

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"zklock/internal/lang"
)

// given are the files that stand beside the learner's, as they are in the step: the
// first in all steps, the others in steps 5 and 6.
var given = []string{"errors.go", "session.go", "lease.go", "client.go"}

// Laid returns the whole package as the learner begins with it.
func (e Exercise) Laid() (Files, error) {
	starter, err := e.starter(lang.Chinese())
	if err != nil {
		return nil, err
	}
	return e.complete(starter)
}

// complete adds to the learner's files those that are given, and the test.
func (e Exercise) complete(lock Files) (Files, error) {
	beside := Files{}
	if e.IsStep() {
		var err error
		if beside, err = read(e.Home, given...); err != nil {
			return nil, err
		}
		beside = e.moved(beside)
	}
	maps.Copy(beside, lock)
	test, err := e.test()
	beside[strings.TrimSuffix(e.write[0], ".go")+"_test.go"] = test
	return beside, err
}

// Lay makes the folder of the learner's package, if it is not there, and tells whether it did.
func (e Exercise) Lay() (laid bool, err error) {
	if err := layModule(); err != nil {
		return false, err
	}
	there, err := filepath.Glob(filepath.Join(e.Dir(), "*.go"))
	if err != nil || len(there) > 0 {
		return false, err
	}
	all, err := e.Laid()
	if err != nil {
		return false, err
	}
	return true, all.Write(e.Dir())
}

// layModule makes the folder yours a Go module of its own, if it is none: then ./... leaves it
// out. The workspace go.work joins it to this one: then go test and editors know it all the same.
// (A name with an underscore, or ignore in go.mod, would hide its mistakes from editors.)
func layModule() error {
	module, err := os.ReadFile("go.mod")
	version := goLine.Find(module)
	if err != nil || version == nil {
		return errors.New("there is no go.mod here: go to the root of the repository")
	}
	return errors.Join(
		writeOnce("yours/go.mod", fmt.Sprintf(goMod, version)),
		writeOnce("go.work", fmt.Sprintf(goWork, version)),
	)
}

var goLine = regexp.MustCompile(`(?m)^go .*$`)

// writeOnce writes a file that is not there, all of it at once: another go command may be
// reading it.
func writeOnce(file, text string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(file), "go.*.new")
	if err != nil {
		return err
	}
	_, err = next.WriteString(text)
	return errors.Join(err, next.Close(), os.Rename(next.Name(), file))
}

// Scratch makes a folder for a package that is tested and then removed: in the module,
// and as the learner's left out by git and by ./...
func Scratch() (dir string, err error) {
	if err := layModule(); err != nil {
		return "", err
	}
	return os.MkdirTemp("yours", "scratch")
}
