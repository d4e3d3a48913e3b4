package doccheck

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var assignments = regexp.MustCompile(`^(\$ )?([A-Z_]+=\S* )*`)

// commands lists what a reader is told to type that begins with make, go or diff.
func (p Page) commands() (all []Piece) {
	for _, l := range append(p.code(), p.Of("CodeSpan")...) {
		if !slices.Contains([]string{"", "sh", "bash", "shell", "console"}, l.Language) {
			continue
		}
		text, _, _ := strings.Cut(l.Text, " #") // what follows is a comment
		words := strings.Fields(assignments.ReplaceAllString(text, ""))
		if len(words) > 1 && slices.Contains([]string{"make", "go", "diff"}, words[0]) {
			l.Text = strings.Join(words, " ")
			all = append(all, l)
		}
	}
	return all
}

func TestEveryCommandExists(t *testing.T) { check(t, repository.badCommands) }

// badCommands: what a reader is told to type is there.
func (r repository) badCommands(p Page) (problems []string) {
	checks := map[string]func([]string) error{"make": r.checkMake, "go": r.checkGo, "diff": checkDiff}
	for _, c := range p.commands() {
		words := strings.Fields(c.Text)
		if err := checks[words[0]](words[1:]); err != nil {
			problems = append(problems, p.at(c.Line, "%s: %v", c.Text, err))
		}
	}
	return problems
}

// checkDiff runs a diff: that there is a difference is the point.
func checkDiff(words []string) error {
	command := exec.Command("diff", words...)
	command.Dir = root
	said, err := command.CombinedOutput()
	switch {
	case err == nil:
		return errors.New("the files do not differ")
	case command.ProcessState.ExitCode() != 1:
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func (r repository) checkMake(words []string) error {
	for _, w := range words {
		name, value, isVariable := strings.Cut(w, "=")
		switch {
		case !isVariable && !strings.Contains("\n"+r.makefile, "\n"+name+":"):
			return errors.New("the Makefile has no " + name)
		case isVariable && !r.looksAt(name):
			return errors.New("nobody looks at " + name)
		case name == "STEP" && value != "":
			number := "0" + strings.TrimLeft(value, "0") // 4 is 04
			step, _ := filepath.Glob(filepath.Join(root, "step"+number+"_*"))
			after, _ := filepath.Glob(filepath.Join(root, "internal/teach/exercise/after", value))
			if len(step)+len(after) != 1 {
				return errors.New("there is no step " + value)
			}
		}
	}
	return nil
}

// looksAt tells whether the Makefile or a Go file knows a variable.
func (r repository) looksAt(variable string) bool {
	return strings.Contains(r.makefile, variable) || slices.ContainsFunc(r.files, func(f file) bool {
		return !strings.HasPrefix(f.path, "internal/upkeep/doccheck/") && strings.Contains(f.text, `"`+variable+`"`)
	})
}

// whichExercise is the folder of an exercise, if a package is the learner's.
func (r repository) whichExercise(name string) string {
	yours, ok := strings.CutPrefix(name, "yours/")
	if !ok {
		return name
	}
	if step, ok := strings.CutPrefix(yours, "step"); ok {
		return "step0" + step + "_*"
	}
	return "internal/teach/exercise/after/" + yours
}

// checkGo looks at the packages that a go command names, and at the tests that
// its -run or -bench names.
func (r repository) checkGo(words []string) error {
	tests := ""
	var files []file
	words = strings.Fields(strings.ReplaceAll(strings.Join(words, " "), "=", " ")) // -run=X is -run X
	for i, w := range words {
		if before := words[max(i-1, 0)]; before == "-run" || before == "-bench" {
			tests, _, _ = strings.Cut(strings.Trim(w, `'"`), "/")
		}
		if name, ok := strings.CutPrefix(w, "./"); ok {
			name = r.whichExercise(name)
			found := r.ofPackage(name)
			if len(found) == 0 {
				return errors.New("there is no package " + w)
			}
			files = append(files, found...)
		}
	}
	pattern, err := regexp.Compile(tests)
	if err != nil || tests == "" {
		return err
	}
	if learners := pattern.MatchString("TestLock"); learners && strings.Contains(strings.Join(words, " "), "./yours/") {
		return nil // the one test of each
	}
	if !hasTest(files, pattern.MatchString) {
		return errors.New("no test there is called " + tests)
	}
	return nil
}

// ofPackage lists the Go files of a package path, in which * and ... may stand.
func (r repository) ofPackage(name string) []file {
	wildcards := strings.NewReplacer(`/\.\.\.`, `(/.*)?`, `\.\.\.`, `.*`, `\*`, `[^/]*`)
	pattern := wildcards.Replace(regexp.QuoteMeta(strings.TrimSuffix(name, "/")))
	matches := regexp.MustCompile("^" + pattern + "/[^/]*$").MatchString
	return slices.DeleteFunc(r.in(""), func(f file) bool { return !matches(f.path) })
}
