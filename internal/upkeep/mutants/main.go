// Command mutants makes every single change of a step's lock.go, and of its hold.go
// where it has one, and runs the step's own tests against each. A change that no test
// notices is a promise that nobody holds the lock to. docs/mutants.md lists those that
// change nothing.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"zklock/internal/server/process"
)

const (
	page = "docs/mutants.md"
	// So many changes are tried at a time: most of the time a test waits.
	atATime = 3
)

func main() {
	skip := flag.String("skip", "", "leave out the tests that this pattern names")
	only := flag.String("only", "", "make only the changes that this pattern names")
	flag.Parse()
	ctx, cancel := process.UntilStopped()
	defer cancel()
	if err := run(ctx, flag.Arg(0), *skip, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the changes of a step, such as 04, and prints a line for each.
func run(ctx context.Context, step, skip, only string) error {
	all, err := changesOf(step)
	if err != nil {
		return err
	}
	why, err := listed(step, all)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only %s: %w", only, err)
	}
	scratch, err := os.MkdirTemp("", "zklock-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tests, err := base(ctx, scratch, skip, filepath.Dir(all[0].path))
	if err != nil {
		return err
	}

	all = slices.DeleteFunc(all, func(c change) bool { return !wanted.MatchString(c.String()) })
	verdicts := make([]chan verdict, len(all)) // in the order of the files
	next := make(chan int, len(all))
	for i := range all {
		verdicts[i] = make(chan verdict, 1)
		next <- i
	}
	close(next)
	for range atATime {
		go func() {
			for i := range next {
				c := all[i]
				if because := why[c.String()]; because != "" {
					verdicts[i] <- verdict{same, because}
				} else {
					verdicts[i] <- try(ctx, scratch, tests, c)
				}
			}
		}()
	}

	count := map[string]int{}
	for i, c := range all {
		v := <-verdicts[i]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		count[v.kind]++
		fmt.Printf("%s:%d: %s: %s\n", c.path, c.line(), c, v)
	}
	fmt.Printf(
		"\n| step | changes | do not compile | noticed | change nothing | unnoticed |\n| %s | %d | %d | %d | %d | %d |\n",
		step,
		len(all),
		count[refused],
		count[noticed],
		count[same],
		count[unnoticed],
	)
	if n := count[unnoticed]; n > 0 {
		return fmt.Errorf("%d changes that no test notices", n)
	}
	return nil
}

// changesOf lists the changes of a step's lock.go and hold.go.
func changesOf(step string) (all []change, err error) {
	paths, _ := filepath.Glob("step" + step + "_*/lock.go")
	if len(paths) != 1 {
		return nil, fmt.Errorf("there is no step %q: want a number such as 04", step)
	}
	hold, _ := filepath.Glob("step" + step + "_*/hold.go")
	seen := map[string]int{}
	for _, path := range append(paths, hold...) {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		more, err := changes(path, string(source), seen)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// row is a line of the page's list of changes that change nothing.
var row = regexp.MustCompile(`^\| ([0-9, ]+) \| (\w+: .+) \| (.+) \|$`)

// listed reads from the page why some changes of a step change nothing.
func listed(step string, all []change) (why map[string]string, err error) {
	text, err := os.ReadFile(page)
	why = map[string]string{}
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "|"))
		if m == nil || !strings.Contains(m[1], step) {
			continue
		}
		why[m[2]] = m[3]
		if !slices.ContainsFunc(all, func(c change) bool { return c.String() == m[2] }) {
			err = errors.Join(err, fmt.Errorf("%s lists what is no change of step %s: %s", page, step, m[2]))
		}
	}
	return why, err
}

// A verdict says what became of a change, and by which test, or why.
type verdict struct{ kind, why string }

const (
	refused   = "does not compile"
	noticed   = "noticed by"
	same      = "changes nothing:"
	unnoticed = "UNNOTICED"
)

func (v verdict) String() string { return strings.TrimSpace(v.kind + " " + v.why) }

// A suite is the tests of a step. What is quick is asked first: it notices most changes.
type suite struct {
	dir  string
	skip string // a pattern of the tests that are left out

	// Two selections of the others: those that take less than quickLimit, and the rest.
	quick, slow selection
}

// A selection is some of the tests.
type selection struct {
	run, skip string        // patterns, as for go test
	limit     time.Duration // for a run: with a lock that hangs the tests would not end
}

const (
	quickLimit = 1500 * time.Millisecond
	baseLimit  = 10 * time.Minute // for a run without a change
	patience   = 5                // a run with a change may take so many times as long as one without
)

// base runs the tests of the step as it is, which have to pass, and times them.
func base(ctx context.Context, scratch, skip, dir string) (suite, error) {
	tests := suite{dir: dir, skip: skip}
	program := filepath.Join(scratch, "base")
	if said, err := build(ctx, dir, program); err != nil {
		return tests, fmt.Errorf("the tests do not compile: %w\n%s", err, said)
	}
	all, said, err := tests.timed(ctx, program, selection{".", skip, baseLimit})
	if err != nil {
		return tests, err
	}
	var quick []string
	for _, m := range passed.FindAllStringSubmatch(said, -1) {
		took, err := time.ParseDuration(m[2])
		if err != nil {
			return tests, err
		}
		if took < quickLimit {
			quick = append(quick, m[1])
		}
	}
	areQuick := "^(" + strings.Join(quick, "|") + ")$"
	tests.quick, _, err = tests.timed(ctx, program, selection{areQuick, skip, baseLimit})
	tests.slow = selection{".", either(skip, areQuick), all.limit}
	return tests, err
}

// timed runs tests that have to pass, and returns how long they may take with a change.
func (tests suite) timed(ctx context.Context, program string, which selection) (
	timed selection, said string, err error) {
	begun := time.Now()
	failed, said := tests.run(ctx, program, which)
	if failed != "" {
		return which, said, fmt.Errorf("nothing is changed, and the tests fail: %s", failed)
	}
	which.limit = patience * time.Since(begun)
	return which, said, nil
}

// passed is what go test -v says of a test that has passed, and in which time.
var passed = regexp.MustCompile(`(?m)^\x16?--- PASS: (\w+) \(([0-9.]+s)\)$`)

// build builds the tests of a folder.
func build(ctx context.Context, dir, program string, flags ...string) (said string, err error) {
	args := append([]string{"test", "-c", "-vet=off", "-o", program}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, "./"+dir)...).CombinedOutput()
	return string(out), err
}

