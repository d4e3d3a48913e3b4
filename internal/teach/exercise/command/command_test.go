package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/tables"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/teach/exercise"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../../.."); err != nil {
		panic(err)
	}
	zktest.Main(m)
}

// newWorkshop is one on the test's own server.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	server, err := zktest.Shared()
	require.NoError(t, err)
	return &workshop{server: server}
}

// scratch is a folder inside of the module, which goes with the test.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := exercise.Scratch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// elsewhere lets the learner's packages be in a folder of the test, which must not be parallel.
func elsewhere(t *testing.T) {
	was := exercise.Folder
	exercise.Folder = scratch(t)
	t.Cleanup(func() { exercise.Folder = was })
}

// said is what the workshop prints while it does something, to somebody who types a text.
func (w workshop) said(typed string, do func(*workshop) error) (string, error) {
	var out bytes.Buffer
	w.in, w.out = bufio.NewReader(strings.NewReader(typed)), &out
	err := do(&w)
	return out.String(), err
}

// typed is what a command prints.
func (w workshop) typed(t *testing.T, typed string, args ...string) string {
	t.Helper()
	said, err := w.said(typed, func(w *workshop) error { return w.run(t.Context(), args) })
	require.NoError(t, err, "%v", args)
	return said
}

func step(t *testing.T, name string) exercise.Exercise {
	t.Helper()
	e, err := exercise.Find(name)
	require.NoError(t, err)
	return e
}

// tested is what go test says of a package that is laid for it, and what was recorded. What
// a check asks last, and long, is for TestTheOrdersAreAskedLast.
func (w workshop) tested(t *testing.T, all exercise.Files, flags ...string) (said string, r exercise.Record) {
	t.Helper()
	dir := scratch(t)
	require.NoError(t, all.Write(dir))
	var out bytes.Buffer
	flags = append(flags, "-skip", "TestLock/^(every_order|a_long_wait)")
	_, err := w.test(t.Context(), dir, &out, flags...)
	require.NoError(t, err)
	return out.String(), exercise.Recorded(dir)
}

// firstFailures are what a learner sees first: the property that the starter
// lacks, and the evidence.
var firstFailures = map[string]string{
	"1":         "one holder at a time: B arrived and was let in beside the holder; the queue: []",
	"2":         "first come, first served: B came before ",
	"3":         "waiting sends no request: 5 waiters sent ",
	"4":         "a release wakes one: one release sent 5 notifications to 5 waiters",
	"5":         "a lost reply to create does no harm: the reply to A's create was lost; now nobody holds the lock",
	"6":         "readers share, writers do not, nobody starves: reader 2 waits for reader 1",
	"semaphore": "two at a time, and no more: a permit is left, and B waits",
	"multilock": "it holds all its locks: A holds /x and /y, and C was let in",
	"election":  "one leads at a time: somebody leads, and B was let in",
}

// The starter of an exercise fails first with what its step mends, and the step itself is
// the solution. Steps 5 and 6 are climbed in parts, from the starter to the step's own
// files: each part turns those properties from ✗ to ✓ that its patch names, and its check
// asks for nothing that only a later part brings, but for the next part's own property.
func TestWhatEachVersionLacks(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	busy := make(chan struct{}, 4) // each is a build of its own
	for _, e := range exercise.All {
		for n := range max(1, len(e.Parts())) + 1 {
			t.Run(fmt.Sprint(e, ", after part ", n), func(t *testing.T) {
				t.Parallel()
				busy <- struct{}{}
				defer func() { <-busy }()
				if n == 0 {
					starts(t, w, e)
				} else {
					isAfter(t, w, e, n)
				}
				if n < len(e.Parts()) {
					lacksNext(t, w, e, n)
				}
			})
		}
	}
}

