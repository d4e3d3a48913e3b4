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
	all, err1 := changesOf(step)
	why, err2 := listed(step, all)
	wanted, err3 := regexp.Compile(only)
	scratch, err4 := os.MkdirTemp("", "zklock-mutants-")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	begun := time.Now()
	if v := try(ctx, scratch, skip, all[0].path, all[0].source, 10*time.Minute); v.kind != unnoticed {
		return fmt.Errorf("nothing is changed, and the tests fail: %s", v)
	}
	limit := 5 * time.Since(begun) // with a lock that hangs the tests would not end
	all = slices.DeleteFunc(all, func(c change) bool { return !wanted.MatchString(c.String()) })
	verdicts, next := make([]chan verdict, len(all)), make(chan int, len(all)) // in the order of the files
	for i := range all {
		verdicts[i] = make(chan verdict, 1)
		next <- i
	}
	for range atATime {
		go func() {
			for i := range next {
				c := all[i]
				if because := why[c.String()]; because != "" {
					verdicts[i] <- verdict{same, because}
				} else {
					verdicts[i] <- try(ctx, scratch, skip, c.path, c.made(), limit)
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

// try builds a step's tests with another text in the place of one file, and runs them,
// no longer than limit.
func try(ctx context.Context, scratch, skip, path, text string, limit time.Duration) verdict {
	scratch, err1 := os.MkdirTemp(scratch, "")
	defer os.RemoveAll(scratch)
	dir, mutant, overlay, program := filepath.Dir(
		path,
	), filepath.Join(
		scratch,
		"mutant.go",
	), filepath.Join(
		scratch,
		"overlay.json",
	), filepath.Join(
		scratch,
		"test",
	)
	file, err2 := filepath.Abs(path)
	replace, err3 := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
	if err := errors.Join(err1, err2, err3, os.WriteFile(mutant, []byte(text), 0o644), os.WriteFile(overlay, replace, 0o644)); err != nil {
		return verdict{unnoticed, err.Error()}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+dir)
	said, err := build.CombinedOutput()
	if err != nil && strings.Contains(string(said), "mutant.go:") {
		return verdict{refused, ""}
	} else if err != nil {
		return verdict{unnoticed, string(said)} // something else is broken
	}
	// What the lock promises first: what it costs is measured, and takes time.
	v := test(ctx, dir, program, promises(dir), skip, limit)
	if v.kind == unnoticed {
		v = test(ctx, dir, program, ".", skip, limit)
	}
	return v
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// promises is a pattern of the tests in lock_test.go.
func promises(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "lock_test.go"))
	var names []string
	for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// failure is a test that has failed or hangs, or what Go itself has against the
// program.
var failure = regexp.MustCompile(`^(?: *--- FAIL: |\t\t|fatal error: )(\S.*?)(?: \([0-9.ms]+\))?$`)

// test runs the tests that which names until one of them fails. Each run starts a server
// of its own: a broken lock may leave anything behind on it.
func test(ctx context.Context, dir, program, which, skip string, limit time.Duration) verdict {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	test := exec.CommandContext(
		ctx,
		program,
		"-test.run",
		which,
		"-test.v",
		"-test.failfast",
		"-test.timeout",
		limit.String(),
		"-test.skip",
		skip,
	)
	test.Dir, test.Env = dir, append(os.Environ(), "ZK_SERVERS=")
	out, err := test.StdoutPipe()
	test.Stderr = test.Stdout
	if err := errors.Join(err, test.Start()); err != nil {
		return verdict{unnoticed, err.Error()}
	}
	name, last := "", ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = lines.Text()
		m := failure.FindStringSubmatch(last)
		if m != nil && (name == "" || strings.HasPrefix(m[1], name+"/")) {
			name = m[1]
			time.AfterFunc(time.Second/2, cancel) // its parts are told after it; nothing else is needed
		}
	}
	if test.Wait() == nil {
		return verdict{unnoticed, ""}
	}
	return verdict{noticed, cmp.Or(name, "no test: "+last)}
}
