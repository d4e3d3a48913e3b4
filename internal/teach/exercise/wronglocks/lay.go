package wronglocks

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"zklock/internal/teach/exercise"
)

// laid is the test of the variants that are laid: what it imports, and what it calls. It needs a
// server that runs already, and does not mind that wrong locks leave goroutines behind.
const laid = `package laid

import (
	"testing"

	"zklock/internal/teach/exercise/wronglocks"
%s)

func TestVariants(t *testing.T) {
%s}
`

// subjects is what is added to the package of each variant.
const subjects = `package step%d

import (
	"zklock/internal/property"
	"zklock/internal/teach/exercise"
)

func Subjects() []property.Subject { return []property.Subject{%s} }
`

// Lay puts those variants into a folder in the root of the repository whose names are chosen.
// Each is a package of its own, and one test holds them all against what is asked of them.
func Lay(folder string, chosen func(name string) bool) error {
	var imports, calls strings.Builder
	for i, v := range All {
		if !chosen(v.String()) {
			continue
		}
		e, err := v.exercise()
		if err != nil {
			return err
		}
		files, err := v.Files()
		if err != nil {
			return fmt.Errorf("%s: %w", v, err)
		}
		files["subjects.go"] = fmt.Appendf(nil, subjects, v.Step, e.Subjects())
		name := fmt.Sprintf("v%d", i)
		if err := files.Write(filepath.Join(folder, name)); err != nil {
			return err
		}
		fmt.Fprintf(&imports, "\t%s %q\n", name, "zklock/"+filepath.Base(folder)+"/"+name)
		fmt.Fprintf(&calls, "\twronglocks.All[%d].Judge(t, %s.Subjects()...)\n", i, name)
	}
	test := exercise.Files{"laid_test.go": fmt.Appendf(nil, laid, imports.String(), calls.String())}
	return test.Write(folder)
}

func (v Variant) exercise() (exercise.Exercise, error) { return exercise.Find(strconv.Itoa(v.Step)) }

// Files are a learner's files with the variant's edits, without the test.
func (v Variant) Files() (exercise.Files, error) {
	e, err := v.exercise()
	if err != nil {
		return nil, err
	}
	files, err := e.At(max(1, len(e.Parts())))
	if err != nil {
		return nil, err
	}
	delete(files, "lock_test.go")
	for _, edit := range v.Edits {
		text := string(files[edit.File])
		if n := strings.Count(text, edit.Old); n != 1 {
			err = errors.Join(err, fmt.Errorf("the old text is in %s %d times, and not once:\n%s", edit.File, n, edit.Old))
		}
		files[edit.File] = []byte(strings.Replace(text, edit.Old, edit.New, 1))
	}
	return files, err
}