// isAfter tests an exercise as it is after part n, by a check that begins anew.
func isAfter(t *testing.T, w *workshop, e exercise.Exercise, n int) {
	all, err := e.At(n)
	require.NoError(t, err)
	said, r := w.tested(t, all)
	if !asAfter(n, e, r) { // a busy machine can be the reason
		said, r = w.tested(t, all)
	}
	assert.True(t, asAfter(n, e, r), "%s", said)
	if n < len(e.Parts()) {
		assert.Contains(t, said, " hold. Go on with "+e.Parts().Name(n+1))
	} else {
		assert.Contains(t, said, "ok  \t")
	}
}

// asAfter tells whether all was asked that is to be asked after part n, and holds, but for
// the next part's own property.
func asAfter(n int, e exercise.Exercise, r exercise.Record) bool {
	want := map[string]bool{}
	for _, p := range e.Goals {
		if bringing(e, p.Name.EN) <= n {
			want[p.Name.EN] = true
		}
	}
	if n < len(e.Parts()) {
		want[e.Parts()[n].Properties[0]] = false
	}
	return len(r.Answers) == len(want) && !slices.ContainsFunc(r.Answers, func(a exercise.Answer) bool {
		holds, asked := want[a.Property]
		return !asked || property.Verdict(a.Verdict).Accepted() != holds
	})
}

// bringing is the part that brings a property, and 0 if none does.
func bringing(e exercise.Exercise, property string) int {
	return 1 + slices.IndexFunc(e.Parts(), func(p exercise.Part) bool { return slices.Contains(p.Properties, property) })
}

// lacksNext tests that after part n none of the properties holds that part n+1 brings.
func lacksNext(t *testing.T, w *workshop, e exercise.Exercise, n int) {
	all, err := e.At(n)
	require.NoError(t, err)
	for _, name := range e.Parts()[n].Properties {
		_, r := w.tested(t, all, "-run", exercise.Run(name))
		require.Len(t, r.Answers, 1, "%q is a goal of %s", name, e)
		assert.False(t, property.Verdict(r.Answers[0].Verdict).Accepted(), "%q holds before part %d: %s", name, n+1, r.Answers[0].Evidence)
	}
}

// starts tests the starter of an exercise: what go test says of it first, and that all
// that no part brings holds in a step with parts.
func starts(t *testing.T, w *workshop, e exercise.Exercise) {
	all, err := e.Laid()
	require.NoError(t, err)
	said, r := w.tested(t, all)
	name, evidence, _ := strings.Cut(firstFailures[e.Name], ": ")
	assert.Contains(t, said, "TestLock/"+strings.ReplaceAll(name, " ", "_"), "the first failure")
	assert.Contains(t, said, "seen: "+evidence)
	assert.Contains(t, said, "ask yourself: ")
	first := slices.IndexFunc(r.Answers, func(a exercise.Answer) bool { return !property.Verdict(a.Verdict).Accepted() })
	require.GreaterOrEqual(t, first, 0, said)
	assert.Equal(t, name, r.Answers[first].Property, "the first failure")
	if len(e.Parts()) == 0 {
		return
	}
	assert.Contains(t, said, "Go on with "+e.Parts().Name(1))
	var others []string
	for _, p := range e.Goals {
		if bringing(e, p.Name.EN) == 0 {
			others = append(others, strings.ReplaceAll(p.Name.EN, " ", "_"))
		}
	}
	said, r = w.tested(t, all, "-run", "^TestLock$/^("+strings.Join(others, "|")+")$")
	assert.Contains(t, said, "ok  \t", "what no part brings")
	assert.Equal(t, len(others), e.Held(r), "what no part brings")
}

