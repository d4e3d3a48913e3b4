package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/exercise"
	"zklock/internal/property"
)

// A learner does step 3: with the starter, with a lock that wakes nobody, with the step's own, and
// with a test.
func TestTheExercise(t *testing.T) {
	folder := inYours(t)
	says := printed(t, func() error { return check("3", "") })
	for _, said := range []string{
		"go test ./" + folder + "/step3",
		"--- FAIL: TestLock/waiting_sends_no_request",
		"✗ seen: 5 waiters sent ",
		"ask yourself: who could notify the waiter, so that it need not poll?",
		`more: make hint STEP=3, and "The idea" in step03.html in the book`,
		fmt.Sprintf("2 of %d hold", all(exercise.Step3)),
	} {
		assert.Contains(t, says, said)
	}
	says = printed(t, func() error { return hint("3") })
	assert.NotContains(t, says, "does not compile")
	assert.Contains(t, says, `step 3, "waiting sends no request", hint 1 of 5`)

	own, err := os.ReadFile("step03_children_watch/lock.go")
	require.NoError(t, err)
	right := string(own)
	sleepsOn := strings.Replace(right, "case event := <-changed:", "case event := <-make(chan zk.Event):", 1)
	require.NotEqual(t, right, sleepsOn)
	save := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "step3", "lock.go"), []byte(text), 0o644))
	}
	save(right + "}")
	says = printed(t, func() error { return hint("3") })
	assert.Contains(t, says, "step3 does not compile now: this hint is for the lock that was tested last")
	assert.Contains(t, says, `step 3, "waiting sends no request", hint 2 of 5`)

	save(strings.Replace(sleepsOn, "names, _, changed, err", "names, _, _, err", 1))
	says = printed(t, func() error { return check("3", "") })
	assert.Contains(t, says, "✗ seen: nobody was woken after the release")
	assert.Contains(t, says, "ask yourself: what notifies B that it is its turn")
	assert.Contains(t, says, "this one held before: a change of yours since then broke it")

	save(right)
	says = printed(t, func() error { return check("3", "") })
	assert.Contains(t, says, fmt.Sprintf("all %d hold; now your own test\n", all(exercise.Step3)))
	assert.Contains(t, says, "Write it: TestMine in "+folder+"/step3/lock_test.go")
	assert.NotContains(t, says, "FAIL")
	assert.NotContains(t, says, "Well done")
	assert.Contains(t, printed(t, func() error { return hint("3") }), "What is left is TestMine")

	tests, err := os.ReadFile(filepath.Join(folder, "step3", "lock_test.go"))
	require.NoError(t, err)
	const empty = "func(a, b, c *exercise.Client) {\n"
	write := func(calls string) {
		written := strings.Replace(string(tests), empty, empty+calls+"\n", 1)
		require.NotEqual(t, string(tests), written)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "step3", "lock_test.go"), []byte(written), 0o644))
	}
	write("a.Locks()")
	says = printed(t, func() error { return check("3", "") })
	assert.Contains(t, says, "your test should fail with W13, a published mistake")
	assert.NotContains(t, says, "Well done")

	write("a.Locks(); b.Waits(); c.Waits(); a.Unlocks(); b.GetsIt()")
	t.Setenv("ZKLOCK_LANG", "zh")
	says = printed(t, func() error { return check("3", "") })
	assert.Contains(t, says, fmt.Sprintf("做得好：%d 条全部具备。与我们的锁对比：diff -u ", all(exercise.Step3)))
	assert.Contains(t, says, "下一个：make exercise STEP=4")
	says = printed(t, func() error { return hint("3") })
	assert.Contains(t, says, "第 3 步：已完成")

	says = printed(t, func() error { return check("", "") })
	for _, said := range []string{
		"第 3 步   已完成",
		"semaphore 未开始",
		"step1 由你来写",
		"✗ 同一时刻只有一个持有者\n          看到的：",
		"  问问自己：Lock 什么时候返回？",
		"  想知道更多：make hint STEP=1，以及书里 step01.html 的“思路”一节",
	} {
		assert.Contains(t, says, said)
	}
	says = printed(t, func() error { return hint("1") })
	assert.Contains(t, says, "第 1 步，“同一时刻只有一个持有者”，提示 1，共 ")
	assert.Contains(t, says, "更直接的提示：make hint STEP=1")
}

