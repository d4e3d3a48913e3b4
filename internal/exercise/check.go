package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
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

	"zklock/internal/zkserver"
)

// outDir holds what may be lost: git ignores it.
var outDir = "out/exercise"

// The starters, as they were before anybody worked on them.
//
//go:embed starters
var starters embed.FS

// starter returns the files that the learner changes, as they were.
func (e exercise) starter() map[string][]byte {
	files := map[string][]byte{}
	entries, _ := starters.ReadDir("starters/" + e.name)
	for _, entry := range entries {
		text, _ := starters.ReadFile("starters/" + e.name + "/" + entry.Name())
		files[strings.TrimSuffix(entry.Name(), ".txt")] = text
	}
	return files
}

// added names the files that the learner has added.
func (e exercise) added() (names []string) {
	starter := e.starter()
	paths, _ := filepath.Glob(e.path("*.go"))
	for _, path := range paths {
		name := filepath.Base(path)
		if _, known := starter[name]; !known && name != given && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names
}

// given is the file that stands beside the learner's.
const given = "errors.go"

// files names the learner's files.
func (e exercise) files() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq(e.added(), maps.Keys(e.starter()))))
}

// solved names the files of the solution.
func (e exercise) solved() []string { return slices.Sorted(maps.Keys(e.starter())) }

// changed tells whether the learner has begun.
func (e exercise) changed() bool {
	if len(e.added()) > 0 {
		return true
	}
	for name, starter := range e.starter() {
		if yours, err := os.ReadFile(e.path(name)); err != nil || !bytes.Equal(yours, starter) {
			return true
		}
	}
	return false
}