// What a learner begins with is in the reader's language only, and its TODOs are numbered
// as they are read: those of steps 5 and 6 by their parts.
func TestTheStarters(t *testing.T) {
	before := map[string]string{"3": "step02_sequential_spin", "4": "step03_children_watch"}
	for _, e := range exercise.All {
		t.Run(e.Name, func(t *testing.T) {
			inEnglish, err := e.Laid()
			require.NoError(t, err)
			t.Setenv("ZKLOCK_LANG", "zh")
			inChinese, err := e.Laid()
			require.NoError(t, err)
			for name, text := range inEnglish {
				todos := regexp.MustCompile(`// TODO(?: |, part )(\d)`).FindAllStringSubmatch(string(text), -1)
				theirs := regexp.MustCompile(`// 待办(?: |，第 )(\d)`).FindAllStringSubmatch(string(inChinese[name]), -1)
				assert.False(t, strings.Contains(string(text), "// 待办"), name)
				assert.False(t, strings.Contains(string(inChinese[name]), "// TODO"), name)
				require.Len(t, theirs, len(todos), name)
				for i, todo := range todos {
					assert.Equal(t, todo[1], theirs[i][1], "TODO %d of %s in Chinese", i, name)
					if len(e.Parts()) == 0 {
						assert.Equal(t, fmt.Sprint(i+1), todo[1], "TODO %d of %s", i, name)
					}
				}
				own, err := os.ReadFile(filepath.Join(e.Home, name))
				if given := err == nil && len(todos) == 0 && !strings.HasSuffix(name, "_test.go"); given {
					assert.Equal(t, string(withoutHead(own)), string(withoutHead(text)), "%s, as it is in the step", name)
				}
				if home := before[e.Name]; home != "" && name == "lock.go" {
					earlier, err := os.ReadFile(filepath.Join(home, name))
					require.NoError(t, err)
					assert.Equal(t, code(earlier), code(text), "the code of the step before")
				}
			}
		})
	}
}

// withoutHead leaves out what a file is called and what it is for.
func withoutHead(text []byte) []byte {
	return regexp.MustCompile(`(?s)^.*?\npackage \w+\n`).ReplaceAll(append([]byte("\n"), text...), nil)
}

// code is a file without comments and empty lines.
func code(text []byte) string {
	return regexp.MustCompile(`(?m)^\s*(//.*)?\n`).ReplaceAllString(string(withoutHead(text)), "")
}

func TestHintsLeadFromTheFirstFailure(t *testing.T) {
	for _, e := range exercise.All {
		known := []string{notWoken.EN}
		for _, p := range e.Goals {
			known = append(known, p.Name.EN)
		}
		sections := sections(e)
		require.NotEmpty(t, sections, e)
		assert.True(t, strings.HasPrefix(firstFailures[e.Name], sections[0].property+": "), "%s begins with hints for %q", e, sections[0].property)
		for _, s := range sections {
			assert.Contains(t, known, s.property, "%s has hints for it", e)
			assert.GreaterOrEqual(t, len(s.hints), 3, "%s, %q: how many hints", e, s.property)
			assert.Contains(t, s.hints[0], "?", "%s, %q: the first is a question", e, s.property)
		}
	}
}

// Whatever a learner writes, the answer is short and comes soon.
func TestAVersionThatIsNotRightYet(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	goals := len(step(t, "4").Goals)
	for name, c := range map[string]struct {
		lock, unlock string
		says         []string
	}{
		"it panics":               {`panic("oh")`, "return nil", []string{"it_can_be_locked", "seen: panic: oh, at lock.go:13"}},
		"Lock waits for ever":     {"select {}", "return nil", []string{"seen: nobody held the lock, A called Lock, and it has not come back", theOthers(goals)}},
		"Unlock never comes back": {"return nil", "select {}", []string{"seen: A held the lock and called Unlock, which has not come back"}},
		"it does not sleep":       {"_, err := l.conn.Create(l.path, nil, 1, zk.WorldACL(zk.PermAll)); for err != nil { if there, _, lost := l.conn.Exists(l.path); lost != nil || !there { return lost } }; return nil", "return nil", []string{": it does not sleep", "ask yourself: what makes B rest between two requests"}},
		"nobody is woken":         {"if _, err := l.conn.Create(l.path, nil, 1, zk.WorldACL(zk.PermAll)); err != nil { select {} }; return nil", "return l.conn.Delete(l.path, -1)", []string{"seen: A has released the lock, and 4s later B still waits; since then B sent 0 requests"}},
		"everybody is inside":     {"return nil", "return nil", []string{"TestLock/one_holder_at_a_time", "0 of 1 that were asked hold", theOthers(goals - 1)}},
		"it does not compile":     {"return dunno", "return nil", []string{"lock.go:13:53: undefined: dunno"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := step(t, "4").Laid()
			require.NoError(t, err)
			const head = "package step4\n\nimport (\n\t\"context\"\n\n\t\"github.com/go-zookeeper/zk\"\n)\n\ntype Lock struct{ conn *zk.Conn; path string }\n\n" +
				"func New(conn *zk.Conn, path string) *Lock { return &Lock{conn, path} }\n\n"
			all["lock.go"] = []byte(head + "func (l *Lock) Lock(context.Context) error { " + c.lock + " }\nfunc (l *Lock) Unlock() error { " + c.unlock + " }\n\nvar ErrNotHeld error\n")
			said, _ := w.tested(t, all)
			if !strings.Contains(said, c.says[0]) { // a busy machine can be the reason
				said, _ = w.tested(t, all)
			}
			for _, says := range c.says {
				assert.Contains(t, said, says)
			}
			assert.NotContains(t, said, "goroutine ")
		})
	}
}

