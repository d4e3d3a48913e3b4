package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/words"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	zktest.Main(m)
}

// newWorkshop is one on the test's own server.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	server, err := zktest.Shared()
	require.NoError(t, err)
	return &workshop{scratch: t.TempDir(), patience: zktest.Patience, server: server}
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

func step(t *testing.T, name string) exercise {
	t.Helper()
	e, err := find(name)
	require.NoError(t, err)
	return e
}

// firstFailures are what a learner sees first: the property that the starter
// lacks, and the evidence.
var firstFailures = map[string]string{
	"01":        "one holder at a time: B arrived and was let in beside the holder; the queue: []",
	"02":        "first come, first served: B came before ",
	"03":        "waiting sends no request: 5 waiters sent ",
	"04":        "a release wakes one: one release sent 5 notifications to 5 waiters",
	"05":        "a lost reply to create does no harm: the reply to A's create was lost; now nobody holds the lock",
	"06":        "readers share, writers do not, nobody starves: reader 2 waits for reader 1",
	"semaphore": "two at a time, and no more: a permit is left, and B waits",
	"multilock": "it holds all its locks: A holds /x and /y, and C was let in",
	"election":  "one leads at a time: somebody leads, and B was let in",
}

// The starter of an exercise fails first with what its step mends, and the step itself is
// the solution. Steps 5 and 6 are climbed in parts, from the starter to the step's own
// files: each part turns one property from ✗ to ✓, and no other answer changes. One
// program holds a version of each exercise.
func TestWhatEachVersionLacks(t *testing.T) {
	t.Parallel()
	const last = 5
	for n := range last + 1 {
		t.Run(fmt.Sprint("part ", n), func(t *testing.T) {
			t.Parallel()
			w, versions := newWorkshop(t), map[exercise]files{}
			for _, e := range exercises() {
				switch {
				case n == 0:
					versions[e] = e.starter()
				case n == last:
					versions[e] = e.own().moved()
				case n < len(e.parts()):
					version, err := w.at(t.Context(), e, n)
					require.NoError(t, err)
					versions[e] = version
				}
			}
			program, err := w.build(t.Context(), versions)
			require.NoError(t, err)
			for e := range versions {
				t.Run(e.name, func(t *testing.T) {
					t.Parallel()
					lacks(t, w, program, e, n)
				})
			}
		})
	}
}

var toldAnswer = regexp.MustCompile(`(?m)^  (✓|✗|–|\?) (.+?): (.*)$`)

// lacks tests what is reported of an exercise after part n.
func lacks(t *testing.T, w *workshop, program string, e exercise, n int) {
	parts, before := e.parts(), record{}
	n = min(n, max(1, len(parts))) // without parts, the step's own is part 1
	if n > 0 && len(parts) > 0 {
		before = record{Of: 17, Missing: parts[n-1].property} // as when this part was not done
	}
	var said string
	var err error
	var answers [][]string
	for range 2 { // for an answer, too, a busy machine can be the reason
		r := before
		said, err = w.said("", func(w *workshop) error { return w.report(t.Context(), e, program, &r) })
		answers = toldAnswer.FindAllStringSubmatch(said, -1)
		if !slices.ContainsFunc(answers, func(a []string) bool { return a[1] == "?" || a[1] == "✗" && n > 0 && parts.bringing(a[2]) <= n }) {
			break
		}
	}
	for _, a := range answers {
		inChinese(t, words.Translate(a[0]))
		switch {
		case parts.bringing(a[2]) > n:
			assert.Equal(t, "✗", a[1], "before its part: %s", a[0])
		case n > 0 || len(parts) > 0:
			assert.Equal(t, "✓", a[1], "after part %d: %s", n, a[0])
		}
	}
	if n > 0 && len(parts) > 0 {
		assert.Regexp(t, fmt.Sprintf("^You are in %s. Its property comes first.\n  ✓ %s: ", parts.name(n), parts[n-1].property), said)
	}
	switch {
	case n < len(parts):
		assert.Contains(t, said, fmt.Sprintf(" hold. Go on with %s", parts.name(n+1)))
	case n > 0:
		assert.NoError(t, err)
		assert.Contains(t, said, fmt.Sprintf("\nAll %d hold.", len(answers)))
	}
	if n == 0 {
		require.ErrorIs(t, err, errUnfinished)
		first := answers[slices.IndexFunc(answers, func(a []string) bool { return a[1] != "✓" })][0]
		assert.True(t, strings.HasPrefix(first, "  ✗ "+firstFailures[e.name]), "the first failure: %s", first)
		assert.NotContains(t, said, "\n  ? ", "the starter gets stuck")
	}
}