// Where docs/kit/ready.sh has built the program, as in a class without make, the commands are those of the program.
func TestTheCommandsWithoutMake(t *testing.T) {
	t.Chdir(t.TempDir())
	assert.Equal(t, "make hint STEP=3", exercise.Command("hint", "3"))
	assert.Equal(t, "make exercise STEP=4", exercise.Command("exercise", "4"))
	require.NoError(t, os.MkdirAll("out/bin", 0o755))
	require.NoError(t, os.MkdirAll("yours/step3", 0o755))
	require.NoError(t, os.WriteFile("out/bin/exercise", nil, 0o755))
	for _, folder := range []string{".", "yours/step3"} { // of the program, and of the test that it runs
		t.Chdir(folder)
		assert.Equal(t, "out/bin/exercise hint 3", exercise.Command("hint", "3"), folder)
		assert.Equal(t, "out/bin/exercise check 4", exercise.Command("exercise", "4"), folder)
	}
}

// On a stair, the last hint names the diff of that stair, and not our finished lock.
func TestTheLastHintOnAStair(t *testing.T) {
	inYours(t)
	t.Setenv("ZKLOCK_LANG", "en")
	_, err := exercise.Step5.Copy()
	require.NoError(t, err)
	sync := slices.Index(exercise.Step5.Properties, property.LaggingServer)
	lacksSync := exercise.Progress{Begun: true, Held: sync, Missing: property.LaggingServer.String()}
	require.NoError(t, exercise.Step5.Keep(lacksSync))
	var says string
	for range 3 {
		says = printed(t, func() error { return hint("5") })
	}
	assert.Contains(t, says, "hint 3 of 3")
	assert.Contains(t, says, "To compare with ours: less step05_reentrant/stairs/5.2.diff\n")
}

// inYours goes to the repository's root, and makes a folder for the exercises of this test.
func inYours(t *testing.T) (folder string) {
	t.Helper()
	t.Chdir("../../..")
	require.NoError(t, os.MkdirAll("yours", 0o755))
	folder, err := os.MkdirTemp("yours", "test") // inside of the module, so that go test finds it
	require.NoError(t, err)
	usual := exercise.Folder
	exercise.Folder = folder
	t.Cleanup(func() {
		exercise.Folder = usual
		assert.NoError(t, os.RemoveAll(folder))
	})
	return folder
}

// all returns how many answers the check of an exercise has.
func all(e exercise.Exercise) int {
	_, all := e.Count(exercise.Progress{})
	return all
}

// In English: what the last run would say.
func TestWellDone(t *testing.T) {
	t.Chdir("../../..")
	usual := exercise.Folder
	exercise.Folder = t.TempDir()
	t.Cleanup(func() { exercise.Folder = usual })
	t.Setenv("ZKLOCK_LANG", "en")
	copied, err := exercise.Step5.Copy()
	require.NoError(t, err)
	require.True(t, copied)
	says := printed(t, func() error { wellDone(exercise.Step5, "./yours/step5"); return nil })
	mine, ours := exercise.Step5.Dir(), exercise.Step5.Home
	const both = "diff -u %s/lock.go %s/lock.go; diff -u %s/session.go %s/session.go\n" // the starter has no hold.go
	assert.Contains(t, says, fmt.Sprintf("Well done: all %d hold. To compare your lock with ours: "+both,
		all(exercise.Step5), mine, ours, mine, ours))
	assert.Contains(t, says, "Next: make exercise STEP=")
}

// printed is what a command prints, which must succeed.
func printed(t *testing.T, command func() error) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	usual := os.Stdout
	os.Stdout = w
	all := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		all <- string(text)
	}()
	err = command()
	os.Stdout = usual
	require.NoError(t, w.Close())
	says := <-all
	require.NoError(t, err)
	t.Log(says)
	return says
}