// theOthers is what a check says of those that it has not asked for.
func theOthers(n int) string {
	return fmt.Sprintf("The other %d are asked when what has failed holds.", n)
}

// A property of an earlier part that does not hold any more is told before that of the
// part that the learner is in.
func TestAnEarlierPartIsBroken(t *testing.T) {
	t.Parallel()
	e := step(t, "5")
	all, err := e.At(2)
	require.NoError(t, err)
	const isRight, givesUp = "if !l.s.canRetry(err) {\n\t\t\treturn err", "if true {\n\t\t\treturn err" // in leave
	require.Contains(t, string(all["lock.go"]), isRight)
	all["lock.go"] = bytes.Replace(all["lock.go"], []byte(isRight), []byte(givesUp), 1)
	dir := scratch(t)
	require.NoError(t, all.Write(dir))
	var r exercise.Record
	for _, p := range e.Parts()[:2] { // as when parts 1 and 2 were done
		r.Answers = append(r.Answers, exercise.Answer{Property: p.Properties[0], Verdict: string(property.Yes)})
	}
	require.NoError(t, r.Keep(dir))
	var out bytes.Buffer
	_, err = newWorkshop(t).test(t.Context(), dir, &out)
	require.NoError(t, err)
	assert.Contains(t, out.String(), "1 of 2 that were asked hold. Go on with part 2 of 5: A lost reply to delete: the sure release.\n")
}

// After part 2 an Unlock that should be refused is not, and the last check has said so.
// It is asked for again, and told before the property of part 3, which does not hold yet.
// Once it holds, all is asked that the lock can have after part 2: the last check had
// come to an end there. Then part 3 is next.
func TestWhatFailedLastTimeIsAskedFirst(t *testing.T) {
	t.Parallel()
	w, e := newWorkshop(t), step(t, "5")
	right, err := e.At(2)
	require.NoError(t, err)
	const refuses, lets = `failed("unlock", l.dir, ErrNotHeld)`, "nil"
	require.Equal(t, 1, strings.Count(string(right["lock.go"]), refuses))
	wrong := maps.Clone(right)
	wrong["lock.go"] = bytes.Replace(right["lock.go"], []byte(refuses), []byte(lets), 1)
	dir := scratch(t)
	check := func(version exercise.Files) (said string) {
		require.NoError(t, version.Write(dir))
		var out bytes.Buffer
		_, err := w.test(t.Context(), dir, &out)
		require.NoError(t, err)
		return out.String()
	}
	broken, next := property.UnlockTooMany, e.Parts()[2].Properties[0]
	var r exercise.Record
	for _, p := range e.Parts()[:2] {
		r.Answers = append(r.Answers, exercise.Answer{Property: p.Properties[0], Verdict: string(property.Yes)})
	}
	r.Failed = []string{broken.Name.EN, e.Parts()[4].Properties[0]} // that of part 5 is not to be asked yet
	require.NoError(t, r.Keep(dir))

	said := check(wrong)
	assert.Contains(t, said, "--- FAIL: "+underscored("TestLock/"+broken.Name.EN))
	assert.NotContains(t, said, underscored("TestLock/"+next))
	said = check(right)
	assert.NotContains(t, said, underscored("TestLock/"+broken.Name.EN))
	assert.Contains(t, said, "--- FAIL: "+underscored("TestLock/"+next))
	after := 0
	for _, p := range e.Goals {
		if bringing(e, p.Name.EN) <= 2 {
			after++
		}
	}
	assert.Contains(t, said, fmt.Sprintf("%d of %d that were asked hold. Go on with part 3 of 5: ", after, after+1))
}