// notSaid are an error's own words, and what is quoted of an error.
var notSaid = regexp.MustCompile("zk: [a-z ]+|\"[^\"]*\"|`[^`]*`")

// inChinese tests that a text has no three English words in a row.
func inChinese(t *testing.T, text string) {
	t.Helper()
	assert.NotRegexp(t, `[A-Za-z]+ [a-z]+ [a-z]+`, notSaid.ReplaceAllString(text, "…"))
}

func TestTheWorkshopSpeaksChinese(t *testing.T) {
	w := newWorkshop(t)
	outDir = t.TempDir()
	t.Cleanup(func() { outDir = "out/exercise" })
	inEnglish := map[exercise][]section{}
	for _, e := range exercises() {
		inEnglish[e] = e.sections()
	}
	t.Setenv("ZKLOCK_LANG", "zh")
	code := regexp.MustCompile("(?ms)```go\n(.*?)```")
	comment := regexp.MustCompile(`(?m) *//.*$`)
	for e, want := range inEnglish {
		sections := e.sections()
		require.Len(t, sections, len(want), "the Chinese hints of %s", e)
		for i, s := range sections {
			assert.Equal(t, words.In(want[i].property), s.property)
			require.Len(t, s.hints, len(want[i].hints), "the Chinese hints of %s, %s", e, s.property)
			for j, hint := range s.hints {
				inChinese(t, code.ReplaceAllString(hint, ""))
				assert.Equal(t, comment.ReplaceAllString(strings.Join(code.FindAllString(want[i].hints[j], -1), ""), ""),
					comment.ReplaceAllString(strings.Join(code.FindAllString(hint, -1), ""), ""), "the code in %s, %s", e, s.property)
			}
		}
		require.NoError(t, e.keep(record{Version: e.yours().version(), Held: 3, Of: 9, Missing: want[len(want)-1].property}))
		hint := w.typed(t, "", "hint", e.name)
		assert.Contains(t, hint, "，“"+words.In(want[len(want)-1].property)+"”，提示 1/")
	}
	inChinese(t, w.typed(t, "", "progress"))
	inChinese(t, w.typed(t, "", "part", "5"))
	inChinese(t, w.typed(t, "n\n", "reset", "6"))
	for _, args := range [][]string{{"part", "4"}, {"replay", "election"}, {"check", "7"}, {"hunt", "W18"}} {
		_, err := w.said("", func(w *workshop) error { return w.run(t.Context(), args) })
		require.Error(t, err)
		inChinese(t, words.In(err.Error()))
	}
	for n := 1; n <= 22; n++ {
		m, err := findMistake(n)
		require.NoError(t, err)
		inChinese(t, m.told())
	}
}

func TestEachPartIsShortAndTheLastIsTheStep(t *testing.T) {
	const projector = 70 // lines
	for name, count := range map[string]int{"05": 5, "06": 3} {
		e := step(t, name)
		parts := e.parts()
		require.Len(t, parts, count, "the parts of step %s", name)
		for n, p := range parts {
			assert.LessOrEqual(t, p.changed(), projector, "lines that part %d changes", n+1)
		}
		last, err := newWorkshop(t).at(t.Context(), e, count)
		require.NoError(t, err)
		for file, own := range e.own().moved() {
			assert.Equal(t, string(own), string(last[file]), "%s, and what the parts lead to", file)
		}
	}
}

// Whoever has begun an exercise may run the tests all the same: only where CI
// is set, as hosts for continuous integration do, must the starters be in place.
func TestTheStartersAreInPlace(t *testing.T) {
	for _, e := range exercises() {
		for name, text := range e.starter() {
			todo, inChinese := regexp.MustCompile(`(?m)^\s*// TODO (\d)`), regexp.MustCompile(`(?m)^\s*// 待办 (\d)`)
			assert.Len(t, inChinese.FindAll(text, -1), len(todo.FindAll(text, -1)), "%s, %s: the TODOs in Chinese", e, name)
		}
		assert.False(t, e.changed() && os.Getenv("CI") != "", "%s is not as in internal/exercise/starters/%s: copy one to the other", e.dir(), e.name)
	}
}