// mirror makes a folder that looks like the repository with the change, and returns the step's
// folder in it: there are tests that read the step's own files.
func mirror(root string, c change) (step string, err error) {
	stepName, fileName := filepath.Split(c.path)
	step = filepath.Join(root, stepName)
	return step, errors.Join(
		os.MkdirAll(step, 0o755),
		link(".", root, filepath.Clean(stepName)),
		link(stepName, step, fileName),
		os.WriteFile(filepath.Join(step, fileName), []byte(c.made()), 0o644),
	)
}

// link makes links to all that is in a folder, but for one name.
func link(from, to, butFor string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Name() != butFor {
			err = errors.Join(err, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
	}
	return err
}

// try builds the tests with the change, and runs them until one of them fails.
func try(ctx context.Context, scratch string, tests suite, c change) verdict {
	scratch, err1 := os.MkdirTemp(scratch, "")
	defer os.RemoveAll(scratch)
	step, err2 := mirror(filepath.Join(scratch, "root"), c)
	mutant := filepath.Join(step, filepath.Base(c.path))
	overlay := filepath.Join(scratch, "overlay.json")
	program := filepath.Join(scratch, "test")
	file, err3 := filepath.Abs(c.path)
	replace, err4 := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
	err5 := os.WriteFile(overlay, replace, 0o644)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return verdict{unnoticed, err.Error()}
	}
	said, err := build(ctx, tests.dir, program, "-overlay", overlay)
	if err != nil && blames(said, scratch, c) {
		return verdict{refused, ""}
	}
	tests.dir = step
	if err != nil {
		return verdict{unnoticed, said} // something else is broken
	}
	by, once := tests.notices(ctx, program, tests.quick)
	if by != "" {
		return verdict{noticed, by}
	}
	by, onceLater := tests.notices(ctx, program, tests.slow)
	if by != "" {
		return verdict{noticed, by}
	}
	if failed := cmp.Or(once, onceLater); failed != "" {
		return verdict{unnoticed, "but for one failure that did not come again: " + failed}
	}
	return verdict{unnoticed, ""}
}

