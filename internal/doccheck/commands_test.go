package doccheck

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A command is a line that a reader is told to type.
type command struct {
	line  int
	words []string
}

// commands lists the commands of a page that begin with make, go or diff.
func (p page) commands() (all []command) {
	add := func(line int, text string) {
		text, _, _ = strings.Cut(text, " #") // what follows is a comment
		words := strings.Fields(strings.TrimPrefix(text, "$ "))
		for len(words) > 0 && assignment.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 1 && slices.Contains([]string{"make", "go", "diff"}, words[0]) {
			all = append(all, command{line, words})
		}
	}
	for _, b := range p.blocks {
		if slices.Contains([]string{"", "sh", "bash", "shell", "console"}, b.language) {
			for i, text := range b.lines {
				add(b.first+i, text)
			}
		}
	}
	for _, l := range p.prose {
		for _, text := range spans(l.text) {
			add(l.number, text)
		}
	}
	return all
}

var assignment = regexp.MustCompile(`^[A-Z_]+=\S*$`)

func TestEveryCommandExists(t *testing.T) { check(t, repository.badCommands) }

// badCommands: what a reader is told to type is there. What is harmless is run.
func (r repository) badCommands(p page) (problems []string) {
	for _, c := range p.commands() {
		var err error
		switch c.words[0] {
		case "make":
			err = r.checkMake(c.words[1:])
		case "go":
			err = r.checkGo(c.words[1:])
		}
		if err == nil && c.harmless() {
			err = c.run()
		}
		if err != nil {
			problems = append(problems, p.at(c.line, "%s: %v", strings.Join(c.words, " "), err))
		}
	}
	return problems
}

// harmless tells whether the command is run by the test: it is quick, and asks
// no server.
func (c command) harmless() bool {
	return c.words[0] == "diff" || c.words[0] == "go" && slices.Contains([]string{"vet", "list", "doc", "env", "version"}, c.words[1])
}

// run runs the command. Of a diff, that there is a difference is the point.
func (c command) run() error {
	err := run(c.words[0], c.words[1:]...)
	var exit *exec.ExitError
	if c.words[0] != "diff" {
		return err
	}
	if err == nil {
		return errors.New("the files do not differ")
	}
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	return err
}

func (r repository) checkMake(words []string) error {
	for _, w := range words {
		name, value, isVariable := strings.Cut(w, "=")
		switch {
		case !isVariable && !r.targets[name]:
			return errors.New("the Makefile has no " + name)
		case isVariable && !r.mentions(name):
			return errors.New("nobody looks at " + name)
		case name == "STEP" && value != "":
			step, _ := filepath.Glob(filepath.Join(root, "step"+value+"_*"))
			graduation, _ := filepath.Glob(filepath.Join(root, "docs", "graduation", value))
			if len(step)+len(graduation) != 1 {
				return errors.New("there is no step " + value)
			}
		}
	}
	return nil
}

// mentions tells whether the Makefile or a Go file knows a variable.
func (r repository) mentions(variable string) bool {
	makefile, _ := os.ReadFile(filepath.Join(root, "Makefile"))
	if strings.Contains(string(makefile), variable) {
		return true
	}
	return slices.ContainsFunc(r.files, func(f goFile) bool {
		return !strings.HasPrefix(f.path, "internal/doccheck/") && strings.Contains(f.text, `"`+variable+`"`)
	})
}

// checkGo looks at the packages that a go command names, and at the tests that
// its -run and -bench name.
func (r repository) checkGo(words []string) error {
	var packages []string
	pattern := ""
	for i := 1; i < len(words); i++ {
		flag, value, joined := strings.Cut(words[i], "=")
		switch {
		case slices.Contains([]string{"-run", "-bench", "-timeout", "-count", "-parallel", "-o", "-fuzz", "-C"}, flag):
			if !joined && i+1 < len(words) {
				i++
				value = words[i]
			}
			if flag == "-run" || flag == "-bench" {
				pattern = strings.Trim(value, `'"`)
			}
		case strings.HasPrefix(flag, "-"):
		case strings.HasPrefix(words[i], "./"):
			packages = append(packages, strings.TrimPrefix(words[i], "./"))
		case words[0] == "run" && len(packages) == 0:
			return nil // another module's
		}
		if words[0] == "run" && len(packages) > 0 {
			break // the rest is the program's
		}
	}
	var files []goFile
	for _, name := range packages {
		found, err := r.ofPackage(name)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if pattern == "" || pattern == "." || pattern == "^$" {
		return nil
	}
	top, _, _ := strings.Cut(pattern, "/")
	compiled, err := regexp.Compile(top)
	if err != nil {
		return err
	}
	for _, f := range files {
		if slices.ContainsFunc(f.tests, compiled.MatchString) {
			return nil
		}
	}
	return errors.New("no test there is called " + top)
}

// ofPackage lists the Go files of a package path, in which * and ... may stand.
func (r repository) ofPackage(name string) (files []goFile, err error) {
	below, all := strings.CutSuffix(name, "...")
	below = strings.TrimSuffix(below, "/")
	for _, f := range r.files {
		dir := filepath.ToSlash(filepath.Dir(f.path))
		same, err := filepath.Match(strings.TrimSuffix(name, "/"), dir)
		if err != nil {
			return nil, err
		}
		if same || all && (below == "" || dir == below || strings.HasPrefix(dir, below+"/")) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		err = errors.New("there is no package ./" + name)
	}
	return files, err
}