// Steps 1 to 4 give the step's own errors.go. That of steps 5 and 6 is the part of
// it which is no method of the Session: this is the step's own, and so are its
// errors.
func TestWhatIsGivenIsAsInTheStep(t *testing.T) {
	for _, e := range exercises() {
		if !e.isStep() {
			continue
		}
		is := string(read([]string{e.path(given)})[given])
		own := string(read([]string{filepath.Join(e.home, given)}).moved()[given])
		if len(e.parts()) == 0 {
			assert.Equal(t, "//lint:file-ignore U1000 given: your lock will use it\n\n"+own, is, e.path(given))
			continue
		}
		for _, name := range regexp.MustCompile(`(?m)^\t(Err\w+)`).FindAllStringSubmatch(own, -1) {
			assert.Regexp(t, name[1]+`\s+= \w+\.`+name[1]+`\n`, is, "%s: an error of the step", e.path(given))
		}
		// Before the Session's Retry is used, such an error does not say that it is closed.
		own = regexp.MustCompile(`(?m)^\tcase unanswered.*\n.*\n`).ReplaceAllString(own, "")
		for _, name := range []string{"check", "ended", "failed"} {
			f := regexp.MustCompile(`(?ms)^// ` + name + ` .*?^}\n`).FindString(own)
			require.NotEmpty(t, f, "%s: %s", e.home, name)
			assert.Contains(t, is, f, "%s, and what it is in the step", e.path(given))
		}
	}
}

