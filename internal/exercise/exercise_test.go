package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"zklock/docs/graduation/check"
	"zklock/docs/graduation/election"
	"zklock/docs/graduation/multilock"
	"zklock/docs/graduation/semaphore"
	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	zktest.Main(m)
}

// firstFailures are what a learner sees first: the property that the starter
// lacks, and the evidence.
var firstFailures = map[string]struct{ property, evidence string }{
	"01":        {"one holder at a time", "B arrived and was let in beside the holder; the queue: []"},
	"02":        {"first come, first served", "B came before "},
	"03":        {"waiting sends no request", "5 waiters sent "},
	"04":        {"a release wakes one", "one release sent 5 notifications to 5 waiters"},
	"05":        {"a lost reply to create does no harm", "the reply to A's create was lost; now nobody holds the lock"},
	"semaphore": {"two at a time, and no more", "a permit is left, and B waits"},
	"multilock": {"it holds all its locks", "A holds /x and /y, and C was let in"},
	"election":  {"one leads at a time", "somebody leads, and B was let in"},

	"06": {"readers share, writers do not, nobody starves", "reader 2 waits for reader 1"},
}

// testJudge holds versions of the exercises against their properties, on the
// test's own server.
func testJudge(t *testing.T) *judge {
	t.Helper()
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	return &judge{server, t.TempDir(), 8 * time.Second}
}