func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

// The folder of the learner's is no part of what ./... means, and what git shows.
func TestTheLearnersFolderStaysOutside(t *testing.T) {
	dir := scratch(t)
	require.NoError(t, exercise.Files{"lock.go": []byte("package unfinished\n\nvar lock = \n")}.Write(dir))
	for _, args := range [][]string{{"go", "list", "./..."}, {"git", "status", "--porcelain", "--untracked-files=all"}} {
		said, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", said)
		assert.NotContains(t, string(said), "yours/")
		assert.NotContains(t, string(said), "go.work")
	}
}

func TestHintResetProgressAndSolution(t *testing.T) {
	elsewhere(t)
	w, e := newWorkshop(t), step(t, "6")
	keeps := func(missing ...*property.Property) {
		var r exercise.Record
		yours, err := exercise.Yours(e.Dir())
		require.NoError(t, err)
		r.Version = yours.Version()
		for _, p := range e.Goals {
			verdict := property.Yes
			if slices.Contains(missing, p) {
				verdict = property.No
			}
			r.Answers = append(r.Answers, exercise.Answer{Property: p.Name.EN, Verdict: string(verdict)})
		}
		require.NoError(t, r.Keep(e.Dir()))
	}

	goals := len(e.Goals)
	assert.Contains(t, w.typed(t, "", "progress"), fmt.Sprintf("step 6     ░░░░░░░░░░░░░░░░░░░░   0/%d  not begun", goals))
	assert.Contains(t, w.typed(t, "", "reset", "6"), "is the starter already")
	assert.Contains(t, w.typed(t, "", "hint", "6"), "hint 1 of 5")
	second := w.typed(t, "", "hint", "06")
	assert.Contains(t, second, "hint 2 of 5")
	assert.Contains(t, second, "More direct: make hint STEP=6")

	mine := exercise.Files{"lock.go": []byte("package step6 // mine\n"), "added.go": []byte("package step6 // mine, too\n")}
	require.NoError(t, mine.Write(e.Dir()))
	assert.Contains(t, w.typed(t, "", "progress"), "not checked yet")
	keeps(property.Upgrade)
	assert.Contains(t, w.typed(t, "", "progress"), fmt.Sprintf("███████████████████░  %d/%d  next: write inside a read hold is refused", goals-1, goals))
	assert.Regexp(t, "(?s)hint 1 of 3.*Two readers are inside", w.typed(t, "", "hint", "6"))
	keeps(property.Upgrade, property.WaiterCrash)
	assert.Regexp(t, "(?s)hint 1 of 3.*Your predecessor has gone.", w.typed(t, "", "hint", "6"), "an earlier step's hints")
	keeps(property.ManyShare)
	assert.Regexp(t, "(?s)hint 1 of 1.*Why it matters: ", w.typed(t, "", "hint", "6"), "not the question that the check has asked")
	notWoken := property.OneHolder
	keeps(notWoken)
	r := exercise.Recorded(e.Dir())
	r.Answers[0].Evidence = fmt.Sprintf("waited in vain for %s", fmt.Sprintf("%v's Lock to return", "A"))
	require.Equal(t, notWoken.Name.EN, r.Answers[0].Property)
	require.NoError(t, r.Keep(e.Dir()))
	assert.Regexp(t, "(?s)hint 1 of 3.*A waiter sleeps although nobody stands before it.", w.typed(t, "", "hint", "6"))
	r.Answers = []exercise.Answer{{Property: property.Upgrade.Name.EN, Verdict: string(property.Yes)}}
	require.NoError(t, r.Keep(e.Dir()))
	assert.Contains(t, w.typed(t, "", "hint", "6"), "step 6: all properties that were asked hold.", "one property was asked, by -run")
	keeps()
	assert.Contains(t, w.typed(t, "", "progress"), fmt.Sprintf("████████████████████  %d/%d  done", goals, goals))
	assert.Contains(t, w.typed(t, "", "hint", "6"), fmt.Sprintf("All %d properties hold", goals))
	assert.Regexp(t, `(?s)\+ the step's own, step06_shared_lock\n.*\n\+	count    map\[kind\]int.*\n\+	own, ownKind, _ := number\(mine\)`,
		w.typed(t, "", "solution", "6"))

	assert.Contains(t, w.typed(t, "n\n", "reset", "6"), "nothing was changed")
	assert.FileExists(t, filepath.Join(e.Dir(), "added.go"))
	said := w.typed(t, "y\n", "reset", "6")
	assert.Contains(t, said, "the starter is back")
	changed, err := e.Changed()
	require.NoError(t, err)
	assert.False(t, changed)
	aside := regexp.MustCompile(`put aside in (\S+)\.`).FindStringSubmatch(said)
	require.Len(t, aside, 2)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(aside[1])) })
	assert.FileExists(t, filepath.Join(aside[1], "added.go"))

	first := step(t, "")
	assert.Equal(t, "1", first.Name, "the first that is not done")
	e = first
	_, err = e.Lay()
	require.NoError(t, err)
	keeps()
	assert.Contains(t, w.typed(t, "", "hint"), "step 2, ")
	for _, args := range [][]string{{}, {"dance"}, {"part", "4"}, {"replay", "4"}, {"replay", "election"}, {"check", "7"}, {"check", "4", "5"}, {"hunt", "W99"}} {
		_, err := w.said("", func(w *workshop) error { return w.run(t.Context(), args) })
		assert.Error(t, err, "%v is accepted", args)
	}
}

