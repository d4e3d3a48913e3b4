// Command exercise does the work of make exercise, which copies a starter and runs its test, and of
// make hint. It runs in the root of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"zklock/internal/exercise"
	"zklock/internal/lang"
	"zklock/internal/zkserver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run carries out the command in the first argument. The second argument is the name of an
// exercise. Without it, the command is for the first exercise that is not done.
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
		from := ""
		if len(args) > 2 {
			from = args[2]
		}
		return check(name, from)
	case command == "hint":
		return hint(name)
	case command == "build" && len(args) == 4:
		return build(name, args[2], args[3])
	case command == "stair" && len(args) == 3:
		return exercise.Step5.BuildStair(name, args[2])
	}
	return errors.New("usage: exercise check|hint [4]")
}

// build compiles the learner's lock of a step, which is in this folder, to a program for make play
// and make explore. It prints the number of the step.
func build(name, folder, program string) error {
	exercise.Folder = folder
	e, err := exercise.Find(name)
	if err != nil {
		return err
	}
	if !e.IsStep() {
		return errors.New("all steps are done: choose the lock to play with, for example mine4")
	}
	if _, err := e.Copy(); err != nil {
		return err
	}
	fmt.Println(e.Name)
	return e.Build(program)
}

// check runs the test of an exercise. If the learner has not begun, it first copies the starter.
// Without a name it prints how far the learner has come with each exercise, and takes the first
// that is not done.
//
// from is a stair of step 5, or empty. Then it copies our lock of that stair in place of the starter.
func check(name, from string) error {
	if from != "" && name == "" {
		return fmt.Errorf("FROM=%s: also say which exercise, with STEP=5", from)
	}
	if name == "" {
		for _, e := range exercise.All {
			title := exercise.InWords(e.Title())
			fmt.Println(title+strings.Repeat(" ", widest-width(title)), exercise.InWords(state(e)))
		}
	}
	e, err := exercise.Find(name)
	if err != nil {
		return err
	}
	if from != "" {
		if err := e.CopyFrom(from); err != nil {
			return err
		}
		say("\n%[1]s has our lock of %[2]s: go on with the next stair in %[3]s",
			"\n%[1]s 里是我们在 %[2]s 的锁：从下一级台阶接着写，见 %[3]s", e.Dir(), from, e.Home)
		return test(e)
	}
	copied, err := e.Copy()
	if err != nil {
		return err
	}
	if copied && e.Name == exercise.Step5.Name {
		say("\n%[1]s is yours to write: open %[1]s/lock.go, and begin with stair 5.1 of %[2]s",
			"\n%[1]s 由你来写：打开 %[1]s/lock.go，从 %[2]s 的台阶 5.1 开始", e.Dir(), e.Home)
	} else if copied {
		toOpen := filepath.Join(e.Dir(), toWrite(e)[0])
		say("\n%s is yours to write: open %s, and begin with TODO 1",
			"\n%s 由你来写：打开 %s，从待办 1（TODO 1）开始", e.Dir(), toOpen)
	}
	return test(e)
}

// widest is the width of the longest title, semaphore.
const widest = 9

// width returns the width of a title on the screen, where a Chinese character takes two columns.
func width(title string) (n int) {
	for _, r := range title {
		n++
		if unicode.Is(unicode.Han, r) {
			n++
		}
	}
	return n
}

// say prints a sentence in the reader's language.
func say(en, zh string, args ...any) { fmt.Println(exercise.InWords(lang.Of(en, zh, args...))) }

// state says how far a learner has come with an exercise.
func state(e exercise.Exercise) lang.Text {
	p := e.Progress()
	switch {
	case !p.Begun:
		return lang.Both("not started", "未开始")
	case p.Done:
		return lang.Both("done", "已完成")
	case p.Missing == "":
		return lang.Both("all properties hold; next: TestMine, your own test", "性质已全部具备；下一步：TestMine，你自己的测试")
	}
	passed, all := e.Count(p)
	return lang.Of("%[1]d of %[2]d hold; next: %[3]v", "%[2]d 条中已具备 %[1]d 条；下一条：%[3]v",
		passed, all, e.MissingName())
}

func test(e exercise.Exercise) error {
	pkg := "./" + filepath.ToSlash(e.Dir())
	fmt.Printf("\ngo test %s\n", pkg)
	_, all := e.Count(e.Progress())
	say("(up to %d questions; it answers at the end, within a minute or two)",
		"（最多 %d 个问题；一两分钟之内，最后一起给出答案）", all)
	hasOwn := e.HasOwn()
	passed, err := runTest(e, hasOwn)
	if err != nil {
		return err
	}
	p := e.Progress()
	isRight := passed && p.Done
	if isRight && hasOwn {
		wellDone(e, pkg)
		return nil
	}
	if isRight {
		fmt.Println(exercise.InWords(e.AllHold(p)))
		say("Write it: TestMine in %s/lock_test.go", "请写 %s/lock_test.go 里的 TestMine", e.Dir())
	}
	p.Done = false // the learner's own test is left; or the package does not even compile, and this is of an earlier one
	return e.Keep(p)
}

