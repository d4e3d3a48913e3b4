// Command exercise is make exercise, which copies a starter and runs its test, and make hint.
// It runs in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"zklock/internal/exercise"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what the first argument says. The second is an exercise's name; without it the
// first that is not done is meant.
func run(args []string) error {
	command, name := "", ""
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 {
		name = args[1]
	}
	switch {
	case command == "check":
		return check(name)
	case command == "hint":
		return hint(name)
	case command == "build" && len(args) == 4:
		return build(name, args[2], args[3])
	}
	return errors.New("usage: exercise check|hint [4]")
}

// build makes a program of the learner's lock of a step, which is in this folder, for make play
// and make explore. It prints which step that is.
func build(name, folder, program string) error {
	exercise.Folder = folder
	e, err := exercise.Find(name)
	if err != nil {
		return err
	}
	if !e.IsStep() {
		return errors.New("all steps are done: choose the one to play with, such as mine4")
	}
	if _, err := e.Copy(); err != nil {
		return err
	}
	fmt.Println(e.Name)
	return e.Build(program)
}

// check runs the test of an exercise, which it copies if the learner has not begun. Without a
// name it tells how far each is, and takes the first that is not done.
func check(name string) error {
	if name == "" {
		for _, e := range exercise.All {
			fmt.Printf("%-9s  %s\n", e, state(e))
		}
	}
	e, err := exercise.Find(name)
	if err != nil {
		return err
	}
	copied, err := e.Copy()
	if err != nil {
		return err
	}
	if copied {
		toOpen := filepath.Join(e.Dir(), toWrite(e)[0])
		fmt.Printf("\n%s is yours to write: open %s, and begin with TODO 1\n", e.Dir(), toOpen)
	}
	return test(e)
}

// state is how far a learner has come.
func state(e exercise.Exercise) string {
	p := e.Progress()
	switch {
	case !p.Begun:
		return "not started"
	case p.Done:
		return "done"
	case p.Missing == "":
		return "all properties hold; next: TestMine, your own test"
	}
	return fmt.Sprintf("%d of %d hold; next: %s", p.Held, len(e.Properties), e.MissingName())
}

func test(e exercise.Exercise) error {
	pkg := "./" + filepath.ToSlash(e.Dir())
	fmt.Printf("\ngo test %s\n", pkg)
	run := exec.Command("go", "test", pkg)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	err := run.Run()
	p := e.Progress()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		p.Done = false // it does not even compile
		return e.Keep(p)
	}
	if err != nil || !p.Done {
		return err
	}
	fmt.Printf("\nWell done: your lock has all %d properties. To compare it with ours: %s\n", len(e.Properties), diff(e))
	fmt.Printf("To check it for data races: go test -race %s\n", pkg)
	fmt.Println(next(e))
	return nil
}

// next tells which exercise comes after one: the first behind it that is not done, or before it.
func next(e exercise.Exercise) string {
	at := slices.IndexFunc(exercise.All, func(other exercise.Exercise) bool { return other.Name == e.Name })
	for _, other := range append(slices.Clone(exercise.All[at:]), exercise.All[:at]...) {
		if !other.Progress().Done {
			return fmt.Sprintf("Next: make exercise STEP=%s", other.Name)
		}
	}
	return "That was the last exercise: you have written them all."
}

// diff is the command that shows the learner's lock beside the solution.
func diff(e exercise.Exercise) string {
	var commands []string
	for _, file := range toWrite(e) {
		commands = append(commands, fmt.Sprintf("diff -u %s %s", filepath.Join(e.Dir(), file), filepath.Join(e.Home, file)))
	}
	return strings.Join(commands, "; ")
}

// toWrite are the files with TODOs, in their order.
func toWrite(e exercise.Exercise) []string {
	switch {
	case e.Name == "5":
		return []string{"lock.go", "hold.go", "session.go"}
	case e.Name == "6":
		return []string{"lock.go", "hold.go"}
	case e.IsStep():
		return []string{"lock.go"}
	}
	return []string{e.Name + ".go"}
}

func hint(name string) error {
	e, err := exercise.Find(name)
	if err != nil {
		return err
	}
	if e.Progress().Done {
		fmt.Printf("%s is done. To compare it with ours: %s\n", e, diff(e))
		return nil
	}
	if _, err := e.Copy(); err != nil {
		return err
	}
	if !compiles(e) {
		fmt.Printf("%s does not compile now: this hint is for the lock that was tested last\n\n", e.Dir())
	}
	h, err := e.Next()
	if err != nil {
		return err
	}
	fmt.Printf("%s, %q, hint %d of %d\n\n%s\n\n", e, h.Property, h.Number, h.N, h.Text)
	if h.Number < h.N {
		fmt.Printf("For a more direct hint: make hint STEP=%s\n", e.Name)
	} else {
		fmt.Printf("This was the last hint; the next one is the first again. To compare with ours: %s\n", diff(e))
	}
	return nil
}

func compiles(e exercise.Exercise) bool {
	return exec.Command("go", "build", "./"+filepath.ToSlash(e.Dir())).Run() == nil
}
