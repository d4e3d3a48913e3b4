package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// FROM=5.5 copies our lock of 5.5, and FROM=5.10 that of the step.
func TestCopyFromAStair(t *testing.T) {
	inFolder(t)
	for from, says := range map[string]string{"5.0": "5.1 to", "5.11": "FROM=5.1 to FROM=5.10", "4": "no such stair", "5.x": "no such stair"} {
		assert.ErrorContains(t, Step5.CopyFrom(from), says)
	}
	assert.ErrorContains(t, Step4.CopyFrom("5.5"), "no such stair")
	assert.NoDirExists(t, Step5.Dir())

	require.NoError(t, Step5.CopyFrom("5.5"))
	lock, err := os.ReadFile(filepath.Join(Step5.Dir(), "lock.go"))
	require.NoError(t, err)
	assert.Contains(t, string(lock), "func (l *Lock) Unlock() error {", "5.5 has no Hold")
	assert.Contains(t, string(lock), "sessionEnded", "5.5 compares the session")
	assert.FileExists(t, filepath.Join(Step5.Dir(), "lock_test.go"))

	assert.ErrorContains(t, Step5.CopyFrom("5.10"), "are not overwritten")
	require.NoError(t, os.RemoveAll(Step5.Dir()))
	require.NoError(t, Step5.CopyFrom("5.10"))
	for _, file := range []string{"lock.go", "hold.go", "session.go"} {
		got, err := os.ReadFile(filepath.Join(Step5.Dir(), file))
		require.NoError(t, err)
		ours, err := os.ReadFile(filepath.Join(Step5.Home, file))
		require.NoError(t, err)
		_, after, _ := strings.Cut("\n"+string(ours), "\npackage ")
		assert.Contains(t, string(got), after, file)
	}
}

// make play and make explore run part A's lock: it is built as it stands at a stair, and nothing is left in yours.
func TestBuildAStair(t *testing.T) {
	inFolder(t)
	program := filepath.Join(t.TempDir(), "stair")
	assert.ErrorContains(t, Step5.BuildStair("5.11", program), "no such stair")
	require.NoError(t, Step5.BuildStair("5.5", program))
	assert.FileExists(t, program)
	assert.NoDirExists(t, Step5.Dir())
}

// What the check says of stairs that are done.
func TestStairsDone(t *testing.T) {
	for p, want := range map[*property.Property]int{
		property.OneHolder:       0,
		property.LostCreateReply: 0,
		property.OwnPlace:        0,
		property.OldZnode:        1,
		property.LaggingServer:   1,
		property.OnlyHolder:      2,
		property.LineBreaks:      3,
		property.KeptWatch:       4,
		property.LongHold:        4,
		property.LostApart:       5,
		property.Tries:           9,
	} {
		assert.Equal(t, want, Step5.stairsDone(slices.Index(Step5.Properties, p)), "the first that is missing: %v", p)
	}
	assert.Zero(t, Step4.stairsDone(5))
}

// What is said before a learner's own test. Step 5's chapter quotes it.
func TestAllHold(t *testing.T) {
	inFolder(t)
	says := Step5.AllHold(Progress{LeftOut: true})
	assert.Equal(t, "stair 5.9 done; all 43 hold, TryLock left out; now your own test", says.EN)
	for _, page := range []string{"holder.md", "holder.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(Step5.Home, page))
		require.NoError(t, err)
		assert.Contains(t, string(text), "\n"+says.EN+"\n", page)
	}
	assert.Equal(t, "stair 5.10 done; all 43 hold; now your own test", Step5.AllHold(Progress{}).EN)
	assert.Equal(t, "all 28 hold; now your own test", Step4.AllHold(Progress{}).EN)
	assert.Equal(t, "25 条全部具备；接下来是你自己的测试", Step3.AllHold(Progress{}).ZH) // the sheet and the workshop quote both
}

// The stair whose diff a learner is shown after the last hint.
func TestStair(t *testing.T) {
	inFolder(t)
	for held, want := range map[int]string{
		0: "5.1",
		slices.Index(Step5.Properties, property.GivesUpCutOff): "5.3",
		slices.Index(Step5.Properties, property.LostTold):      "5.5",
		slices.Index(Step5.Properties, property.TryLost):       "5.10",
		len(Step5.Properties):                                  "",
	} {
		require.NoError(t, os.MkdirAll(Step5.Dir(), 0o755))
		require.NoError(t, Step5.Keep(Progress{Begun: true, Held: held}))
		assert.Equal(t, want, Step5.Stair(), "%d properties hold", held)
	}
	assert.Empty(t, Step4.Stair())
}

