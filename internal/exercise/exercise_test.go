package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil { // the folders of the exercises are named from the root
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	zktest.LeavesGoroutines()
	zktest.Main(m)
}

// inFolder lets the exercises be in a folder of the test's own.
func inFolder(t *testing.T) {
	t.Helper()
	usual := Folder
	Folder = t.TempDir()
	t.Cleanup(func() { Folder = usual })
}

func TestCopyDoesNotOverwrite(t *testing.T) {
	inFolder(t)
	copied, err := Step4.Copy()
	require.NoError(t, err)
	assert.True(t, copied)
	for _, name := range []string{"lock.go", "errors.go", "lock_test.go"} {
		assert.FileExists(t, filepath.Join(Step4.Dir(), name))
	}
	assert.NoFileExists(t, filepath.Join(Step4.Dir(), "hints.md"))

	mine := []byte("package predecessorwatch\n")
	require.NoError(t, os.WriteFile(filepath.Join(Step4.Dir(), "lock.go"), mine, 0o644))
	copied, err = Step4.Copy()
	require.NoError(t, err)
	assert.False(t, copied)
	text, err := os.ReadFile(filepath.Join(Step4.Dir(), "lock.go"))
	require.NoError(t, err)
	assert.Equal(t, string(mine), string(text))
}

func TestFind(t *testing.T) {
	inFolder(t)
	for _, name := range []string{"4", "04"} {
		e, err := Find(name)
		require.NoError(t, err)
		assert.Equal(t, "4", e.Name)
	}
	_, err := Find("7")
	assert.ErrorContains(t, err, "STEP=7: there is no such exercise")

	first, err := Find("")
	require.NoError(t, err)
	assert.Equal(t, "1", first.Name)
	_, err = first.Copy()
	require.NoError(t, err)
	require.NoError(t, first.Keep(Progress{Begun: true, Done: true}))
	next, err := Find("")
	require.NoError(t, err)
	assert.Equal(t, "2", next.Name, "the first that is not done")
}

// Each hint is more direct than the last, and after the last comes the first.
func TestHints(t *testing.T) {
	inFolder(t)
	_, err := Step4.Copy()
	require.NoError(t, err)
	hint := func(chinese bool) Hint {
		t.Helper()
		language := "en"
		if chinese {
			language = "zh"
		}
		t.Setenv("ZKLOCK_LANG", language)
		h, err := Step4.Next()
		require.NoError(t, err)
		return h
	}
	first := hint(false)
	assert.Equal(t, "a release wakes one", first.Property, "before the first check it is about the first section")
	assert.Equal(t, 1, first.Number)
	assert.Contains(t, first.Text, "?", "the first hint is a question")
	for number := 2; number <= first.N; number++ {
		assert.Equal(t, number, hint(false).Number)
	}
	assert.Equal(t, first, hint(false))

	require.NoError(t, Step4.Keep(Progress{Begun: true, Held: len(Step4.Properties)}))
	assert.Contains(t, hint(false).Text,
		"What is left is TestMine: which calls show the difference between your lock and W")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "no watch is left behind"}))
	assert.Equal(t, "no watch is left behind", hint(false).Property)
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "no watch is left behind"}))
	assert.Contains(t, hint(true).Text, "监听")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "first come, first served"}))
	assert.Contains(t, hint(false).Text, "Where is it written down who came first?", "the hint of an earlier step")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "first come, first served", Stuck: true}))
	assert.Equal(t, notWoken, hint(false).Property)
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "a crashed holder's lock is free again"}))
	assert.Contains(t, hint(false).Text, "Which kind of znode does the server delete by itself",
		"step 2's hint, not step 1's")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "missing parents are created"}))
	assert.Contains(t, hint(false).Text, "what is missing, and who else may be creating it?",
		"the property's own question")
}

