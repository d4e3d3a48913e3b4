// Command mutants makes every single change of a step's lock.go, and runs the
// step's own tests against each. A change that no test notices is a promise that
// nobody holds the lock to. docs/mutants.md lists those that change nothing.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	page    = "docs/mutants.md"
	workers = 2
	limit   = 60 * time.Second // for one run of the tests: longer than a test is patient
)

func main() {
	skip := flag.String("skip", "", "leave out the tests that this pattern names")
	only := flag.String("only", "", "make only the changes that this pattern names")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, flag.Arg(0), *skip, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the changes of a step, such as 04, and prints a line for each.
func run(ctx context.Context, step, skip, only string) error {
	found, _ := filepath.Glob("step" + step + "_*/lock.go")
	if len(found) != 1 {
		return fmt.Errorf("there is no step %q: want a number such as 04", step)
	}
	lock, err1 := filepath.Abs(found[0])
	source, err2 := os.ReadFile(lock)
	all, err3 := changes(source)
	equal, err4 := listed(step, all)
	wanted, err5 := regexp.Compile(only)
	scratch, err6 := os.MkdirTemp("", "zklock-mutants-")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if v := (worker{lock, filepath.Join(scratch, "none"), skip}).try(ctx, source); v.kind != unnoticed {
		return fmt.Errorf("nothing is changed, and the tests fail: %s", v)
	}

	verdicts := make([]chan verdict, len(all)) // in the order of the file
	for i := range all {
		verdicts[i] = make(chan verdict, 1)
	}
	next := make(chan int)
	for n := range workers {
		w := worker{lock, filepath.Join(scratch, fmt.Sprint(n)), skip}
		go func() {
			for i := range next {
				verdicts[i] <- w.try(ctx, all[i].apply(source))
			}
		}()
	}
	go func() {
		defer close(next)
		for i, c := range all {
			if why, ok := equal[c.String()]; ok {
				verdicts[i] <- verdict{same, why}
			} else if wanted.MatchString(c.String()) {
				next <- i
			} else {
				verdicts[i] <- verdict{}
			}
		}
	}()

	count := map[string]int{}
	for i, c := range all {
		v := <-verdicts[i]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		count[v.kind]++
		if v.kind != "" {
			fmt.Printf("%s:%d: %s: %s\n", found[0], c.line, c, v)
		}
	}
	fmt.Printf("\n| step | changes | do not compile | noticed | change nothing | unnoticed |\n| %s | %d | %d | %d | %d | %d |\n",
		step, len(all), count[refused], count[noticed], count[same], count[unnoticed])
	if n := count[unnoticed]; n > 0 {
		return fmt.Errorf("%d changes that no test notices", n)
	}
	return nil
}

// row is a line of the page's list of changes that change nothing.
var row = regexp.MustCompile(`^\| ([0-9, ]+) \| (\w+: .+) \| (.+) \|$`)

// listed reads from the page why some changes of a step change nothing.
func listed(step string, all []change) (why map[string]string, err error) {
	known := map[string]bool{}
	for _, c := range all {
		known[c.String()] = true
	}
	text, err := os.ReadFile(page)
	why = map[string]string{}
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "|"))
		if m == nil || !strings.Contains(m[1], step) {
			continue
		}
		if !known[m[2]] {
			err = errors.Join(err, fmt.Errorf("%s lists what is no change of step %s: %s", page, step, m[2]))
		}
		why[m[2]] = m[3]
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

// A worker tries one change after the other.
type worker struct{ lock, scratch, skip string }

// try builds the step's tests with another lock.go, and runs them.
func (w worker) try(ctx context.Context, source []byte) verdict {
	mutant, overlay, program := w.scratch+".go", w.scratch+".json", w.scratch+".test"
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{w.lock: mutant}})
	if err := errors.Join(os.WriteFile(mutant, source, 0o644), os.WriteFile(overlay, replace, 0o644)); err != nil {
		return verdict{unnoticed, err.Error()}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, filepath.Dir(w.lock))
	text, err := build.CombinedOutput()
	switch {
	case err == nil:
		// What the lock promises first: what it costs is measured, and takes time.
		v := w.test(ctx, program, w.promises())
		if v.kind == unnoticed {
			v = w.test(ctx, program, ".")
		}
		return v
	case strings.Contains(string(text), filepath.Join(filepath.Base(filepath.Dir(mutant)), filepath.Base(mutant))+":"): // the rest of the path may be relative
		return verdict{refused, ""}
	}
	return verdict{unnoticed, string(text)} // something else is broken
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// promises is a pattern of the tests in lock_test.go.
func (w worker) promises() string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(w.lock), "lock_test.go"))
	var names []string
	for _, m := range testName.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// failure is a test that has failed or hangs, or what Go itself has against the
// program.
var failure = regexp.MustCompile(`^(?: *--- FAIL: |\t\t|fatal error: )(\S.*?)(?: \([0-9.ms]+\))?$`)

// test runs the tests that which names until one of them fails. Each run starts a server of its
// own: a broken lock may leave anything behind on it.
func (w worker) test(ctx context.Context, program, which string) verdict {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, program, "-test.run", which, "-test.v", "-test.failfast", "-test.timeout", limit.String(), "-test.skip", w.skip)
	test.Dir, test.Env = filepath.Dir(w.lock), append(os.Environ(), "ZK_SERVERS=")
	out, err := test.StdoutPipe()
	if err == nil {
		test.Stderr = test.Stdout
		err = test.Start()
	}
	if err != nil {
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
	switch err := test.Wait(); {
	case err == nil:
		return verdict{unnoticed, ""}
	case name == "":
		return verdict{noticed, "no test: " + last}
	}
	return verdict{noticed, name}
}
