// Command exercise is the workshop: it holds a learner's version of a step's
// lock against the step's properties, gives hints, and hunts published
// mistakes. The make targets exercise, watch, hint, part, replay, progress,
// solution, reset and hunt call it, from the root of the repository.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

	"zklock/internal/words"
	"zklock/internal/zkserver"
)

const usage = "make help lists the workshop's commands, from make exercise to make hunt; they run in the root of the repository"

// errUnfinished is a failure that has been told already.
var errUnfinished = errors.New("unfinished")

// A workshop is what all commands share.
type workshop struct {
	in       *bufio.Reader
	out      io.Writer
	scratch  string           // a folder that goes with the workshop
	patience time.Duration    // for one property: those that hold take a second or two
	server   *zkserver.Server // nil until it is needed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	scratch, err := os.MkdirTemp("", "zklock-exercise-")
	w := &workshop{in: bufio.NewReader(os.Stdin), out: os.Stdout, scratch: scratch, patience: 8 * time.Second}
	if err == nil {
		err = w.run(ctx, os.Args[1:])
		err = errors.Join(err, w.close())
	}
	switch {
	case ctx.Err() != nil:
		os.Exit(130) // as a shell has it for Ctrl-C
	case errors.Is(err, errUnfinished):
		os.Exit(3)
	case err != nil:
		words.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *workshop) run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "build" {
		return w.keepBuilt(ctx, args[1], args[2], args[3])
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
	}
	e, err := find(argument)
	if err != nil {
		return err
	}
	switch command {
	case "check":
		return w.check(ctx, e, e.yours())
	case "watch":
		return w.watch(ctx, e)
	case "hint":
		return w.hint(e)
	case "part":
		return w.part(ctx, e, os.Getenv("PART"))
	case "replay":
		return w.replay(ctx, e, e.yours())
	case "solution":
		return w.solution(ctx, e)
	case "reset":
		return w.reset(e)
	}
	return errors.New(usage)
}

// serves makes a command use the workshop's server, which the first one starts.
func (w *workshop) serves(ctx context.Context, cmd *exec.Cmd) (err error) {
	if w.server == nil {
		if w.server, err = zkserver.Start(ctx); err != nil {
			return err
		}
	}
	cmd.Env = append(os.Environ(), "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(w.server.Servers(), ","))
	return nil
}

// close stops the server and removes what is in the scratch folder.
func (w *workshop) close() (err error) {
	if w.server != nil {
		err = w.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(w.scratch))
}

// hint gives the next hint for the property that was the first to fail when
// the learner's version was last checked.
func (w *workshop) hint(e exercise) error {
	r := e.record()
	if e.done() {
		words.Fprintf(w.out, "All %d properties hold: make solution STEP=%s\n", r.Of, e.name)
		return nil
	}
	now, err := e.section(r.Missing)
	if err != nil {
		return err
	}
	given := r.Hints[now.property]
	words.Fprintf(w.out, "%s, %q, hint %d of %d\n\n", e, now.property, given+1, len(now.hints))
	fmt.Fprintf(w.out, "%s\n\n", now.hints[given])
	if given+1 < len(now.hints) {
		words.Fprintf(w.out, "More direct: make hint STEP=%s\n", e.name)
	} else {
		words.Fprintf(w.out, "This was the last; the next is the first again. The step itself: make solution STEP=%s FORCE=1\n", e.name)
	}
	if r.Hints == nil {
		r.Hints = map[string]int{}
	}
	r.Hints[now.property] = (given + 1) % len(now.hints)
	return e.keep(r)
}

// A section of hints.md holds the hints for one property, each more direct than the last.
type section struct {
	property string
	hints    []string
}

// section returns the hints for a property: this exercise's, or those of a step
// before it. Without any, and before the first check, it is the exercise's first.
func (e exercise) section(property string) (section, error) {
	all := e.sections()
	if len(all) == 0 {
		return section{}, fmt.Errorf("%s: no hints found", e.dir())
	}
	for _, earlier := range slices.Backward(exercises()) {
		if earlier.name < e.name {
			all = append(all, earlier.sections()...)
		}
	}
	i := slices.IndexFunc(all, func(s section) bool { return s.property == words.In(property) })
	return all[max(0, i)], nil
}

var numbered = regexp.MustCompile(`(?m)^\d+\. `)

// sections reads "## property" and "1. hint"; what is indented below a hint
// belongs to it.
func (e exercise) sections() (all []section) {
	file := "hints.md"
	if words.Chinese() {
		file = "hints.zh.md"
	}
	text, _ := os.ReadFile(e.path(file))
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
	for _, e := range exercises() {
		r, state, of := e.record(), "", "?"
		switch {
		case !e.changed():
			r.Held, state = 0, "not begun"
		case r.Of == 0:
			state = "not checked yet"
		case r.Version != e.yours().version():
			state = "saved since the last check"
		case r.Missing == "":
			state = "done"
		default:
			state = "next: " + r.Missing
		}
		if r.Of > 0 {
			of = strconv.Itoa(r.Of)
		}
		filled := width * r.Held / max(r.Of, 1)
		words.Fprintf(w.out, "%-9s  %s%s  %5s  %s\n", e, strings.Repeat("█", filled), strings.Repeat("░", width-filled), fmt.Sprint(r.Held, "/", of), state)
	}
	return nil
}

// reset brings the starter back. A version of the learner's own is put aside
// first, and only after a yes.
func (w *workshop) reset(e exercise) error {
	if !e.changed() {
		words.Fprintf(w.out, "%s is the starter already\n", e.dir())
		return os.RemoveAll(e.recordFile())
	}
	aside := filepath.Join(outDir, "old", time.Now().Format("20060102-150405-")+e.name)
	words.Fprintf(w.out, "Replace your version of %s by the starter? It is put aside in %s. [y/N] ", e, aside)
	if line, _ := w.in.ReadString('\n'); !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		words.Fprintln(w.out, "nothing was changed")
		return nil
	}
	yours := e.yours()
	if err := yours.write(aside); err != nil {
		return err
	}
	for name := range yours {
		if err := os.Remove(e.path(name)); err != nil {
			return err
		}
	}
	if err := e.starter().write(e.dir()); err != nil {
		return err
	}
	words.Fprintln(w.out, "the starter is back")
	return os.RemoveAll(e.recordFile())
}