// verdicts asks for all properties of an exercise.
func (j *judge) verdicts(t *testing.T, program string, e exercise) (all []answer) {
	t.Helper()
	if _, err := j.ask(t.Context(), program, e, nil, func(a answer) { all = append(all, a) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEachStarterFailsFirstWithWhatItsStepMends(t *testing.T) {
	t.Parallel()
	j := testJudge(t)
	program, err := j.build(t.Context(), startersBut(exercise{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exercises() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			all := j.verdicts(t, program, e)
			want := firstFailures[e.name]
			first := slices.IndexFunc(all, func(a answer) bool { return a.Verdict != "✓" })
			if first < 0 {
				t.Fatal("the starter has all properties")
			}
			if a := all[first]; a.Verdict != "✗" || a.Property != want.property || !strings.HasPrefix(a.Evidence, want.evidence) {
				t.Errorf("the first failure is %v, want %v", a, want)
			}
			for _, a := range all {
				if a.Verdict == "?" {
					t.Errorf("the starter gets stuck: %v", a)
				}
			}
		})
	}
}

// inExercise is a file of a step as one of its exercise's.
func inExercise(t *testing.T, e exercise, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.home, name))
	if err != nil {
		t.Fatal(err)
	}
	return clause.ReplaceAll(text, []byte("package exercise"))
}

func TestTheStepItselfIsTheSolution(t *testing.T) {
	t.Parallel()
	j := testJudge(t)
	files := startersBut(exercise{})
	for _, e := range exercises() {
		own, err := e.own()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range own {
			files[e.path(name)] = clause.ReplaceAll(text, []byte("package exercise"))
		}
	}
	program, err := j.build(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exercises() {
		if len(e.parts()) > 0 {
			continue // TestEachPartTurnsItsOwnProperty asks the last part
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			for _, a := range j.verdicts(t, program, e) {
				if a.Verdict != "✓" {
					t.Errorf("%v", a)
				}
			}
		})
	}
}

// Whoever has begun an exercise may run the tests all the same: only where CI
// is set, as hosts for continuous integration do, must the starters be in place.
func TestTheStartersAreInPlace(t *testing.T) {
	for _, e := range exercises() {
		if e.changed() && os.Getenv("CI") != "" {
			t.Errorf("%s is not as in internal/exercise/starters/%s: copy one to the other", e.dir(), e.name)
		}
	}
}

// Steps 1 to 4 give the step's own errors.go. That of steps 5 and 6 is the part of
// it which is no method of the Session: this is the step's own, and so are its
// errors.
func TestWhatIsGivenIsAsInTheStep(t *testing.T) {
	const head = "//lint:file-ignore U1000 given: your lock will use it\n\n"
	for _, e := range exercises() {
		if e.name > "a" {
			continue // a graduation exercise
		}
		is, err := os.ReadFile(e.path(given))
		if err != nil {
			t.Error(err)
		}
		step := string(inExercise(t, e, given))
		if e.name < "05" {
			if string(is) != head+step {
				t.Errorf("%s is not as in the step; make it so with:\n(printf '%s'; sed 's/^package .*/package exercise/' %s/%s) > %s",
					e.path(given), strings.ReplaceAll(head, "\n", `\n`), e.home, given, e.path(given))
			}
			continue
		}
		for _, name := range regexp.MustCompile(`(?m)^\t(Err\w+)`).FindAllStringSubmatch(step, -1) {
			if !regexp.MustCompile(name[1] + `\s+= \w+\.` + name[1] + `\n`).Match(is) {
				t.Errorf("%s: %s is not the step's", e.path(given), name[1])
			}
		}
		// Before the Session's Retry is used, such an error does not say that it is closed.
		step = regexp.MustCompile(`(?m)^\tcase unanswered.*\n.*\n`).ReplaceAllString(step, "")
		for _, name := range []string{"check", "ended", "failed"} {
			f := regexp.MustCompile(`(?ms)^// ` + name + ` .*?^}\n`).FindString(step)
			if f == "" || !strings.Contains(string(is), f) {
				t.Errorf("%s: %s is not as in the step, where it is\n%s", e.path(given), name, f)
			}
		}
	}
}

func TestHintsLeadFromTheFirstFailure(t *testing.T) {
	known := map[string]bool{lockcheck.ByKind.Name: true, lockcheck.Upgrade.Name: true}
	for _, p := range lockcheck.Properties {
		known[p.Name] = true
	}
	for _, p := range slices.Concat(check.SemaphoreProperties(semaphore.New), check.MultiLockProperties(multilock.New), check.ElectionProperties(election.New)) {
		known[p.Name] = true
	}
	for _, e := range exercises() {
		sections, err := readHints(e.path("hints.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if first := sections[0].property; first != firstFailures[e.name].property {
			t.Errorf("step %s begins with hints for %q, its starter fails with %q", e.name, first, firstFailures[e.name].property)
		}
		for _, s := range sections {
			if !known[s.property] {
				t.Errorf("step %s has hints for %q, which is no property", e.name, s.property)
			}
			if len(s.hints) < 3 || !strings.Contains(s.hints[0], "?") {
				t.Errorf("step %s, %q: want three hints or more, and first a question: %q", e.name, s.property, s.hints)
			}
		}
	}
}

// Whatever a learner writes, the answer is short and comes soon.
func TestAVersionThatIsNotRightYet(t *testing.T) {
	t.Parallel()
	const head = "package exercise\n\nimport (\n\t\"context\"\n\n\t\"github.com/go-zookeeper/zk\"\n)\n\ntype Lock struct{ conn *zk.Conn }\n\n" +
		"func New(conn *zk.Conn, path string) *Lock { return &Lock{conn} }\n\n"
	yours, err := find("4")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code string
		want []string
	}{
		"does not compile": {"func (l *Lock) Lock(context.Context) error { return nil }\nfunc (l *Lock) Unlock() error { return dunno }\n",
			[]string{"lock.go:14:40: undefined: dunno"}},
		"panics": {"func (l *Lock) Lock(context.Context) error {\n\tpanic(\"oh\")\n}\nfunc (l *Lock) Unlock() error { return nil }\n",
			[]string{"panic: oh", "at " + yours.path("lock.go") + ":14"}},
		"waits for ever": {"func (l *Lock) Lock(context.Context) error { select {} }\nfunc (l *Lock) Unlock() error { return nil }\n",
			[]string{"? one holder at a time: waited in vain for ", "\nAsk yourself: ", "0 of 12 hold"}},
		"never comes back from Unlock": {"func (l *Lock) Lock(context.Context) error { return nil }\nfunc (l *Lock) Unlock() error { select {} }\n",
			[]string{"? a stranger cannot release it: a call without a context, such as Unlock, has not come back"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := testJudge(t)
			j.patience = time.Second
			files := startersBut(yours)
			files[yours.path("lock.go")] = []byte(head + c.code)
			var out bytes.Buffer
			if err := j.checkFiles(t.Context(), yours, files, &record{}, &out); !errors.Is(err, errUnfinished) {
				t.Errorf("it answered %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &out)
				}
			}
			for _, noise := range []string{"# zklock", "goroutine ", "exit status"} {
				if strings.Contains(out.String(), noise) {
					t.Errorf("it says %q:\n%s", noise, &out)
				}
			}
		})
	}
}

// do runs a command as a learner does, who types the given text.
func do(t *testing.T, typed string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, bufio.NewReader(strings.NewReader(typed)), &out); err != nil {
		t.Errorf("%v: %v", args, err)
	}
	return out.String()
}