// What was found is kept. The page of a property that failed shows the learner's lock
// beside the step's own.
func TestALockIsCheckedAndReplayed(t *testing.T) {
	elsewhere(t)
	w, e := newWorkshop(t), step(t, "4")
	said := w.typed(t, "", "check", "4")
	assert.Contains(t, said, "step 4: your package is laid in ")
	assert.Contains(t, said, "go test ./yours/scratch")
	assert.Contains(t, said, `Go on with "a release wakes one".`)
	assert.Contains(t, w.typed(t, "", "replay", "4"), `step 4, "a release wakes one", yours beside the step's own: file://`)
	page, err := os.ReadFile(filepath.Join("out", "exercise", "4.html"))
	require.NoError(t, err)
	for _, shown := range []string{"4 (yours)", "4 (the step's own)", "one release sent 5 notifications to 5 waiters"} {
		assert.Contains(t, string(page), shown)
	}

	own, err := e.At(1)
	require.NoError(t, err)
	require.NoError(t, own.Write(e.Dir()))
	said = w.typed(t, "", "check", "4")
	assert.Contains(t, said, fmt.Sprintf("\nAll %d hold. The step's own lock beside yours: make solution STEP=4\n", len(e.Goals)))
	assert.Contains(t, said, "\nNot tested: a data race: go test -race looks for those.\n")
	assert.True(t, e.Done())
}

