package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zklock/internal/words"
)

// check prints what the learner's version can do, and keeps it on record. It
// returns errUnfinished unless all properties hold.
func (w *workshop) check(ctx context.Context, e exercise, yours files) error {
	words.Fprintf(w.out, "%s: yours is in %s\n", e, e.path(strings.Join(slices.Sorted(maps.Keys(yours)), ", ")))
	r := e.record()
	r.Version = yours.version()
	program, err := w.build(ctx, map[exercise]files{e: yours})
	if err == nil {
		err = w.report(ctx, e, program, &r)
	}
	if told := complaint(""); errors.As(err, &told) { // not all was asked
		words.Fprintln(w.out, told)
		return errUnfinished
	}
	if err == nil || errors.Is(err, errUnfinished) {
		err = errors.Join(err, e.keep(r))
	}
	return err
}

// report prints the judge's answers. In a step with parts, the property of the part
// that the learner is in is asked first: r says which, and then what was found.
func (w *workshop) report(ctx context.Context, e exercise, program string, r *record) error {
	parts, first := e.parts(), []string(nil)
	in := parts.bringing(r.Missing)
	if r.Of == 0 {
		in = min(1, len(parts))
	}
	if in > 0 {
		words.Fprintf(w.out, "You are in %s. Its property comes first.\n", parts.name(in))
		first = []string{"-first", parts[in-1].property}
	}
	r.Held, r.Of, r.Missing = 0, 0, ""
	var missing []answer
	printed, err := w.ask(ctx, program, e, func(a answer) {
		words.Fprintf(w.out, "  %s %s: %s\n", a.Verdict, a.Property, a.Evidence)
		if a.Verdict == "?" {
			words.Fprintln(w.out, "      ? means no answer: a call has hung, or took longer than the check waits")
		}
		r.Of++
		if a.Verdict == "✓" {
			r.Held++
		} else {
			missing = append(missing, a)
		}
	}, first...)
	if err != nil {
		return err
	}
	if printed != "" {
		words.Fprintln(w.out, "Your lock printed:")
		fmt.Fprintln(w.out, printed)
	}
	if len(missing) > 0 {
		// What no part brings held in part 0, and what an earlier part brings held then.
		next := slices.MinFunc(missing, func(a, b answer) int { return cmp.Compare(parts.bringing(a.Property), parts.bringing(b.Property)) })
		r.Missing = next.Property
		goOn, at := words.Sprintf("%q", next.Property), parts.bringing(next.Property)
		if at > 0 {
			goOn = parts.name(at)
		}
		if at > in && in > 0 {
			goOn = words.In(goOn) + words.Sprintf(". Part %d holds", in)
		}
		words.Fprintf(w.out, "%d of %d hold. Go on with %s.\nAsk yourself: %s\nMore help: make hint STEP=%s\n", r.Held, r.Of, goOn, next.Hint, e.name)
		return errUnfinished
	}
	words.Fprintf(w.out, "All %d hold. The step's own lock beside yours: make solution STEP=%s\n", r.Of, e.name)
	if after := e.after(); len(after) > 0 {
		words.Fprintf(w.out, "The next: make exercise STEP=%s\n", after[0].name)
	}
	return nil
}

// after lists the exercises after this one.
func (e exercise) after() []exercise {
	all := exercises()
	return all[slices.Index(all, e)+1:]
}

// watch checks at once, and again on every save. When all properties hold, it goes on
// with the next exercise.
func (w *workshop) watch(ctx context.Context, e exercise) error {
	for {
		seen := e.saved()
		fmt.Fprintf(w.out, "\n%s\n", time.Now().Format("── 15:04:05 ──"))
		err := w.check(ctx, e, e.yours())
		after := e.after()
		switch {
		case err == nil && len(after) > 0:
			e = after[0]
			continue
		case !errors.Is(err, errUnfinished):
			return err
		}
		words.Fprintf(w.out, "\nwaiting for you to save a file in %s; Ctrl-C ends\n", e.dir())
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
	paths, _ := filepath.Glob(e.path("*.go"))
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			times += fmt.Sprintln(path, info.ModTime(), info.Size())
		}
	}
	return times
}

// A complaint is about the learner's code: it does not compile, or it panics.
type complaint string

func (c complaint) Error() string { return string(c) }