// version names the learner's version.
func (e exercise) version() string {
	sum := sha256.New()
	for _, name := range e.files() {
		yours, _ := os.ReadFile(e.path(name))
		fmt.Fprintf(sum, "%s %d\n%s", name, len(yours), yours)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// A record is what the last check has found, and which hints were given.
type record struct {
	Version  string // of the learner's files
	Held, Of int    // properties
	Missing  string // the first property that does not hold
	Hints    map[string]int
}

func (e exercise) recordFile() string { return filepath.Join(outDir, e.name+".json") }

func (e exercise) record() (r record) {
	text, _ := os.ReadFile(e.recordFile())
	_ = json.Unmarshal(text, &r)
	return r
}

func (e exercise) keep(r record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(outDir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(e.recordFile(), text, 0o644)
	}
	return err
}

// A judge compiles the learner's version and holds it against its properties,
// on one server.
type judge struct {
	server   *zkserver.Server
	scratch  string
	patience time.Duration // for one property: those that hold take a second or two
}

func newJudge(ctx context.Context) (*judge, error) {
	server, err := zkserver.Start(ctx)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "zklock-exercise-")
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &judge{server, scratch, 8 * time.Second}, nil
}

func (j *judge) close() {
	_ = j.server.Stop()
	_ = os.RemoveAll(j.scratch)
}

func checkOnce(ctx context.Context, e exercise, out io.Writer) error {
	j, err := newJudge(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	return j.check(ctx, e, out)
}

// check prints what the learner's version can do, and keeps it on record. It
// returns errUnfinished unless all properties hold.
func (j *judge) check(ctx context.Context, e exercise, out io.Writer) error {
	fmt.Fprintf(out, "%s: yours is in %s\n", e, e.path(strings.Join(e.files(), ", ")))
	r := e.record()
	r.Version = e.version()
	err := j.checkFiles(ctx, e, startersBut(e), &r, out)
	if r.Of > 0 && ctx.Err() == nil {
		err = errors.Join(err, e.keep(r))
	}
	return err
}

// checkFiles is check with some files in place of those on the disk. In a step with
// parts, the property of the part that the learner is in is asked first.
func (j *judge) checkFiles(ctx context.Context, e exercise, files map[string][]byte, r *record, out io.Writer) error {
	parts, which := e.parts(), []string(nil)
	n := e.part(r.Missing)
	if r.Of == 0 {
		n = min(1, len(parts))
	}
	program, err := j.build(ctx, files)
	if err == nil && n > 0 {
		fmt.Fprintf(out, "You are in %s. Its property comes first.\n", e.partName(n))
		which = first(parts[n-1].property)
	}
	r.Held, r.Of, r.Missing = 0, 0, ""
	var missing []answer
	printed := ""
	if err == nil {
		printed, err = j.ask(ctx, program, e, which, func(a answer) {
			r.Of++
			fmt.Fprintf(out, "  %s %s: %s\n", a.Verdict, a.Property, a.Evidence)
			switch a.Verdict {
			case "✓":
				r.Held++
				return
			case "?":
				fmt.Fprintln(out, "      ? means no answer: a call has hung, or took longer than the check waits")
			}
			missing = append(missing, a)
		})
	}
	if printed != "" {
		fmt.Fprintf(out, "Your lock printed:\n%s\n", printed)
	}
	failed := new(complaint)
	switch {
	case errors.As(err, &failed):
		r.Of = 0 // not all was asked
		fmt.Fprintln(out, failed.text)
		return errUnfinished
	case err != nil:
		return err
	case r.Held < r.Of:
		// What no part brings held in part 0, and what an earlier part brings held then.
		next := slices.MinFunc(missing, func(a, b answer) int { return cmp.Compare(e.part(a.Property), e.part(b.Property)) })
		r.Missing = next.Property
		goOn := fmt.Sprintf("%q", next.Property)
		switch at := e.part(next.Property); {
		case at > n && n > 0:
			goOn = fmt.Sprintf("%s. Part %d holds", e.partName(at), n)
		case at > 0:
			goOn = e.partName(at)
		}
		fmt.Fprintf(out, "%d of %d hold. Go on with %s.\nAsk yourself: %s\nMore help: make hint STEP=%s\n", r.Held, r.Of, goOn, next.Hint, e.name)
		return errUnfinished
	}
	fmt.Fprintf(out, "All %d hold. The step's own lock beside yours: make solution STEP=%s\n", r.Of, e.name)
	if next, ok := e.next(); ok {
		fmt.Fprintf(out, "The next: make exercise STEP=%s\n", next.name)
	}
	return nil
}

// next is the exercise after this one.
func (e exercise) next() (next exercise, ok bool) {
	all := exercises()
	i := slices.Index(all, e) + 1
	if i == len(all) {
		return exercise{}, false
	}
	return all[i], true
}

// A complaint is about the learner's code: it does not compile, or it panics.
type complaint struct{ text string }

func (c *complaint) Error() string { return c.text }

// startersBut holds the starters of all exercises but one, by their paths, and
// nil for what was added: a version of another exercise that is half written
// must not stand in the way.
func startersBut(this exercise) map[string][]byte {
	files := map[string][]byte{}
	for _, e := range exercises() {
		if e == this {
			continue
		}
		for _, name := range e.added() {
			files[e.path(name)] = nil
		}
		for name, starter := range e.starter() {
			files[e.path(name)] = starter
		}
	}
	return files
}

var clause = regexp.MustCompile(`(?m)^package \w+$`)

// replacedBy holds other files in the place of the learner's, by their paths, and the
// starters of all other exercises.
func (e exercise) replacedBy(others map[string][]byte) map[string][]byte {
	files := startersBut(e)
	for _, name := range e.files() {
		files[e.path(name)] = nil
	}
	for name, text := range others {
		files[e.path(name)] = clause.ReplaceAll(text, []byte("package exercise"))
	}
	return files
}

// own reads the step's own files that solve the exercise.
func (e exercise) own() (files map[string][]byte, err error) {
	files = map[string][]byte{}
	for _, name := range e.solved() {
		if files[name], err = os.ReadFile(filepath.Join(e.home, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// build compiles the program that holds an exercise against its properties,
// with some files in place of those on the disk; nil stands for no file.
func (j *judge) build(ctx context.Context, files map[string][]byte) (program string, err error) {
	dir, err := os.MkdirTemp(j.scratch, "")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range files {
		from, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if text == nil {
			replace[from] = ""
			continue
		}
		replace[from] = filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(replace[from], text, 0o644); err != nil {
			return "", err
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o644)
	}
	if err != nil {
		return "", err
	}
	program = filepath.Join(j.scratch, "judge")
	text, err = exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./internal/exercise/judge").CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return "", &complaint{"It does not compile:\n" + compilerWords(string(text))}
	}
	return program, err
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

// What to ask: all properties, but this one first, or only this one.
func first(property string) []string { return []string{"first", property} }
func only(property string) []string  { return []string{"only", property} }

// ask runs the program and passes on its answers. The program asks for all properties
// of the exercise, or for those that which names: see first and only.
// It returns what the lock has printed.
func (j *judge) ask(ctx context.Context, program string, e exercise, which []string, say func(answer)) (printed string, err error) {
	cmd := exec.CommandContext(ctx, program, append([]string{e.name, j.patience.String()}, which...)...)
	cmd.Env = append(os.Environ(), "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(j.server.Servers(), ","))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	complete := false
	for answers := json.NewDecoder(stdout); !complete; {
		var a answer
		if err := answers.Decode(&a); err != nil {
			break
		}
		if complete = a == (answer{}); !complete {
			say(a)
		}
	}
	switch err := cmd.Wait(); {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", &complaint{panicWords(stderr.String(), e)}
	case !complete:
		return "", &complaint{"The check has ended before its last question. Does your lock end the program?"}
	}
	lines := strings.SplitAfterN(stderr.String(), "\n", 21)
	if len(lines) > 20 {
		lines[20] = "…"
	}
	return strings.TrimSpace(strings.Join(lines, "")), nil
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
