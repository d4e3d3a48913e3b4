// Command command is the workshop: it lays a learner's exercises, runs their tests,
// gives hints, and hunts published mistakes. The make targets exercise, watch, hint,
// part, replay, progress, solution, reset and hunt call it, from the root of the
// repository.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"zklock/internal/lang"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/teach/exercise"
)

const usage = "make help lists the workshop's commands, from make exercise to make hunt; they run in the root of the repository"

// A workshop is what all commands share.
type workshop struct {
	in     *bufio.Reader
	out    io.Writer
	server *zkserver.Server // nil until it is needed
	set    []string         // variables for a test, besides those of the environment
}

func main() {
	ctx, stop := process.UntilStopped()
	defer stop()
	w := &workshop{in: bufio.NewReader(os.Stdin), out: os.Stdout}
	err := w.run(ctx, os.Args[1:])
	if w.server != nil {
		err = errors.Join(err, w.server.Stop())
	}
	if err != nil && ctx.Err() == nil { // Ctrl-C is no error
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *workshop) run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "build" {
		return w.build(ctx, args[1], args[2], args[3])
	}
	if len(args) == 0 || len(args) > 2 {
		return errors.New(usage)
	}
	command, argument := args[0], strings.Join(args[1:], "")
	switch command {
	case "progress":
		return w.progress()
	case "hunt":
		return w.hunt(ctx, argument)
	case "part":
		return w.part(ctx, argument, os.Getenv("PART"))
	}
	e, err := exercise.Find(argument)
	if err != nil {
		return err
	}
	if err := w.lay(e); err != nil {
		return err
	}
	switch command {
	case "check":
		return w.check(ctx, e)
	case "watch":
		return w.watch(ctx, e)
	case "hint":
		return w.hint(e)
	case "replay":
		return w.replay(ctx, e)
	case "solution":
		return w.solution(ctx, e)
	case "reset":
		return w.reset(e)
	}
	return errors.New(usage)
}

// lay makes the learner's package, if it is not there.
func (w *workshop) lay(e exercise.Exercise) error {
	laid, err := e.Lay()
	if laid {
		fmt.Fprintf(w.out, "%s: your package is laid in %s\n", e, e.Dir())
	}
	return err
}

// test runs go test on a learner's package, with more flags. It tells whether the test
// passes; that it does not is no error.
func (w *workshop) test(ctx context.Context, dir string, out io.Writer, flags ...string) (passes bool, err error) {
	test := exec.CommandContext(
		ctx,
		"go",
		slices.Concat([]string{"test", "-count=1", inModule(dir)}, flags)...)
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) } // so that it stops its server
	test.WaitDelay = 10 * time.Second
	test.Stdout, test.Stderr = out, out
	test.Env = w.environment()
	err = test.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// environment is that of a test, which uses the workshop's server if there is one.
func (w *workshop) environment() []string {
	all := append(os.Environ(), w.set...)
	if w.server != nil {
		all = append(all, "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(w.server.Servers(), ","))
	}
	return all
}

// build makes a program of the test of a learner's step, which is in this folder: make play
// and make explore start it as a client. It prints which step that is.
func (w *workshop) build(ctx context.Context, step, folder, program string) error {
	exercise.Folder = folder
	e, err := exercise.Find(step)
	if err != nil {
		return err
	}
	if !e.IsStep() {
		return errors.New("all steps are done: choose the one to play with")
	}
	if _, err := e.Lay(); err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, inModule(e.Dir())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s", text)
	}
	fmt.Fprintln(w.out, e.Name)
	return nil
}

// inModule is a folder as the go command wants to have it named.
func inModule(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return "./" + filepath.ToSlash(dir)
}

// serve starts a server for several tests.
func (w *workshop) serve(ctx context.Context) (err error) {
	if w.server == nil {
		w.server, err = zkserver.Start(ctx)
	}
	return err
}

// check runs the test of the learner's package.
func (w *workshop) check(ctx context.Context, e exercise.Exercise) error {
	fmt.Fprintf(w.out, "go test %s\n", inModule(e.Dir()))
	passes, err := w.test(ctx, e.Dir(), w.out)
	if err != nil || !passes {
		return err
	}
	if !e.Done() {
		return nil
	}
	fmt.Fprintf(w.out, "All %d hold. The step's own lock beside yours: make solution STEP=%s\n", len(e.Goals), e.Name)
	for _, what := range e.NotTested() {
		fmt.Fprintf(w.out, "Not tested: %s.\n", what)
	}
	if after := e.After(); len(after) > 0 {
		fmt.Fprintf(w.out, "The next: make exercise STEP=%s\n", after[0].Name)
	}
	return nil
}