// blames reports whether the compiler, in what it said, names a line of the changed file of
// this scratch folder. It may name the folder by a relative path: so only its last part is
// compared, which no other folder has.
func blames(said, scratch string, c change) bool {
	return strings.Contains(said, filepath.Join(filepath.Base(scratch), "root", c.path)+":")
}

// notices tells by which test a change is noticed. A test can fail because the machine is
// busy. If the change is the reason, the test fails a second time, too: it has three tries,
// as a few tests find what they look for by chance. One that does not is in once, and the
// others are asked.
func (tests suite) notices(ctx context.Context, program string, which selection) (by, once string) {
	for {
		failed, _ := tests.run(ctx, program, which)
		if failed == "" {
			return "", once
		}
		thatOne := which.run // what has failed may be no test: the program panics, say
		if strings.HasPrefix(failed, "Test") {
			thatOne = only(failed)
		}
		for range 3 {
			again, _ := tests.run(ctx, program, selection{thatOne, tests.skip, which.limit})
			if again != "" {
				return failed, once
			}
		}
		once = failed
		which.skip = either(which.skip, thatOne)
	}
}

// only is the pattern of one test, or of one part of it.
func only(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// either is a pattern of what one of two patterns names. The empty one names nothing.
func either(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "|" + b
}

// failure is a test that has failed or hangs, or what Go itself has against the
// program.
var failure = regexp.MustCompile(`^(?:\x16?--- FAIL: |\t\t|fatal error: )(\S.*?)(?: \([0-9.ms]+\))?$`)

// isNow is a line that tells which test goes on, and complaint is part of one with which a test
// says that it fails. With a lock that hangs it may not come to its end after that.
var (
	isNow     = regexp.MustCompile(`^\x16?=== \w+ +(\S+)$`)
	complaint = regexp.MustCompile(`\tError Trace:\t|: waited in vain for `)
)

// run runs tests until one of them fails, whose name it returns, and what they have said.
// Each run starts a server of its own: a broken lock may leave anything behind on it.
//
// With test2json a part of a test is told as soon as it has failed, and not when the whole
// test is over: many parts of a lock that hangs would be waited for. A byte, \x16, stands
// before such a line.
func (tests suite) run(ctx context.Context, program string, which selection) (failed, said string) {
	ctx, cancel := context.WithTimeout(ctx, which.limit+10*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, program, "-test.run", which.run, "-test.skip", which.skip,
		"-test.v=test2json", "-test.failfast", "-test.timeout", which.limit.String())
	test.SysProcAttr = process.WithoutCtrlC()
	test.Cancel = func() error { return process.KillAll(test.Process) } // some tests start clients
	test.Dir = tests.dir
	test.Env = append(os.Environ(), "ZK_SERVERS=")
	out, err := test.StdoutPipe()
	test.Stderr = test.Stdout
	if err := errors.Join(err, test.Start()); err != nil {
		return err.Error(), ""
	}
	var all strings.Builder
	last, now := "", ""
	for lines := bufio.NewScanner(out); failed == "" && lines.Scan(); {
		last = lines.Text()
		fmt.Fprintln(&all, last)
		if m := isNow.FindStringSubmatch(last); m != nil {
			now = m[1]
		}
		if m := failure.FindStringSubmatch(last); m != nil {
			failed = m[1]
		} else if complaint.MatchString(last) {
			failed = now
		}
	}
	if failed != "" {
		cancel()
	}
	if test.Wait() == nil {
		return "", all.String()
	}
	return cmp.Or(failed, "no test: "+last), all.String()
}
