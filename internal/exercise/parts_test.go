package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Steps 5 and 6 are climbed in parts. Each part is a short diff, and is good for one
// property: that one turns from ✗ to ✓, and no other answer changes. The parts lead
// from the exercise's starter to the step's own files.
func TestEachPartTurnsItsOwnProperty(t *testing.T) {
	t.Parallel()
	const projector = 70 // lines
	for name, count := range map[string]int{"05": 5, "06": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := find(name)
			require.NoError(t, err)
			parts := e.parts()
			require.Len(t, parts, count, "the parts of step %s", name)
			for n, p := range parts {
				assert.LessOrEqual(t, p.changed(), projector, "lines that part %d changes", n+1)
			}

			last, err := e.at(t.Context(), count)
			require.NoError(t, err)
			own, err := e.own()
			require.NoError(t, err)
			for file := range own {
				assert.Equal(t, string(own[file]), string(last[file]), "%s, and what the parts lead to", file)
			}

			for n := range count + 1 {
				j := testJudge(t)
				program, err := j.buildPart(t.Context(), e, n)
				require.NoError(t, err, "part %d", n)
				want, answers := map[string]string{}, map[string]string{}
				for _, a := range j.verdicts(t, program, e) {
					want[a.Property], answers[a.Property] = "✓", a.Verdict
					if e.part(a.Property) > n {
						want[a.Property] = "✗"
					}
					if a.Verdict != want[a.Property] { // a busy machine can be the reason
						_, err := j.ask(t.Context(), program, e, only(a.Property), func(a answer) { answers[a.Property] = a.Verdict })
						require.NoError(t, err)
					}
				}
				assert.Equal(t, want, answers, "the answers after part %d", n)
			}
		})
	}
}

// Whoever writes step 5 is told the part, and its property comes first.
func TestTheCheckGoesPartByPart(t *testing.T) {
	t.Parallel()
	e, err := find("5")
	require.NoError(t, err)
	files, err := e.at(t.Context(), 2)
	require.NoError(t, err)
	var out bytes.Buffer
	r := record{Of: 17, Missing: e.parts()[1].property} // as when part 2 was not done
	err = testJudge(t).checkFiles(t.Context(), e, e.replacedBy(files), &r, &out)
	require.ErrorIs(t, err, errUnfinished)
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, "You are in part 2 of 5: A lost reply to delete: the sure release. Its property comes first.", lines[0])
	assert.Contains(t, lines[1], "✓ a lost reply to delete does no harm: ")
	assert.Contains(t, out.String(), "14 of 17 hold. Go on with part 3 of 5: The holder locks again. Part 2 holds.\nAsk yourself: ")

	// What an earlier part has brought is broken: that comes first.
	out.Reset()
	r = record{Of: 17, Missing: e.parts()[4].property}
	files["lock.go"] = bytes.Replace(files["lock.go"], []byte("case !l.s.Retry(err):"), []byte("default:"), 1)
	require.ErrorIs(t, testJudge(t).checkFiles(t.Context(), e, e.replacedBy(files), &r, &out), errUnfinished)
	assert.Contains(t, out.String(), "You are in part 5 of 5: The token.")
	assert.Contains(t, out.String(), "13 of 17 hold. Go on with part 2 of 5: A lost reply to delete: the sure release.\n")
}

// What the learner's lock prints is shown, and is not taken for an answer.
func TestALockMayPrint(t *testing.T) {
	t.Parallel()
	e, err := find("4")
	require.NoError(t, err)
	files, err := e.own()
	require.NoError(t, err)
	files["lock.go"] = bytes.Replace(files["lock.go"], []byte("\tnode, err := create("), []byte("\tfmt.Println(\"here\")\n\tnode, err := create("), 1)
	var out bytes.Buffer
	require.NoError(t, testJudge(t).checkFiles(t.Context(), e, e.replacedBy(files), &record{}, &out))
	assert.Contains(t, out.String(), "Your lock printed:\nhere\nhere\n")
	assert.Contains(t, out.String(), "All 12 hold.")
}

func TestPartShowsBeforeAndAfter(t *testing.T) {
	t.Setenv("PART", "5")
	got := do(t, "", "part", "5")
	for _, want := range []string{
		"Step 05, part 5 of 5: The token\n",
		"\n+	return context.WithValue(ctx, tokenOf{}, h.token), nil\n",
		"\nbefore  ✗ each tenure's token is greater than the last: ",
		"\nafter   ✓ each tenure's token is greater than the last: ",
	} {
		assert.Contains(t, got, want)
	}
}

// The page of a property that failed shows the learner's lock beside the step's own.
func TestReplayShowsWhatFailed(t *testing.T) {
	outDir = t.TempDir()
	t.Cleanup(func() { outDir = "out/exercise" })
	e, err := find("4")
	require.NoError(t, err)
	require.NoError(t, e.keep(record{Missing: "a release wakes one", Of: 12}))
	got := do(t, "", "replay", "4")
	page, err := os.ReadFile(filepath.Join(outDir, "04.html"))
	require.NoError(t, err, got)
	for _, want := range []string{"4 (yours)", "4 (the step's own)", "one release sent 1 notification to 5 waiters"} {
		assert.Contains(t, string(page), want)
	}
}