func TestHintsLeadFromTheFirstFailure(t *testing.T) {
	known := []string{lockcheck.ByKind.Name, lockcheck.Upgrade.Name}
	for _, p := range slices.Concat(lockcheck.Properties, lockcheck.SemaphoreProperties, lockcheck.MultiLockProperties, lockcheck.ElectionProperties) {
		known = append(known, p.Name)
	}
	for _, e := range exercises() {
		sections := e.sections()
		require.NotEmpty(t, sections, e)
		assert.True(t, strings.HasPrefix(firstFailures[e.name], sections[0].property+": "), "%s begins with hints for %q", e, sections[0].property)
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
	code := func(lock, unlock string) files {
		const head = "package exercise\n\nimport (\n\t\"context\"\n\n\t\"github.com/go-zookeeper/zk\"\n)\n\ntype Lock struct{ conn *zk.Conn }\n\n" +
			"func New(conn *zk.Conn, path string) *Lock { return &Lock{conn} }\n\n"
		return files{"lock.go": []byte(head + "func (l *Lock) Lock(context.Context) error { " + lock + " }\nfunc (l *Lock) Unlock() error { " + unlock + " }\n")}
	}
	w := newWorkshop(t)
	broken, err := w.at(t.Context(), step(t, "5"), 2)
	require.NoError(t, err)
	broken["lock.go"] = bytes.Replace(broken["lock.go"], []byte("case !l.s.Retry(err):"), []byte("default:"), 1)
	program, err := w.build(t.Context(), map[exercise]files{
		step(t, "2"): code(`panic("oh")`, "return nil"),
		step(t, "3"): code("return nil", "select {}"),
		step(t, "4"): code("select {}", "return nil"),
		step(t, "5"): broken,
	})
	require.NoError(t, err)
	lastPart := step(t, "5").parts()[4].property
	for name, c := range map[string]struct {
		step     string
		patience time.Duration
		says     []string
	}{
		"it panics":                 {"2", 2 * time.Second, []string{"panic: oh", "at step02_sequential_spin/exercise/lock.go:13"}},
		"Unlock never comes back":   {"3", 2 * time.Second, []string{"? a stranger cannot release it: a call without a context, such as Unlock, has not come back"}},
		"Lock waits for ever":       {"4", 2 * time.Second, []string{"? one holder at a time: waited in vain for ", "\nAsk yourself: ", "0 of 12 hold"}},
		"an earlier part is broken": {"5", w.patience, []string{"You are in part 5 of 5: The token.", "13 of 17 hold. Go on with part 2 of 5: A lost reply to delete: the sure release.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := *w
			w.patience = c.patience
			said, err := w.said("", func(w *workshop) error {
				return w.report(t.Context(), step(t, c.step), program, &record{Of: 17, Missing: lastPart})
			})
			require.Error(t, err)
			said += err.Error()
			for _, says := range c.says {
				assert.Contains(t, said, says)
			}
			assert.NotRegexp(t, "goroutine |exit status", said)
		})
	}
	t.Run("it does not compile", func(t *testing.T) {
		t.Parallel()
		said, err := newWorkshop(t).said("", func(w *workshop) error {
			return w.check(t.Context(), step(t, "4"), code("return nil", "return dunno"))
		})
		require.ErrorIs(t, err, errUnfinished)
		assert.Contains(t, said, "lock.go:14:40: undefined: dunno")
		assert.NotRegexp(t, "# zklock|exit status", said)
	})
}

func TestHintResetProgressAndSolution(t *testing.T) {
	w, copied := newWorkshop(t), t.TempDir()
	for _, e := range exercises() {
		hints := read([]string{e.path("hints.md")})
		require.NoError(t, hints.write(filepath.Join(copied, e.dir())))
		require.NoError(t, e.starter().write(filepath.Join(copied, e.dir())))
		require.NoError(t, e.own().write(filepath.Join(copied, e.home)))
	}
	t.Chdir(copied)
	yours := step(t, "6")
	keeps := func(held int, missing string) {
		require.NoError(t, yours.keep(record{Version: yours.yours().version(), Held: held, Of: 20, Missing: missing}))
	}

	assert.Contains(t, w.typed(t, "", "progress"), "step 06    ░░░░░░░░░░░░░░░░░░░░    0/?  not begun")
	assert.Contains(t, w.typed(t, "", "reset", "6"), "is the starter already")
	assert.Contains(t, w.typed(t, "", "hint", "6"), "hint 1 of 5")
	second := w.typed(t, "", "hint", "06")
	assert.Contains(t, second, "hint 2 of 5")
	assert.Contains(t, second, "More direct: make hint STEP=06")

	mine := files{"lock.go": []byte("package exercise // mine\n"), "added.go": []byte("package exercise // mine, too\n")}
	require.NoError(t, mine.write(yours.dir()))
	assert.Contains(t, w.typed(t, "", "progress"), "not checked yet")
	keeps(10, lockcheck.Upgrade.Name)
	assert.Contains(t, w.typed(t, "", "progress"), "██████████░░░░░░░░░░  10/20  next: write inside a read hold is refused")
	assert.Regexp(t, "(?s)hint 1 of 3.*Two readers are inside", w.typed(t, "", "hint", "6"))
	keeps(10, lockcheck.WaiterCrash.Name)
	assert.Regexp(t, "(?s)hint 1 of 3.*Your predecessor has gone.", w.typed(t, "", "hint", "6"), "an earlier step's hints")
	keeps(20, "")
	assert.Contains(t, w.typed(t, "", "progress"), "████████████████████  20/20  done")
	assert.Contains(t, w.typed(t, "", "hint", "6"), "All 20 properties hold")
	assert.Regexp(t, `(?s)\+ the step's own, step06_shared_lock/hold.go\n.*\n\+	count map\[string\]int.*\+ the step's own, step06_shared_lock/lock.go\n.*\n\+	own, kind, _ := number\(mine\)`,
		w.typed(t, "", "solution", "6"))

	// The check of another exercise does not see what was added here.
	others := overlay(map[exercise]files{step(t, "5"): {}})
	added, replaced := others[yours.path("added.go")]
	assert.True(t, replaced, "added.go is replaced")
	assert.Nil(t, added, "what stands in the place of added.go")
	assert.Equal(t, string(yours.starter()["lock.go"]), string(others[yours.path("lock.go")]))

	assert.Contains(t, w.typed(t, "n\n", "reset", "6"), "nothing was changed")
	assert.Equal(t, string(mine["lock.go"]), string(yours.yours()["lock.go"]))
	assert.Contains(t, w.typed(t, "y\n", "reset", "6"), "the starter is back")
	assert.False(t, yours.changed())
	aside, err := filepath.Glob(filepath.Join(outDir, "old", "*", "*"))
	require.NoError(t, err)
	putAside := read(aside)
	assert.Equal(t, string(mine["lock.go"]), string(putAside["lock.go"]))
	assert.Equal(t, string(mine["added.go"]), string(putAside["added.go"]))

	first := step(t, "")
	assert.Equal(t, "01", first.name, "the first that is not done")
	require.NoError(t, first.keep(record{Version: first.yours().version(), Held: 6, Of: 6}))
	assert.Contains(t, w.typed(t, "", "hint"), "step 02, ")
	for _, args := range [][]string{{}, {"dance"}, {"part", "4"}, {"replay", "4"}, {"replay", "election"}, {"check", "7"}, {"check", "4", "5"}, {"hunt", "W23"}} {
		_, err := w.said("", func(w *workshop) error { return w.run(t.Context(), args) })
		assert.Error(t, err, "%v is accepted", args)
	}
}

// What the learner's lock prints is shown, and is not taken for an answer. What was found
// is kept. The page of a property that failed shows the learner's lock beside the step's own.
func TestALockThatPrintsIsCheckedAndReplayed(t *testing.T) {
	outDir = t.TempDir()
	t.Cleanup(func() { outDir = "out/exercise" })
	w, e := newWorkshop(t), step(t, "4")
	yours := e.own().moved()
	yours["lock.go"] = bytes.Replace(yours["lock.go"], []byte("\tnode, err := create("), []byte("\tfmt.Println(\"here\")\n\tnode, err := create("), 1)
	said, err := w.said("", func(w *workshop) error { return w.check(t.Context(), e, yours) })
	require.NoError(t, err)
	assert.Contains(t, said, "step 04: yours is in step04_predecessor_watch/exercise/lock.go\n")
	assert.Contains(t, said, "Your lock printed:\nhere\nhere\n")
	assert.Contains(t, said, "All 12 hold.")
	assert.Equal(t, record{Version: yours.version(), Held: 12, Of: 12}, e.record())

	require.NoError(t, e.keep(record{Missing: "a release wakes one", Of: 12}))
	said, err = w.said("", func(w *workshop) error { return w.replay(t.Context(), e, yours) })
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(outDir, "04.html"))
	require.NoError(t, err, said)
	for _, shown := range []string{"4 (yours)", "4 (the step's own)", "one release sent 1 notification to 5 waiters"} {
		assert.Contains(t, string(page), shown)
	}
}

