package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/teach/exercise"
	"zklock/internal/teach/exercise/wronglocks"
)

// Three dangerous wrong locks, as a learner would check them: by go test alone. The list of
// wrong locks holds them all against the same properties.
func TestADangerousLockIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	busy := make(chan struct{}, 2) // each is a build of its own
	for _, name := range []string{
		"one guid for all calls",
		"lists without asking first",
		"takes the lease after the list",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy <- struct{}{}
			defer func() { <-busy }()
			v := wrong(t, name)
			all := complete(t, v)
			said, r := w.tested(t, all)
			failed := lacks(r)
			require.NotEmpty(t, failed, said)
			if failed[0].Property != v.Rejects.Name.EN { // one before it may reject it as well
				said, r = w.tested(t, all, "-run", exercise.Run(v.Rejects.Name.EN))
				failed = lacks(r)
			}
			require.Len(t, failed, 1, said)
			assert.Equal(t, v.Rejects.Name, failed[0].Property)
			assert.Contains(t, failed[0].Evidence, v.Words)
			assert.Contains(t, said, "--- FAIL: TestLock/"+strings.ReplaceAll(v.Rejects.Name.EN, " ", "_"))
			assert.Contains(t, said, "seen: ")
			assert.Contains(t, said, "ask yourself: ")
		})
	}
}

// lacks are the answers of a record that say no.
func lacks(r exercise.Record) []exercise.Answer {
	return slices.DeleteFunc(r.Answers, func(a exercise.Answer) bool { return property.Verdict(a.Verdict).Accepted() })
}

// wrong is the variant of step 5 with a name.
func wrong(t *testing.T, name string) wronglocks.Variant {
	t.Helper()
	i := slices.IndexFunc(wronglocks.All, func(v wronglocks.Variant) bool { return v.Step == 5 && v.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return wronglocks.All[i]
}

// complete is the learner's package with the variant's lock.
func complete(t *testing.T, v wronglocks.Variant) exercise.Files {
	t.Helper()
	all, err := step(t, "5").Laid()
	require.NoError(t, err)
	files, err := v.Files()
	require.NoError(t, err)
	maps.Copy(all, files)
	return all
}

// leaving is the solution of step 4, in which a waiter that leaves begins with this line.
func leaving(t *testing.T, line string) exercise.Files {
	t.Helper()
	all, err := step(t, "4").At(1)
	require.NoError(t, err)
	const head = "\nfunc (l *Lock) leave(node string) error {\n"
	before, after, found := strings.Cut(string(all["lock.go"]), head)
	require.True(t, found)
	all["lock.go"] = []byte(before + head + "\t" + line + "\n" + after)
	return all
}

// What ends the process, or is left in it, is told with the property that was asked.
func TestTheProcessEndsOrIsLeftWithAGoroutine(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	for name, c := range map[string]struct {
		line string // with which a waiter that gives up begins to leave
		says []string
	}{
		"a panic in a goroutine": {`go func() { panic("oh") }()`,
			[]string{"seen: panic: oh, at lock.go:", "ask yourself: what is at this line"}},
		"os.Exit": {`println("bye"); func() { os.Exit(3) }()`,
			[]string{"seen: the process ended with code 3, as by os.Exit", "ask yourself: whose process is it", "printed: bye"}},
		"a goroutine is left behind": {`go func() { select {} }()`,
			[]string{"seen: a goroutine was left behind, at lock.go:", "ask yourself: what ends this goroutine"}},
		"a line is printed": {`fmt.Println("leaving", node)`,
			[]string{"leaving /"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := leaving(t, c.line)
			if strings.Contains(c.line, "os.") {
				all["lock.go"] = bytes.Replace(all["lock.go"], []byte("import (\n"), []byte("import (\n\t\"os\"\n"), 1)
			}
			said, r := w.tested(t, all, "-v")
			for _, says := range c.says {
				assert.Contains(t, said, says)
			}
			assert.NotContains(t, said, "goroutine 1")
			if name == "a line is printed" {
				assert.Contains(t, said, fmt.Sprintf("All %d hold.", len(step(t, "4").Goals)))
				return
			}
			assert.NotContains(t, said, "All ")
			assert.Contains(t, said, "--- FAIL: TestLock/")
			assert.NotNil(t, step(t, "4").Missing(r))
		})
	}
}

// A lock that hangs only when it gives up is told so soon, and by name.
func TestAHangThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	all := leaving(t, `select {}`)
	began := time.Now()
	said, _ := w.tested(t, all)
	t.Logf("told after %.1f s", time.Since(began).Seconds())
	assert.Contains(t, said, "seen: ")
	assert.Equal(t, 1, strings.Count(said, "    --- FAIL: TestLock/"), said)
}
