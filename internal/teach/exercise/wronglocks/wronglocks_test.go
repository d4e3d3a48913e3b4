package wronglocks

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/teach/exercise"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var only = flag.String("only", "", "the variants to try: a regular expression for 'step 5: one guid for all calls'")

func (v Variant) String() string { return fmt.Sprintf("step %d: %s", v.Step, v.Name) }

// Each wrong lock is rejected by the property that has to, with the words that say what is
// wrong. Each right one has all that is asked.
func TestTheCheckTellsWrongFromRight(t *testing.T) {
	chosen := regexp.MustCompile(*only)
	var variants []Variant
	var places []string
	for i, v := range All {
		if chosen.MatchString(v.String()) {
			variants, places = append(variants, v), append(places, strconv.Itoa(i))
		}
	}
	told := map[int]bool{}
	tell(t, variants, places, func(at int, verdicts []Verdict) {
		told[at] = true
		v := All[at]
		t.Run(v.String(), func(t *testing.T) {
			t.Logf("%s\n%v", v.Belief, verdicts[0])
			if v.Rejects == nil {
				v.isRight(t, verdicts)
			} else {
				v.isWrong(t, verdicts)
			}
		})
	})
	assert.Len(t, told, len(variants), "the variants with an answer")
}

// isRight: every property holds, or its question does not arise.
func (v Variant) isRight(t *testing.T, verdicts []Verdict) {
	for _, r := range verdicts {
		assert.True(t, lockcheck.Verdict(r.Verdict).Accepted(), "%s %s: %s", r.Verdict, r.Property, r.Evidence)
	}
}

// isWrong: the one property that was asked has rejected it.
func (v Variant) isWrong(t *testing.T, verdicts []Verdict) {
	if v.rejectedBy(verdicts[0]) {
		shown := strings.Join(strings.Fields(exercise.InTwoLines("seen: "+verdicts[0].Evidence)), " ")
		assert.Contains(t, shown, v.Words, "what is wrong stands in the two lines that a learner sees")
		return
	}
	others := slices.DeleteFunc(verdicts[1:], func(r Verdict) bool { return lockcheck.Verdict(r.Verdict).Accepted() })
	assert.Fail(t, "it is not rejected as it must be", "want %q by: %s\ngot: %v\nbesides: %v", v.Words, v.Rejects.Name, verdicts[0], others)
}

// tell lays the variants, builds the program and passes on what it says of each.
func tell(t *testing.T, variants []Variant, places []string, say func(at int, verdicts []Verdict)) {
	const root = "../../../.."
	folder, err := os.MkdirTemp(root, "_wronglocks-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, Lay(root, folder, variants))
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	program := filepath.Join(folder, "program")
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Base(program), ".")
	build.Dir = folder
	words, err := build.CombinedOutput()
	require.NoError(t, err, "%s", words)

	run := exec.CommandContext(ctx, program, places...)
	server, err := zktest.Shared()
	require.NoError(t, err)
	run.Env = append(os.Environ(), "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(server.Servers(), ","))
	var complaints strings.Builder
	run.Stderr = &complaints
	answers, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	for from := json.NewDecoder(answers); ; {
		var answer struct {
			At       int
			Verdicts []Verdict
		}
		if err := from.Decode(&answer); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		say(answer.At, answer.Verdicts)
	}
	require.NoError(t, errors.Join(run.Wait(), ctx.Err()), "%s", complaints.String())
}

func TestTheListIsComplete(t *testing.T) {
	names := map[string]bool{}
	wrong := 0
	for _, v := range All {
		assert.False(t, names[v.String()], "%v stands there twice", v)
		names[v.String()] = true
		assert.True(t, strings.HasSuffix(v.Belief, "."), "%v: a sentence", v)
		if v.Rejects != nil {
			wrong++
			assert.NotEmpty(t, v.Words, "%v", v)
			e, err := exercise.Find(strconv.Itoa(v.Step))
			require.NoError(t, err)
			assert.Contains(t, e.Goals, v.Rejects, "%v: the learner's check has to ask for %q", v, v.Rejects.Name)
		}
	}
	assert.GreaterOrEqual(t, wrong, 40, "wrong locks")
	assert.GreaterOrEqual(t, len(All)-wrong, 8, "right ones")
}