// watch checks at once, and again on every save. When all properties hold, it goes on
// with the next exercise.
func (w *workshop) watch(ctx context.Context, e exercise.Exercise) error {
	if err := w.serve(ctx); err != nil {
		return err
	}
	for {
		seen := exercise.LastSaved(e.Dir())
		fmt.Fprintf(w.out, "\n%s\n", time.Now().Format("── 15:04:05 ──"))
		if err := w.check(ctx, e); err != nil {
			return err
		}
		if e.Done() {
			after := e.After()
			if len(after) == 0 {
				return nil
			}
			e = after[0]
			if err := w.lay(e); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w.out, "\nwaiting for you to save a file in %s; Ctrl-C ends\n", e.Dir())
		for exercise.LastSaved(e.Dir()) == seen {
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// hint gives the next hint for the property that was missing when the learner's version
// was last checked.
func (w *workshop) hint(e exercise.Exercise) error {
	if e.Done() {
		fmt.Fprintf(w.out, "All %d properties hold: make solution STEP=%s\n", len(e.Goals), e.Name)
		return nil
	}
	r := exercise.Recorded(e.Dir())
	if len(r.Answers) > 0 && !r.Fails() {
		fmt.Fprintf(w.out, "%s: all properties that were asked hold. This asks for the rest, and tells what else is wrong: make exercise STEP=%s\n", e, e.Name)
		return nil
	}
	now, err := hints(e, r)
	if err != nil {
		return err
	}
	given := r.Hints[now.property]
	fmt.Fprintf(w.out, "%s, %q, hint %d of %d\n\n", e, now.property, given+1, len(now.hints))
	fmt.Fprintf(w.out, "%s\n\n", now.hints[given])
	if given+1 < len(now.hints) {
		fmt.Fprintf(w.out, "More direct: make hint STEP=%s\n", e.Name)
	} else {
		fmt.Fprintf(w.out, "This was the last; the next is the first again. The step itself: make solution STEP=%s FORCE=1\n", e.Name)
	}
	if r.Hints == nil {
		r.Hints = map[string]int{}
	}
	r.Hints[now.property] = (given + 1) % len(now.hints)
	return r.Keep(e.Dir())
}

// A section of hints.md holds the hints for one property, each more direct than the last.
type section struct {
	property string
	hints    []string
}

// notWoken is the section for a waiter whose turn has come, and whom nobody wakes. Many a
// story ends so, and then its property's own hints do not fit.
var notWoken = lang.Text{EN: "a waiter is not woken", ZH: "等待者没有被唤醒"}

// hints returns the hints for the property that is missing: this exercise's, or those
// of a step before it, or else why the property matters. Before the first check they are
// the exercise's first.
func hints(e exercise.Exercise, r exercise.Record) (section, error) {
	all := sections(e)
	if len(all) == 0 {
		return section{}, fmt.Errorf("%s: no hints found", e.Home)
	}
	missing := e.Missing(r)
	if len(r.Answers) == 0 || missing == nil {
		return all[0], nil
	}
	before := len(exercise.All) - len(e.After()) - 1
	for _, earlier := range slices.Backward(exercise.All[:before]) {
		all = append(all, sections(earlier)...)
	}
	find := func(name lang.Text) int {
		return slices.IndexFunc(all, func(s section) bool { return s.property == name.EN || s.property == name.ZH })
	}
	i := -1
	if r.NotWoken(missing) {
		i = find(notWoken)
	}
	if i < 0 {
		i = find(missing.Name)
	}
	if i < 0 {
		hint := missing.Question.EN
		if missing.Why.EN != "" { // the check has asked the question
			hint = fmt.Sprintf("Why it matters: %s.", missing.Why)
		}
		return section{missing.Name.EN, []string{hint}}, nil
	}
	return all[i], nil
}

var numbered = regexp.MustCompile(`(?m)^\d+\. `)

// sections reads "## property" and "1. hint"; what is indented below a hint
// belongs to it.
func sections(e exercise.Exercise) (all []section) {
	file := "hints.md"
	if lang.Chinese() {
		file = "hints.zh.md"
	}
	text, _ := os.ReadFile(filepath.Join(e.Home, "exercise", file))
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		property, list, _ := strings.Cut(part, "\n")
		s := section{property: property}
		for _, hint := range numbered.Split(list, -1)[1:] {
			s.hints = append(s.hints, strings.TrimSpace(strings.ReplaceAll(hint, "\n   ", "\n")))
		}
		all = append(all, s)
	}
	return all
}

// progress shows how far the last check of each exercise came.
func (w *workshop) progress() error {
	const width = 20
	for _, e := range exercise.All {
		changed, err := e.Changed()
		if err != nil {
			return err
		}
		r := exercise.Recorded(e.Dir())
		held := e.Held(r)
		var state string
		switch {
		case !changed:
			held, state = 0, "not begun"
		case len(r.Answers) == 0:
			state = "not checked yet"
		case e.Saved():
			state = "saved since the last check"
		case e.Done():
			state = "done"
		default:
			state = fmt.Sprintf("next: %v", e.Missing(r).Name)
		}
		filled := width * held / len(e.Goals)
		fmt.Fprintf(w.out, "%-9s  %s%s  %5s  %s\n", e, strings.Repeat("█", filled), strings.Repeat("░", width-filled),
			fmt.Sprint(held, "/", len(e.Goals)), state)
	}
	return nil
}

// reset brings the starter back. A version of the learner's own is put aside
// first, and only after a yes.
func (w *workshop) reset(e exercise.Exercise) error {
	changed, err := e.Changed()
	if err != nil {
		return err
	}
	if !changed {
		fmt.Fprintf(w.out, "%s is the starter already\n", e.Dir())
		return nil
	}
	old := filepath.Join("out", "exercise", "old")
	aside := filepath.Join(old, time.Now().Format("20060102-150405-")+e.Name)
	fmt.Fprintf(w.out, "Replace your version of %s by the starter? It is put aside in %s. [y/N] ", e, aside)
	if line, _ := w.in.ReadString('\n'); !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		fmt.Fprintln(w.out, "nothing was changed")
		return nil
	}
	if err := os.MkdirAll(old, 0o755); err != nil {
		return err
	}
	if err := os.Rename(e.Dir(), aside); err != nil {
		return err
	}
	if _, err := e.Lay(); err != nil {
		return err
	}
	fmt.Fprintln(w.out, "the starter is back")
	return nil
}

// replay writes a page of what the learner's lock does in the property that is missing,
// and the step's own beside it.
func (w *workshop) replay(ctx context.Context, e exercise.Exercise) error {
	if !e.IsStep() {
		return fmt.Errorf("STEP=%s: there is a replay of the steps only", e.Name)
	}
	r := exercise.Recorded(e.Dir())
	missing := e.Missing(r)
	if len(r.Answers) == 0 || missing == nil {
		return fmt.Errorf("STEP=%s: nothing has failed yet: make exercise STEP=%s", e.Name, e.Name)
	}
	page, err := filepath.Abs(filepath.Join("out", "exercise", e.Name+".html"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		return err
	}
	w.set = []string{exercise.PageVariable + "=" + page}
	if _, err := w.test(ctx, e.Dir(), w.out, "-run", exercise.Run(missing.Name.EN)); err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%s, %q, yours beside the step's own: file://%s\n", e, missing.Name, page)
	return nil
}

// solution shows the step's own lock beside the learner's, once that one
// passes, or with FORCE=1.
func (w *workshop) solution(ctx context.Context, e exercise.Exercise) error {
	if os.Getenv("FORCE") != "1" && !e.Done() {
		if err := w.check(ctx, e); err != nil {
			return err
		}
		if !e.Done() {
			fmt.Fprintf(
				w.out,
				"\nThe solution is shown when all hold, or at once with: make solution STEP=%s FORCE=1\n",
				e.Name,
			)
			return nil
		}
	}
	own, err := e.Solution()
	if err != nil {
		return err
	}
	yours, err := exercise.Yours(e.Dir())
	if err != nil {
		return err
	}
	maps.DeleteFunc(yours, func(name string, _ []byte) bool { return own[name] == nil }) // what is given
	fmt.Fprintf(w.out, "- yours, %s\n+ the step's own, %s\n", e.Dir(), e.Home)
	return w.diff(ctx, yours, own)
}

// diff prints how files differ, in colours on a terminal.
func (w *workshop) diff(ctx context.Context, before, after exercise.Files) error {
	dir, err := os.MkdirTemp("", "zklock-exercise-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = errors.Join(before.Write(filepath.Join(dir, "before")), after.Write(filepath.Join(dir, "after")))
	if err != nil {
		return err
	}
	diff := exec.CommandContext(ctx, "git", "--no-pager", "diff", "--no-index", "before", "after")
	diff.Dir, diff.Stdout, diff.Stderr = dir, w.out, os.Stderr
	err = diff.Run()
	if err != nil && diff.ProcessState.ExitCode() == 1 { // they differ
		return nil
	}
	return err
}