// overlay holds versions of some exercises, and the starters of all others, against
// what is on the disk, by its paths; nil stands for no file. So a version of another
// exercise that is half written does not stand in the way.
func overlay(versions map[exercise]files) files {
	all := files{}
	for _, e := range exercises() {
		version, ok := versions[e]
		if !ok {
			version = e.starter()
		}
		for name := range e.yours() {
			all[e.path(name)] = nil
		}
		for name, text := range version {
			all[e.path(name)] = text
		}
	}
	return all
}

// build compiles the judge with these versions of some exercises.
func (w *workshop) build(ctx context.Context, versions map[exercise]files) (program string, err error) {
	replace, texts := map[string]string{}, files{}
	for path, text := range overlay(versions) {
		from, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[from] = ""
		if text != nil {
			name := strings.ReplaceAll(path, "/", "-")
			replace[from], texts[name] = filepath.Join(w.scratch, name), text
		}
	}
	if texts["overlay.json"], err = json.Marshal(map[string]any{"Replace": replace}); err != nil {
		return "", err
	}
	if err := texts.write(w.scratch); err != nil {
		return "", err
	}
	program = filepath.Join(w.scratch, "judge")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", filepath.Join(w.scratch, "overlay.json"), "-o", program, "./internal/exercise/judge")
	said, err := build.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		words := string(said)
		for path, text := range replace { // where the learner has it
			if text != "" {
				words = strings.ReplaceAll(words, text, path)
			}
		}
		here, _ := filepath.Abs(".")
		return "", complaint("It does not compile:\n" + compilerWords(strings.ReplaceAll(words, here+"/", "")))
	}
	return program, err
}

// keepBuilt builds the judge with the learner's version of a step, which is in a folder
// laid out as the repository is, as a program that make play can use, and prints which
// step that is.
func (w *workshop) keepBuilt(ctx context.Context, asked, root, file string) error {
	e, err := find(asked)
	if err != nil {
		return err
	}
	if !e.isStep() {
		return errors.New("all steps are done: choose the one to play with")
	}
	program, err := w.build(ctx, map[exercise]files{e: e.yoursIn(root)})
	if err != nil {
		return err
	}
	fmt.Fprintln(w.out, e.name)
	return os.Rename(program, file)
}

// compilerWords leaves out the names of packages, which stand above the errors.
func compilerWords(text string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "# ") })
	if strings.Contains(text, "internal/exercise/judge/") {
		lines = append(lines, "The check calls what stands there: keep the exported names.")
	}
	return strings.Join(lines, "\n")
}

// An answer is what the judge says of one property.
type answer struct{ Verdict, Property, Evidence, Hint string }

// complete is the judge's exit code when it has come to its end.
const complete = 7

// ask runs the judge, whose flags say what to ask, and passes on its answers. It
// returns what the lock has printed.
func (w *workshop) ask(ctx context.Context, program string, e exercise, say func(answer), flags ...string) (printed string, err error) {
	cmd := exec.CommandContext(ctx, program, append(flags, "-patience", w.patience.String(), e.name)...)
	if err := w.serves(ctx, cmd); err != nil {
		return "", err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	var a answer
	for answers := json.NewDecoder(stdout); answers.Decode(&a) == nil; {
		say(a)
	}
	_ = cmd.Wait()
	switch code := cmd.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case code == 0:
		return "", complaint("The check has ended before its last question. Does your lock end the program?")
	case code != complete:
		return "", complaint(panicWords(stderr.String(), e))
	}
	lines := strings.SplitAfterN(stderr.String(), "\n", 21)
	if len(lines) > 20 {
		lines[20] = "…"
	}
	return strings.TrimSpace(strings.Join(lines, "")), nil
}

// askOf builds the judge with one version, and asks that.
func (w *workshop) askOf(ctx context.Context, e exercise, version files, say func(answer), flags ...string) error {
	program, err := w.build(ctx, map[exercise]files{e: version})
	if err == nil {
		_, err = w.ask(ctx, program, e, say, flags...)
	}
	return err
}

// panicWords keeps of a panic what it says, and where in the learner's files
// it has happened.
func panicWords(text string, e exercise) string {
	message, trace, _ := strings.Cut(strings.TrimSpace(text), "\n\ngoroutine ")
	lines := []string{"  " + message}
	first, _, _ := strings.Cut(trace, "\n\n")
	for line := range strings.SplitSeq(first, "\n") {
		if i := strings.Index(line, e.dir()+"/"); i >= 0 {
			where, _, _ := strings.Cut(line[i:], " +0x")
			lines = append(lines, "      at "+where)
		}
	}
	return strings.Join(lines, "\n")
}