func TestHintResetProgressAndSolution(t *testing.T) {
	copied := t.TempDir()
	for _, e := range exercises() {
		if err := errors.Join(os.MkdirAll(filepath.Join(copied, e.dir()), 0o755), copyFile(e.path("hints.md"), copied)); err != nil {
			t.Fatal(err)
		}
		for name, starter := range e.starter() {
			if err := errors.Join(os.WriteFile(filepath.Join(copied, e.path(name)), starter, 0o644), copyFile(filepath.Join(e.home, name), copied)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(copied)
	yours, err := find("6")
	if err != nil {
		t.Fatal(err)
	}

	says := func(got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("it does not say %q:\n%s", w, got)
			}
		}
	}
	says(do(t, "", "progress"), "step 06    ░░░░░░░░░░░░░░░░░░░░    0/?  not begun")
	says(do(t, "", "reset", "6"), "is the starter already")
	says(do(t, "", "hint", "6"), "hint 1 of 5")
	says(do(t, "", "hint", "06"), "hint 2 of 5", "More direct: make hint STEP=06")

	mine := []byte("package exercise // mine\n")
	for _, name := range []string{"lock.go", "added.go"} {
		if err := os.WriteFile(yours.path(name), mine, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says(do(t, "", "progress"), "not checked yet")
	r := record{Version: yours.version(), Held: 10, Of: 20, Missing: lockcheck.Upgrade.Name}
	if err := yours.keep(r); err != nil {
		t.Fatal(err)
	}
	says(do(t, "", "progress"), "██████████░░░░░░░░░░  10/20  next: write inside a read hold is refused")
	says(do(t, "", "hint", "6"), "hint 1 of 3", "Two readers are inside")
	r.Missing = lockcheck.WaiterCrash.Name
	if err := yours.keep(r); err != nil {
		t.Fatal(err)
	}
	says(do(t, "", "hint", "6"), "hint 1 of 3", "Your predecessor has gone.")

	r.Held, r.Missing = 20, ""
	if err := yours.keep(r); err != nil {
		t.Fatal(err)
	}
	says(do(t, "", "progress"), "████████████████████  20/20  done")
	says(do(t, "", "hint", "6"), "All 20 properties hold")
	says(do(t, "", "solution", "6"), "+ the step's own, step06_shared_lock/lock.go", "+	own, kind, _ := number(mine)", "+ the step's own, step06_shared_lock/hold.go", "+	count map[string]int")

	says(do(t, "n\n", "reset", "6"), "nothing was changed")
	if text, _ := os.ReadFile(yours.path("lock.go")); !bytes.Equal(text, mine) {
		t.Error("it was changed")
	}
	says(do(t, "y\n", "reset", "6"), "the starter is back")
	if yours.changed() {
		t.Error("the starter is not back")
	}
	for _, name := range []string{"lock.go", "added.go"} {
		aside, _ := filepath.Glob(filepath.Join(outDir, "old", "*", name))
		if len(aside) != 1 {
			t.Fatalf("put aside: %v", aside)
		}
		if text, _ := os.ReadFile(aside[0]); !bytes.Equal(text, mine) {
			t.Errorf("what was put aside as %s is not the learner's version", name)
		}
	}
	first, err := find("")
	if err != nil || first.name != "01" {
		t.Errorf("the first that is not done: %v, %v", first, err)
	}
	if err := first.keep(record{Version: first.version(), Held: 6, Of: 6}); err != nil {
		t.Fatal(err)
	}
	says(do(t, "", "hint"), "step 02, ")
	for _, args := range [][]string{{}, {"dance"}, {"part", "4"}, {"replay", "4"}, {"replay", "election"}, {"check", "7"}, {"check", "4", "5"}, {"hunt", "W18"}} {
		if err := run(t.Context(), args, bufio.NewReader(strings.NewReader("")), io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// A learner has added a file to one exercise, and does not get it to compile. The
// other exercises can be checked all the same.
func TestAnAddedFileOfAnotherExerciseIsNotInTheWay(t *testing.T) {
	t.Parallel()
	other, err := find("5")
	if err != nil {
		t.Fatal(err)
	}
	files := startersBut(other)
	for name, starter := range other.starter() {
		files[other.path(name)] = starter
	}
	j := testJudge(t)
	added := other.path("added.go")
	files[added] = []byte("package exercise\n\nvar held = dunno\n")
	if _, err := j.build(t.Context(), files); err == nil || !strings.Contains(err.Error(), "undefined: dunno") {
		t.Errorf("with it: %v", err)
	}
	files[added] = nil
	if _, err := j.build(t.Context(), files); err != nil {
		t.Errorf("without it: %v", err)
	}
}

func copyFile(path, root string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, path), text, 0o644)
}

func TestHuntKnowsEachPublishedMistake(t *testing.T) {
	all, err := mistakes()
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 17; n++ {
		m, ok := all[n]
		if !ok {
			t.Errorf("W%d is missing", n)
			continue
		}
		code := m.code()
		_, unasked := unasked[n]
		switch body := source(t, m); {
		case strings.Contains(body, "lockcheck.Fails(") == unasked:
			t.Errorf("W%d: a property asks for it, or is said not to, wrongly", n)
		case !strings.Contains(code, "\nfunc (l ") || strings.Contains(code, "//") || strings.Contains(code, "lockcheck."):
			t.Errorf("W%d is shown as\n%s", n, code)
		case !strings.HasPrefix(m.text, "W"):
			t.Errorf("W%d is explained by %q", n, m.text)
		}
	}
}

// source is the text of a mistake's test.
func source(t *testing.T, m mistake) string {
	t.Helper()
	text, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[m.files.Position(m.test.Pos()).Offset:m.files.Position(m.test.End()).Offset])
}

// W8 does not look again after a wake-up. A crashed holder's lock comes free all
// the same.
func TestHuntHoldsTheLockAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	got := do(t, "2\n", "hunt", "8")
	for _, want := range []string{"✓ a crashed holder's lock comes free: ", "✗ a waiter's crash lets nobody in: ", "\nNot this one.\n\nW8, "} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if got := do(t, "12\n", "hunt", "8"); !strings.Contains(got, "\nTrue, and step 04 lacks that, too.") {
		t.Errorf("it does not say that the step lacks it, too:\n%s", got)
	}
	if err := run(context.Background(), []string{"hunt"}, bufio.NewReader(strings.NewReader("")), io.Discard); err == nil {
		t.Error("no answer is accepted as one")
	}
}
