package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/exercise"
)

// A learner does step 3: with the starter, with a lock that wakes nobody, with the step's own, and
// with a test.
func TestTheExercise(t *testing.T) {
	t.Chdir("../../..")
	require.NoError(t, os.MkdirAll("yours", 0o755))
	folder, err := os.MkdirTemp("yours", "test") // inside of the module, so that go test finds it
	require.NoError(t, err)
	exercise.Folder = folder
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })

	says := printed(t, func() error { return check("3") })
	for _, said := range []string{
		"go test ./" + folder + "/step3",
		"--- FAIL: TestLock/waiting_sends_no_request",
		"✗ seen: 5 waiters sent ",
		"ask yourself: who could notify the waiter, so that it need not poll?",
		"more: make hint STEP=3, and step03_children_watch/README.md",
		"1 of 23 properties hold",
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
	says = printed(t, func() error { return check("3") })
	assert.Contains(t, says, "✗ seen: nobody was woken after the release")
	assert.Contains(t, says, "ask yourself: what notifies B that it is its turn")

	save(right)
	says = printed(t, func() error { return check("3") })
	assert.Contains(t, says, "your test should fail with W13, a published mistake")
	assert.NotContains(t, says, "Well done")

	tests, err := os.ReadFile(filepath.Join(folder, "step3", "lock_test.go"))
	require.NoError(t, err)
	const empty = "func(a, b, c *exercise.Client) {\n"
	written := strings.Replace(string(tests), empty, empty+"a.Locks(); b.Waits(); a.Unlocks(); b.GetsIt()\n", 1)
	require.NotEqual(t, string(tests), written)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "step3", "lock_test.go"), []byte(written), 0o644))
	t.Setenv("ZKLOCK_LANG", "zh")
	says = printed(t, func() error { return check("3") })
	assert.Contains(t, says, "做得好：你的锁具备全部 23 条性质。与我们的锁对比：diff -u ")
	assert.Contains(t, says, "下一个：make exercise STEP=4")
	says = printed(t, func() error { return hint("3") })
	assert.Contains(t, says, "第 3 步：已完成")

	says = printed(t, func() error { return check("") })
	for _, said := range []string{
		"第 3 步   已完成",
		"semaphore 未开始",
		"step1 由你来写",
		"✗ 同一时刻只有一个持有者\n          看到的：",
		"  问问自己：Lock 什么时候返回？",
		"  想知道更多：make hint STEP=1，以及 step01_plain_node/README.zh-CN.md",
	} {
		assert.Contains(t, says, said)
	}
	says = printed(t, func() error { return hint("1") })
	assert.Contains(t, says, "第 1 步，“同一时刻只有一个持有者”，提示 1，共 ")
	assert.Contains(t, says, "更直接的提示：make hint STEP=1")
}

// In English: what the last run would say.
func TestWellDone(t *testing.T) {
	t.Setenv("ZKLOCK_LANG", "en")
	says := printed(t, func() error { wellDone(exercise.Step4, "./yours/step4"); return nil })
	assert.Contains(t, says, "Well done: your lock has all 26 properties. To compare it with ours: diff -u ")
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
