package wronglocks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Lay puts the variants into a folder of the module: each is a package of its own, and one
// program holds them all against what is asked of them.
func Lay(root, folder string, variants []Variant) error {
	var imports, subjects strings.Builder
	for i, v := range variants {
		files, err := v.files(root)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", v.Step, v.Name, err)
		}
		name := fmt.Sprintf("v%d", i)
		if err := write(filepath.Join(folder, name), files); err != nil {
			return err
		}
		fmt.Fprintf(&imports, "\t%s %q\n", name, "zklock/"+filepath.Base(folder)+"/"+name)
		fmt.Fprintf(&subjects, "\t\t{%s},\n", v.subjects(name))
	}
	program := fmt.Sprintf(`package main

import (
	"zklock/internal/teach/exercise"
	"zklock/internal/teach/exercise/wronglocks"
	"zklock/internal/check/lockcheck"
%s)

func main() {
	wronglocks.Answer([][]lockcheck.Subject{
%s	})
}
`, imports.String(), subjects.String())
	return write(folder, map[string]string{"main.go": program})
}

// files are those of the step's package that a learner has, too, with the edits made.
func (v Variant) files(root string) (files map[string]string, err error) {
	paths, err := filepath.Glob(filepath.Join(root, fmt.Sprintf("step%02d_*", v.Step), "*.go"))
	if err != nil {
		return nil, err
	}
	files = map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || name == "cohort.go" { // which no exercise has
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	for name, text := range files {
		if files[name], err = v.Edit(name, text); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Edit makes the variant's edits in the text of one file.
func (v Variant) Edit(file, text string) (edited string, err error) {
	for _, e := range v.Edits {
		if e.File != file {
			continue
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("the old text is in %s %d times, and not once:\n%s", e.File, n, e.Old)
		}
		text = strings.Replace(text, e.Old, e.New, 1)
	}
	return text, nil
}

// subjects are the calls that make the package locks to ask.
func (v Variant) subjects(name string) string {
	switch {
	case v.Step == 1:
		return fmt.Sprintf("exercise.Plain(%s.New), exercise.Plain(%[1]s.NewEphemeral)", name)
	case v.Step <= 4:
		return fmt.Sprintf("exercise.Queue(%s.New, %[1]s.ErrNotHeld)", name)
	}
	return fmt.Sprintf("exercise.Held(%s.Open, %[1]s.WithDialer, %[1]s.New, %[1]s.Token, %[1]s.ErrNotHeld, %[1]s.ErrLost)", name)
}

func write(folder string, files map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