// replay writes a page of what the learner's lock does in the property that was the
// first to fail, and the step's own beside it.
func (w *workshop) replay(ctx context.Context, e exercise, yours files) error {
	property := e.record().Missing
	if !e.isStep() {
		return fmt.Errorf("STEP=%s: there is a replay of the steps only", e.name)
	}
	if property == "" {
		return fmt.Errorf("STEP=%s: nothing has failed yet: make exercise STEP=%s", e.name, e.name)
	}
	page, err := filepath.Abs(filepath.Join(outDir, e.name+".html"))
	if err != nil {
		return err
	}
	if err := w.askOf(ctx, e, yours, nil, "-only", property, "-replay", page); err != nil {
		return err
	}
	words.Fprintf(w.out, "%s, %q, yours beside the step's own: file://%s\n", e, property, page)
	return nil
}

// solution shows the step's own lock beside the learner's, once that one
// passes, or with FORCE=1.
func (w *workshop) solution(ctx context.Context, e exercise) error {
	yours, own := e.yours(), e.own()
	if os.Getenv("FORCE") != "1" && !e.done() {
		err := w.check(ctx, e, yours)
		if errors.Is(err, errUnfinished) {
			words.Fprintf(w.out, "\nThe solution is shown when all hold, or at once with: make solution STEP=%s FORCE=1\n", e.name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		words.Fprintf(w.out, "- yours, %s\n+ the step's own, %s\n", e.path(name), filepath.Join(e.home, name))
		both := files{"yours": withoutHead(yours[name]), "own": withoutHead(own[name])} // the learner may have put all into one file
		if err := both.write(w.scratch); err != nil {
			return err
		}
		diff := exec.CommandContext(ctx, "diff", "-u", "yours", "own")
		diff.Dir = w.scratch
		text, err := diff.Output()
		if err != nil && diff.ProcessState.ExitCode() != 1 { // 1: they differ
			return fmt.Errorf("%v: %w", diff.Args, err)
		}
		w.out.Write(text[max(0, bytes.Index(text, []byte("@@"))):]) // without diff's own head
	}
	return nil
}

// withoutHead leaves out what a file is called and what it is for.
func withoutHead(text []byte) []byte {
	return regexp.MustCompile(`(?s)^.*?\npackage \w+\n`).ReplaceAll(append([]byte("\n"), text...), nil)
}