func TestPartShowsBeforeAndAfter(t *testing.T) {
	t.Setenv("PART", "5")
	said := newWorkshop(t).typed(t, "", "part", "5")
	assert.Contains(t, said, "Step 05, part 5 of 5: The token\n")
	assert.Contains(t, said, "\n+	return context.WithValue(ctx, tokenOf{}, h.token), nil\n")
	assert.Contains(t, said, "\nbefore  ✗ each tenure's token is greater than the last: ")
	assert.Contains(t, said, "\nafter   ✓ each tenure's token is greater than the last: ")
}

func TestHuntKnowsEachPublishedMistake(t *testing.T) {
	for n := 1; n <= 22; n++ {
		m, err := findMistake(n)
		require.NoError(t, err)
		code := m.code()
		assert.Contains(t, code, "\nfunc (l ", "W%d: the code", n)
		assert.NotContains(t, code, "//", "W%d: comments tell", n)
		assert.NotContains(t, code, "lockcheck.", "W%d: the property tells", n)
		assert.True(t, strings.HasPrefix(m.text, "W"), "W%d is explained by %q", n, m.text)
		asked := strings.Contains(m.print(m.test), "lockcheck.Fails(")
		_, besides := suffers[n]
		assert.Equal(t, asked, !besides || n == 8, "W%d: a property asks for it", n)
	}
}

// W8 does not look again after a wake-up. A lost reply to create does harm all the same,
// as it does in step 4.
func TestHuntHoldsTheLockAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	said := w.typed(t, "12\n", "hunt", "8")
	assert.Contains(t, said, "✗ a waiter's crash lets nobody in: ")
	assert.Contains(t, said, "✗ a lost reply to create does no harm: ")
	assert.Contains(t, said, "\nTrue, and step 04 lacks that, too. What did this change break?\n\nW8, ")
	_, err := w.said("", func(w *workshop) error { return w.hunt(t.Context(), "") })
	assert.ErrorContains(t, err, "this is no number of the list")

	seen := []string{"✗ a waiter's crash lets nobody in: B is in", "✓ a crashed holder's lock comes free: it is"}
	for _, c := range []struct {
		mistake int
		named   string
		right   bool
	}{
		{8, lockcheck.WaiterCrash.Name, true}, {8, lockcheck.CrashFrees.Name, false}, {8, lockcheck.OneHolder.Name, true},
		{7, none, true}, {12, none, false}, {10, lockcheck.OneHolder.Name, true},
	} {
		right, _ := mistake{number: c.mistake}.lacks(c.named, seen)
		assert.Equal(t, c.right, right, "W%d lacks %q", c.mistake, c.named)
	}
}
