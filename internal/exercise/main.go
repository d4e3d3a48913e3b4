// Command exercise is the workshop: it holds a learner's version of a step's
// lock against the step's properties, gives hints, and hunts published
// mistakes. The make targets exercise, hint, watch, progress, reset, solution
// and hunt call it, from the root of the repository.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage, from the root of the repository:
  go run ./internal/exercise check [04]    hold your lock against the properties
  go run ./internal/exercise watch [04]    the same on every save
  go run ./internal/exercise hint [04]     the next hint
  go run ./internal/exercise part 05       the parts of a step; PART=2: what one changes
  go run ./internal/exercise replay 04     a page of what your lock did in the property that failed
  go run ./internal/exercise progress      all of them as bars
  go run ./internal/exercise solution 04   your lock beside the step's
  go run ./internal/exercise reset 04      begin again
  go run ./internal/exercise hunt [8]      find the property that a published lock lacks`

// errUnfinished is a failure that has been told already.
var errUnfinished = errors.New("unfinished")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], bufio.NewReader(os.Stdin), os.Stdout)
	switch {
	case ctx.Err() != nil:
		os.Exit(130) // as a shell has it for Ctrl-C
	case errors.Is(err, errUnfinished):
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in *bufio.Reader, out io.Writer) error {
	command, argument := "", ""
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 {
		argument = args[1]
	}
	switch {
	case len(args) > 2 || command == "":
		return errors.New(usage)
	case command == "progress":
		return progress(out)
	case command == "hunt":
		return hunt(ctx, argument, in, out)
	}
	e, err := find(argument)
	if err != nil {
		return err
	}
	switch command {
	case "check":
		return checkOnce(ctx, e, out)
	case "watch":
		return watch(ctx, e, out)
	case "hint":
		return hint(e, out)
	case "part":
		return showPart(ctx, e, os.Getenv("PART"), out)
	case "replay":
		return replay(ctx, e, out)
	case "solution":
		return solution(ctx, e, out)
	case "reset":
		return reset(e, in, out)
	}
	return errors.New(usage)
}

// An exercise is something for the learner to write.
type exercise struct {
	name string // "04"
	home string // step04_predecessor_watch: where the solution is
}

func (e exercise) String() string {
	if e.name < "a" {
		return "step " + e.name
	}
	return e.name
}

func (e exercise) dir() string             { return filepath.Join(e.home, "exercise") }
func (e exercise) path(name string) string { return filepath.Join(e.dir(), name) }

// find returns an exercise by its name: "4" and "04" are the same. Without a name it
// is the first that is not done.
func find(asked string) (exercise, error) {
	name, known := asked, []string{}
	if asked == "" {
		for _, e := range exercises() {
			if !e.done() {
				return e, nil
			}
		}
	}
	if n, err := strconv.Atoi(asked); err == nil {
		name = fmt.Sprintf("%02d", n)
	}
	for _, e := range exercises() {
		if e.name == name {
			return e, nil
		}
		known = append(known, e.name)
	}
	return exercise{}, fmt.Errorf("STEP=%s: there is no such exercise. Found here, which has to be the root of the repository: %s", asked, strings.Join(known, ", "))
}

// exercises are the steps, and what comes after them.
func exercises() (all []exercise) {
	dirs, _ := filepath.Glob("step[0-9][0-9]_*")
	for _, dir := range dirs {
		all = append(all, exercise{dir[len("step"):len("step04")], dir})
	}
	for _, name := range []string{"semaphore", "multilock", "election"} {
		home := filepath.Join("docs", "graduation", name)
		if _, err := os.Stat(home); err == nil {
			all = append(all, exercise{name, home})
		}
	}
	return all
}

// done tells whether the last check found that all properties hold, and nothing was
// saved since.
func (e exercise) done() bool {
	r := e.record()
	return r.Of > 0 && r.Missing == "" && r.Version == e.version()
}

// watch checks at once, and again on every save. When all properties hold, it goes on
// with the next exercise.
func watch(ctx context.Context, e exercise, out io.Writer) error {
	j, err := newJudge(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	for {
		seen := e.saved()
		fmt.Fprintf(out, "\n%s\n", time.Now().Format("── 15:04:05 ──"))
		err := j.check(ctx, e, out)
		if err == nil {
			next, ok := e.next()
			if !ok {
				return nil
			}
			e = next
			continue
		}
		if !errors.Is(err, errUnfinished) {
			return err
		}
		fmt.Fprintf(out, "\nwaiting for you to save a file in %s; Ctrl-C ends\n", e.dir())
		for e.saved() == seen {
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// saved changes when a file of the exercise is saved.
func (e exercise) saved() (times string) {
	files, _ := filepath.Glob(e.path("*.go"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			times += fmt.Sprintln(file, info.ModTime(), info.Size())
		}
	}
	return times
}

// hint gives the next hint for the property that was the first to fail when
// the learner's version was last checked.
func hint(e exercise, out io.Writer) error {
	r := e.record()
	if e.done() {
		fmt.Fprintf(out, "All %d properties hold: make solution STEP=%s\n", r.Of, e.name)
		return nil
	}
	now, err := e.section(r.Missing)
	if err != nil {
		return err
	}
	given := r.Hints[now.property]
	fmt.Fprintf(out, "%s, %q, hint %d of %d\n\n%s\n\n", e, now.property, given+1, len(now.hints), now.hints[given])
	if given+1 < len(now.hints) {
		fmt.Fprintf(out, "More direct: make hint STEP=%s\n", e.name)
	} else {
		fmt.Fprintf(out, "This was the last; the next is the first again. The step itself: make solution STEP=%s FORCE=1\n", e.name)
	}
	if r.Hints == nil {
		r.Hints = map[string]int{}
	}
	r.Hints[now.property] = (given + 1) % len(now.hints)
	return e.keep(r)
}

// section returns the hints for a property: this step's, or those of a step
// before it. Without any, and before the first check, it is the step's first.
func (e exercise) section(property string) (section, error) {
	own, err := readHints(e.path("hints.md"))
	if err != nil {
		return section{}, err
	}
	for _, earlier := range slices.Backward(exercises()) {
		if earlier.name > e.name {
			continue
		}
		sections, err := readHints(earlier.path("hints.md"))
		if err != nil {
			return section{}, err
		}
		for _, s := range sections {
			if s.property == property {
				return s, nil
			}
		}
	}
	return own[0], nil
}

// A section holds the hints for one property, each more direct than the last.
type section struct {
	property string
	hints    []string
}

// readHints reads "## property" and "1. hint"; what is indented below a hint
// belongs to it.
func readHints(file string) (sections []section, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if property, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, section{property: property})
			continue
		}
		if len(sections) == 0 {
			continue
		}
		s := &sections[len(sections)-1]
		number, hint, _ := strings.Cut(line, ". ")
		if _, err := strconv.Atoi(number); err == nil {
			s.hints = append(s.hints, hint)
		} else if n := len(s.hints); n > 0 {
			s.hints[n-1] += "\n" + strings.TrimPrefix(line, "   ")
		}
	}
	for _, s := range sections {
		for i := range s.hints {
			s.hints[i] = strings.TrimSpace(s.hints[i])
		}
	}
	if len(sections) == 0 || len(sections[0].hints) == 0 {
		return nil, fmt.Errorf("%s: no hints found", file)
	}
	return sections, nil
}

// progress shows how far the last check of each exercise came.
func progress(out io.Writer) error {
	const width = 20
	for _, e := range exercises() {
		r, state := e.record(), ""
		switch {
		case !e.changed():
			r.Held, state = 0, "not begun"
		case r.Of == 0:
			state = "not checked yet"
		case r.Version != e.version():
			state = "saved since the last check"
		case r.Missing == "":
			state = "done"
		default:
			state = "next: " + r.Missing
		}
		filled := width * r.Held / max(r.Of, 1)
		fmt.Fprintf(out, "%-9s  %s%s  %5s  %s\n", e,
			strings.Repeat("█", filled), strings.Repeat("░", width-filled), fmt.Sprintf("%d/%s", r.Held, cmp.Or(strings.TrimPrefix(strconv.Itoa(r.Of), "0"), "?")), state)
	}
	return nil
}

// reset brings the starter back. A version of the learner's own is put aside
// first, and only after a yes.
func reset(e exercise, in *bufio.Reader, out io.Writer) error {
	if !e.changed() {
		fmt.Fprintf(out, "%s is the starter already\n", e.dir())
		return os.RemoveAll(e.recordFile())
	}
	aside := filepath.Join(outDir, "old", time.Now().Format("20060102-150405-")+e.name)
	fmt.Fprintf(out, "Replace your version of %s by the starter? It is put aside in %s. [y/N] ", e, aside)
	if line, _ := in.ReadString('\n'); !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		fmt.Fprintln(out, "nothing was changed")
		return nil
	}
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return err
	}
	starter := e.starter()
	for _, name := range e.files() {
		yours, err := os.ReadFile(e.path(name))
		if err == nil {
			err = os.WriteFile(filepath.Join(aside, name), yours, 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if text, known := starter[name]; known {
			err = os.WriteFile(e.path(name), text, 0o644)
		} else {
			err = os.Remove(e.path(name))
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "the starter is back")
	return os.RemoveAll(e.recordFile())
}

// replay writes a page of what the learner's lock does in the property that was the
// first to fail, and the step's own beside it.
func replay(ctx context.Context, e exercise, out io.Writer) error {
	property := e.record().Missing
	if e.home == "docs/graduation/"+e.name {
		return fmt.Errorf("STEP=%s: there is a replay of the steps only", e.name)
	}
	if property == "" {
		return fmt.Errorf("STEP=%s: nothing has failed yet: make exercise STEP=%s", e.name, e.name)
	}
	j, err := newJudge(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	program, err := j.build(ctx, startersBut(e))
	if err != nil {
		return err
	}
	file, err := filepath.Abs(filepath.Join(outDir, e.name+".html"))
	if err == nil {
		err = os.MkdirAll(outDir, 0o755)
	}
	if err == nil {
		_, err = j.ask(ctx, program, e, []string{"replay", property, file}, nil)
	}
	if err == nil {
		fmt.Fprintf(out, "%s, %q, yours beside the step's own: file://%s\n", e, property, file)
	}
	return err
}

// solution shows the step's own lock beside the learner's, once that one
// passes, or with FORCE=1.
func solution(ctx context.Context, e exercise, out io.Writer) error {
	if os.Getenv("FORCE") != "1" {
		if !e.done() {
			if err := checkOnce(ctx, e, out); errors.Is(err, errUnfinished) {
				fmt.Fprintf(out, "\nThe solution is shown when all hold, or at once with: make solution STEP=%s FORCE=1\n", e.name)
				return err
			} else if err != nil {
				return err
			}
		}
	}
	scratch, err := os.MkdirTemp("", "zklock-solution-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, name := range e.solved() {
		both := []string{e.path(name), filepath.Join(e.home, name)}
		fmt.Fprintf(out, "- yours, %s\n+ the step's own, %s\n", both[0], both[1])
		for i, path := range both {
			text, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // the learner may have put all into one file
				return err
			}
			both[i] = filepath.Join(scratch, strconv.Itoa(i))
			if err := os.WriteFile(both[i], withoutHead(text), 0o644); err != nil {
				return err
			}
		}
		diff := exec.CommandContext(ctx, "diff", "-u", both[0], both[1])
		text, err := diff.Output()
		if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
			return fmt.Errorf("%v: %w", diff.Args, err)
		}
		if i := bytes.Index(text, []byte("@@")); i >= 0 { // without diff's own head
			text = text[i:]
		}
		out.Write(text)
	}
	return nil
}

// withoutHead leaves out what a file is called and what it is for.
func withoutHead(text []byte) []byte {
	return regexp.MustCompile(`(?s)^.*?\npackage \w+\n`).ReplaceAll(append([]byte("\n"), text...), nil)
}