// The properties' answers are kept, so the orders alone are asked. Then a waiter that gives
// up leaves its znode.
func TestTheOrdersAreAskedLast(t *testing.T) {
	elsewhere(t)
	w, e := newWorkshop(t), step(t, "4")
	_, err := e.Lay()
	require.NoError(t, err)
	own, err := e.At(1)
	require.NoError(t, err)
	asked := func(lock exercise.Files, run string) (passes bool, said string) {
		require.NoError(t, lock.Write(e.Dir()))
		var out strings.Builder
		passes, err = w.test(t.Context(), e.Dir(), &out, "-v", "-run", "TestLock/"+run)
		require.NoError(t, err)
		return passes, out.String()
	}
	passes, said := asked(own, ".")
	assert.True(t, passes, said)
	assert.Regexp(t, `All properties hold. Now the orders .*\n(?s:.*) [0-9]+ orders, and none is wrong`, said)
	assert.Contains(t, said, "2 waiters sent 0 requests between 8 pings")

	const leaves = "{ // or gone with its session"
	require.Equal(t, 1, strings.Count(string(own["lock.go"]), leaves), "places for the change")
	did, does := "err := l.conn.Delete(node, -1)\n\tif err == nil || errors.Is(err, zk.ErrNoNode) "+leaves, "var err error\n\tif err == nil "+leaves
	own["lock.go"] = []byte(strings.Replace(string(own["lock.go"]), did, does, 1))
	passes, said = asked(own, "^every_order") // by itself
	assert.False(t, passes, said)
	assert.Contains(t, said, "one in which a znode is left behind:")
	assert.Contains(t, said, " GIVES UP\n")

	passes, said = asked(own, "no_such_property")
	assert.False(t, passes, said)
	assert.Contains(t, said, "-run names no property of this exercise. They are: it can be locked and unlocked, one holder at a time, ")
}

func TestPartShowsBeforeAndAfter(t *testing.T) {
	t.Setenv("PART", "5")
	said := newWorkshop(t).typed(t, "", "part", "5")
	assert.Contains(t, said, "Step 5, part 5 of 5: The token\n")
	assert.Contains(t, said, "\n+			mine.token = stat.Pzxid\n")
	assert.Contains(t, said, "\nbefore  ✗ each tenure's token is greater than the last: ")
	assert.Contains(t, said, "\nafter   ✓ each tenure's token is greater than the last: ")
}

func TestHuntKnowsEachPublishedMistake(t *testing.T) {
	for _, m := range tables.Mistakes {
		t.Run(m.Key(), func(t *testing.T) {
			code, err := codeOf(m)
			require.NoError(t, err)
			assert.NotRegexp(t, `W[0-9]|the mistake:|property`, code, "what tells")
			assert.NotContains(t, code, "func Test")
			told, err := told(m)
			require.NoError(t, err)
			assert.Contains(t, told, m.Name)
			assert.Contains(t, told, "`"+m.Test+"`")
			file, err := os.ReadFile(m.File())
			require.NoError(t, err)
			_, test, _ := strings.Cut(string(file), "\nfunc "+m.Test)
			test, _, _ = strings.Cut(test, "\n}\n")
			asked := strings.Contains(test, "property.Lacks(")
			assert.Equal(t, asked, m.Suffers == "" || m.ShowsTwoInside, "a property asks for it")
		})
	}
}

// W8 does not look again after a wake-up. A lost reply to create does harm all the same,
// as it does in step 4.
func TestHuntHoldsTheLockAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	answer := 1 + slices.Index(property.Properties, property.LostCreateReply)
	said := w.typed(t, fmt.Sprintln(answer), "hunt", "8")
	assert.Contains(t, said, "✗ a waiter's crash lets nobody in: ")
	assert.Contains(t, said, "✗ a lost reply to create does no harm: ")
	assert.Contains(t, said, "\nTrue, and step 4 lacks that, too. What did this change break?\n\nW8: trusts the wake-up\n")
	_, err := w.said("", func(w *workshop) error { return w.hunt(t.Context(), "") })
	assert.ErrorContains(t, err, "this is no number of the list")

	seen := []string{"✗ a waiter's crash lets nobody in: B is in", "✓ a crashed holder's lock comes free: it is"}
	for _, c := range []struct {
		mistake int
		named   string
		right   bool
	}{
		{8, property.WaiterCrash.Name.EN, true}, {8, property.CrashFrees.Name.EN, false}, {8, property.OneHolder.Name.EN, true},
		{7, tables.Nothing, true}, {12, tables.Nothing, false}, {10, property.OneHolder.Name.EN, true},
	} {
		right, _ := isRight(tables.Mistakes[c.mistake-1], c.named, seen)
		assert.Equal(t, c.right, right, "W%d lacks %q", c.mistake, c.named)
	}
}