// The check sends a learner to the part of the chapter that has the stair.
func TestThePageOfAQuestion(t *testing.T) {
	for p, page := range map[*property.Property]string{
		property.KeptWatch: "README.md",
		property.LostApart: "holder.md",
		property.Tries:     "holder.md",
	} {
		assert.Equal(t, filepath.Join(Step5.Home, page), Step5.chapter(p.String()).EN, "%v", p)
	}
}

// The chapters whose code solves the exercise have the section that the check names.
func TestTheSectionOfAQuestion(t *testing.T) {
	for _, e := range []Exercise{Step1, Step2, Step3, Step4, Step6} {
		read := e.reading(e.chapter(e.Properties[0].String()))
		assert.Equal(t, fmt.Sprintf(`"The idea" in step0%s.html in the book`, e.Name), read.EN)
		assert.Equal(t, fmt.Sprintf("书里 step0%s.html 的“思路”一节", e.Name), read.ZH)
		for page, order := range map[string]string{
			"README.md": `(?s)\n## The idea\n.*\n## The code\n`, "README.zh-CN.md": `(?s)\n## 思路\n.*\n## 代码\n`,
		} {
			text, err := os.ReadFile(filepath.Join(e.Home, page))
			require.NoError(t, err)
			assert.Regexp(t, order, string(text), e.Name)
		}
	}
	// Step 5's chapter leads from stair to stair.
	assert.Equal(t, "step05.html in the book", Step5.reading(Step5.chapter(property.KeptWatch.String())).EN)
	assert.Equal(t, "书里的 step05-holder.html", Step5.reading(Step5.chapter(property.LostApart.String())).ZH)
	assert.Equal(t, "next.html in the book", Semaphore.reading(Semaphore.chapter(Semaphore.Properties[0].String())).EN)
}

// A learner who is in part B, and whose last change broke what part A has built, is not sent back to part A.
func TestWhatHeldBefore(t *testing.T) {
	lacksReentry := slices.Index(Step5.Properties, property.LocksAgain)
	for _, p := range []string{canBeUsed, property.UnlockRepeated.String(), property.Fenced.String()} {
		assert.True(t, Step5.heldBefore(p, lacksReentry), p)
		assert.False(t, Step5.heldBefore(p, 0), p)
		for _, most := range []int{lacksReentry, len(Step5.Properties)} {
			assert.Equal(t, filepath.Join(Step5.Home, "holder.md"), Step5.pageAt(p, most).EN, p)
		}
	}
	assert.False(t, Step5.heldBefore(property.LocksAgain.String(), lacksReentry))
	assert.Equal(t, filepath.Join(Step5.Home, "README.md"), Step5.pageAt(property.LineBreaks.String(), 0).EN)
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
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: canBeUsed, About: property.OnlyHolder.String()}))
	assert.Contains(t, hint(false).Text, "which one does `Unlock` delete?", "Lock has worked, and Unlock has not")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: canBeUsed, Ask: whatMakesBRest}))
	assert.Equal(t, whatMakesBRest.EN, hint(false).Text, "the lock cannot be used, and the first section does not fit")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "a release wakes one", Ask: whoTellsB}))
	assert.Equal(t, whoTellsB.EN, hint(false).Text, "the hints of the property do not fit")
	require.NoError(t, Step4.Keep(Progress{Begun: true, Missing: "missing parents are created"}))
	assert.Contains(t, hint(false).Text, "what is missing, and who else may be creating it?",
		"the property's own question")

	_, err = Semaphore.Copy()
	require.NoError(t, err)
	after := func(p Progress) Hint {
		t.Helper()
		t.Setenv("ZKLOCK_LANG", "en")
		p.Begun = true
		require.NoError(t, Semaphore.Keep(p))
		h, err := Semaphore.Next()
		require.NoError(t, err)
		return h
	}
	assert.Contains(t, after(Progress{Missing: "a release wakes one"}).Text, "watch the permits?", "not step 4's hint")
	assert.Contains(t, after(Progress{Missing: "first come, first served", Stuck: true}).Text, "hold the lock at",
		"not step 4's hint for a waiter that is not woken")
	h := after(Progress{Missing: "a crashed holder's permit is free again"})
	assert.Contains(t, h.Text, "what returns the permit when its holder cannot?")
	assert.Equal(t, 1, h.N, "its question is all that is said of it")
}

// A section of hints is for a property that is asked, and begins with a question. The Chinese
// hints are the same, one by one.
func TestEveryHintIsForAProperty(t *testing.T) {
	for _, e := range All {
		asked := map[string]bool{notWoken: true}
		for _, p := range e.Properties {
			asked[p.String()] = true
			assert.FileExists(t, e.chapter(p.String()).EN, "where a learner is sent")
			assert.FileExists(t, e.chapter(p.String()).ZH, "where a learner is sent")
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
		{found: explore.Answer{Orders: 7, Differs: true}},
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