// A section of hints is for a property that is asked, and begins with a question. The Chinese
// hints are the same, one by one.
func TestEveryHintIsForAProperty(t *testing.T) {
	for _, e := range All {
		assert.FileExists(t, e.chapter().EN, "where a learner is sent")
		assert.FileExists(t, e.chapter().ZH, "where a learner is sent")
		asked := map[string]bool{notWoken: true}
		for _, p := range e.Properties {
			asked[p.String()] = true
		}
		english, err := e.readHints("hints.md")
		require.NoError(t, err)
		chinese, err := e.readHints("hints.zh-CN.md")
		require.NoError(t, err)
		require.Len(t, chinese, len(english), "%s: sections", e)
		for i, s := range english {
			assert.True(t, asked[s.property], "%s asks for no property %q", e, s.property)
			assert.GreaterOrEqual(t, len(s.hints), 3, "%s: %s", e, s.property)
			assert.Contains(t, s.hints[0], "?", "%s: %s", e, s.property)
			assert.Len(t, chinese[i].hints, len(s.hints), "%s: %s", e, chinese[i].property)
		}
	}
}

// A diff of the learner's lock and ours is to show only what a TODO asks for. (What step 5's starter
// lacks, its chapter says: TestTheStairs there.)
func TestWhatAStarterGivesIsTheStepsOwn(t *testing.T) {
	for _, file := range []string{
		"step06_shared_lock/exercise/lock.go",
		"step06_shared_lock/exercise/hold.go",
	} {
		starter, err := os.ReadFile(file)
		require.NoError(t, err)
		ours, err := os.ReadFile(strings.Replace(file, "/exercise", "", 1))
		require.NoError(t, err)
		functions := strings.SplitAfter(string(starter), "\n}\n")
		for _, function := range functions[1:] { // before these the package says what there is to do
			if !strings.Contains(function, "TODO") {
				assert.True(t, strings.Contains(string(ours), function), "given in %s, and not the step's own:\n%s", file, function)
			}
		}
	}
}

// A file that is given whole stands twice: a link to the step's own file would be none in a module's
// zip, or on Windows.
func TestAFileThatIsGivenIsTheStepsOwn(t *testing.T) {
	same := func(e Exercise, file string) {
		given, err := os.ReadFile(filepath.Join(e.starter(), file))
		require.NoError(t, err)
		ours, err := os.ReadFile(filepath.Join(e.Home, file))
		require.NoError(t, err)
		assert.Equal(t, string(ours), string(given), "%s: copy the step's %s over the starter's", e, file)
	}
	for _, e := range []Exercise{Step1, Step2, Step3, Step4, Step5, Step6} {
		same(e, "errors.go")
	}
	same(Step6, "session.go")
}

// What is said of the interleavings is Chinese for Chinese readers, but for the interleaving.
func TestTheInterleavingsAreToldInChinese(t *testing.T) {
	for _, a := range []ordersAnswer{
		{err: errors.New("E")},
		{found: explore.Answer{Wrong: explore.TwoInside, Orders: 7}},
		{found: explore.Answer{Orders: 7}},
		{found: explore.Answer{Orders: 7, All: true}},
	} {
		_, says := a.words(Step4)
		chinese := strings.ReplaceAll(says.ZH, "make explore STEP=mine4", "")
		assert.NotRegexp(t, "[a-z]", chinese, says.EN)
	}
}

// A learner is not asked what the lock waits for when there is no server.
func TestWithoutAServerTheLockIsNotBlamed(t *testing.T) {
	lock := property.Subject{Open: func([]string, time.Duration, zk.Dialer) (zktest.Session, error) {
		panic("nobody uses it")
	}}
	nowhere := &zkserver.Server{}
	r := ask(t.Context(), patience, nowhere, property.OneHolder, []property.Subject{lock})
	a := answerOf(property.OneHolder, r)
	assert.True(t, a.isStuck())
	assert.Contains(t, a.ask.EN, "this is not about your lock")
	assert.NotContains(t, a.seen, "The last requests")
}