// runTest does what go test does, in less time: the server starts while the test is compiled, and
// go vet does not run. A learner's own test that is not written yet is left out: a lock that is right should not end
// with FAIL.
func runTest(e exercise.Exercise, hasOwn bool) (passed bool, err error) {
	program, err := filepath.Abs(filepath.Join("out", filepath.Base(e.Dir())+".test"))
	if err = errors.Join(err, os.MkdirAll("out", 0o755)); err != nil {
		return false, err
	}
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	compiled := make(chan error, 1)
	go func() {
		err := e.Build(program)
		if err != nil {
			giveUp() // no server is needed
		}
		compiled <- err
	}()
	server, err := zkserver.Start(ctx)
	if err == nil {
		defer func() { err = errors.Join(err, server.Stop()) }()
	}
	if wrong := <-compiled; wrong != nil {
		fmt.Println(wrong)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	run := exec.Command(program, "-test.timeout=10m")
	if !hasOwn {
		run.Args = append(run.Args, "-test.skip=^TestMine$")
	}
	run.Dir = e.Dir()
	run.Env = server.Environ()
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	return run.Run() == nil, nil
}

// wellDone prints what a learner reads after the test of an exercise has passed.
func wellDone(e exercise.Exercise, pkg string) {
	_, all := e.Count(e.Progress())
	say("\nWell done: all %d hold. To compare your lock with ours: %s",
		"\n做得好：%d 条全部具备。与我们的锁对比：%s", all, diff(e))
	say("To check it for data races: go test -race %s", "检查有没有数据竞争：go test -race %s", pkg)
	fmt.Println(exercise.InWords(next(e)))
}

// next names the next exercise: the first one after e that is not done, or else the first one
// before e.
func next(e exercise.Exercise) lang.Text {
	at := slices.IndexFunc(exercise.All, func(other exercise.Exercise) bool { return other.Name == e.Name })
	for _, other := range append(slices.Clone(exercise.All[at:]), exercise.All[:at]...) {
		if !other.Progress().Done {
			return lang.Of("Next: %s", "下一个：%s", exercise.Command("exercise", other.Name))
		}
	}
	return lang.Both("That was the last exercise: you have written them all.", "这是最后一个练习：你已经全部写完了。")
}

// diff returns the command that compares the learner's lock with the solution.
func diff(e exercise.Exercise) string {
	var commands []string
	for _, file := range toWrite(e) {
		if _, err := os.Stat(filepath.Join(e.Dir(), file)); err != nil {
			continue // a stair has not made it yet
		}
		commands = append(commands, fmt.Sprintf("diff -u %s %s", filepath.Join(e.Dir(), file), filepath.Join(e.Home, file)))
	}
	return strings.Join(commands, "; ")
}

// ours returns the command that shows our lines for what the learner's lock lacks. On a stair these are the stair's
// diff: our finished lock would also show the stairs after it.
func ours(e exercise.Exercise) string {
	if stair := e.Stair(); stair != "" {
		return "less " + filepath.Join(e.Home, "stairs", stair+".diff")
	}
	return diff(e)
}

// toWrite lists the files that a learner changes. The first is where to begin.
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
		say("%v is done. To compare it with ours: %s", "%v：已完成。与我们的锁对比：%s", e.Title(), diff(e))
		return nil
	}
	if _, err := e.Copy(); err != nil {
		return err
	}
	if !compiles(e) {
		say("%s does not compile now: this hint is for the lock that was tested last\n",
			"%s 现在无法编译：这条提示针对的是上一次测试时的锁\n", e.Dir())
	}
	h, err := e.Next()
	if err != nil {
		return err
	}
	say("%v, %q, hint %d of %d\n\n%s\n", "%v，“%s”，提示 %d，共 %d 条\n\n%s\n", e.Title(), h.Property, h.Number, h.N, h.Text)
	if h.Number < h.N {
		say("For a more direct hint: %s", "更直接的提示：%s", exercise.Command("hint", e.Name))
	} else {
		say("This was the last hint; the next one is the first again. To compare with ours: %s",
			"这是最后一条提示，再往下又是第一条。与我们的锁对比：%s", ours(e))
	}
	return nil
}

func compiles(e exercise.Exercise) bool {
	return exec.Command("go", "build", "./"+filepath.ToSlash(e.Dir())).Run() == nil
}
