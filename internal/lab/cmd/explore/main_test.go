package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/exercise"
	"zklock/internal/explore"
	"zklock/internal/lab/locks"
	"zklock/internal/zktest"
)

// The locks' folders are named from the root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, s := range locks.Every {
		explore.Acts(s)
	}
	zktest.Main(m)
}

func choose(t *testing.T, key string) locks.Choice {
	t.Helper()
	chosen, err := locks.Choose(key)
	require.NoError(t, err)
	return chosen
}

// explored plays the orders of a lock.
func explored(t *testing.T, l locks.Choice, s explore.Settings) (explore.Result, error) {
	t.Helper()
	return until(t, l, s, func(explore.Result) bool { return false })
}

// until is explored, as far as it needs to be.
func until(t *testing.T, l locks.Choice, s explore.Settings, isEnough func(explore.Result) bool) (
	explore.Result, error) {
	t.Helper()
	program, err := l.Program(t.Context(), ".", exercise.Folder, t.TempDir())
	require.NoError(t, err)
	z := zktest.New(t)
	s.Servers, s.Root = z.Servers(), z.Root
	s.Znode, s.WakesOne = program.Lock.Znode, !program.Lock.Herd
	players, err := explore.Start(2, s, program.Part, program.Path, program.Args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, explore.End(players)) }()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	return explore.Explore(ctx, players, func(r explore.Result) {
		if isEnough(r) {
			enough()
		}
	})
}

// What is printed has all that is wrong, a story that two mistakes share only once.
func TestReport(t *testing.T) {
	t.Parallel()
	settings := explore.Settings{Clients: 2, Faults: 1, Switches: 0}
	r, err := explored(t, choose(t, "4"), settings)
	require.NoError(t, err)
	var out bytes.Buffer
	report(&out, r, 2*time.Second, false)
	assert.NotContains(t, out.String(), "The shortest", "the answers, before the address of the page")
	answers(&out, r)
	said := out.String()
	assert.Contains(t, said, "Played all 94 interleavings in 2 s, 47 a second.\nWrong: 14 of them.\n")
	assert.Contains(
		t,
		said,
		"✗ a znode is left behind: in 14 interleavings. The shortest:\n"+
			"  1. A asks: create /lock/lock-. The REPLY IS LOST",
	)
	assert.Contains(
		t,
		said,
		"✗ nobody holds the lock, and a client waits forever: in 4 interleavings. The shortest is the one above.",
	)
	assert.Equal(t, 1, strings.Count(said, "In the end:"))

	out.Reset()
	report(&out, r, 2*time.Second, true)
	assert.Contains(t, out.String(), "Played 94 interleavings, and there are more.\n")
}

// 3w's lock is a znode: its orders are those of a lock that can be taken.
func TestAZnodeIsExplored(t *testing.T) {
	t.Parallel()
	r, err := explored(t, choose(t, "3w"), explore.Settings{Clients: 2, Switches: explore.Unbound})
	require.NoError(t, err)
	assert.Greater(t, r.Orders, 5)
	assert.Empty(t, r.Broken())
}

// written writes a step's lock as the learner's, with a change in it, if was is not empty.
func written(t *testing.T, step, was, is string) locks.Choice {
	t.Helper()
	e, err := exercise.Find(step)
	require.NoError(t, err)
	_, err = e.Copy()
	require.NoError(t, err)
	for _, file := range []string{"/lock.go", "/hold.go", "/session.go"} {
		solution, err := os.ReadFile(e.Home + file)
		if errors.Is(err, os.ErrNotExist) { // as the last two before step 5
			continue
		}
		require.NoError(t, err)
		if was != "" && file == "/lock.go" {
			require.Equal(t, 1, bytes.Count(solution, []byte(was)), "places for the change in step %s", step)
			solution = bytes.Replace(solution, []byte(was), []byte(is), 1)
		}
		require.NoError(t, os.WriteFile(e.Dir()+file, solution, 0o644))
	}
	return choose(t, "mine"+step)
}

// What the exercises ask last.
func TestMine(t *testing.T) {
	require.NoError(t, os.MkdirAll("yours", 0o755))
	folder, err := os.MkdirTemp("yours", "scratch") // inside of the module
	require.NoError(t, err)
	usual := exercise.Folder
	exercise.Folder = folder
	t.Cleanup(func() {
		exercise.Folder = usual
		assert.NoError(t, os.RemoveAll(folder))
	})

	// A rest of a second is seen on a busy machine, too.
	one := written(t, "1", "pollInterval = 20 * time.Millisecond", "pollInterval = time.Second")
	_, err = explored(t, one, explore.Settings{Clients: 2, Switches: explore.Unbound})
	assert.ErrorContains(t, err, "a client sends a request after a pause")

	asked := func(l locks.Choice) explore.Answer {
		t.Helper()
		program, err := l.Program(t.Context(), ".", exercise.Folder, t.TempDir())
		require.NoError(t, err)
		z := zktest.New(t)
		begun := time.Now()
		a, err := explore.Mine(t.Context(), z.Servers(), z.Root, program.Lock.Key, program.Path)
		require.NoError(t, err)
		t.Logf("%d orders, all: %v, in %v", a.Orders, a.All, time.Since(begun))
		return a
	}
	right := asked(written(t, "4", "", ""))
	assert.Empty(t, right.Wrong, "%s", strings.Join(right.Story, "\n"))
	leaves := written(t, "4", "errors.Join(err, l.leave(node))", "err")
	stays := asked(leaves)
	for try := 0; stays.Wrong == "" && !stays.All && try < 3; try++ { // a busy machine
		stays = asked(leaves)
	}
	assert.Equal(t, "a znode is left behind", stays.Wrong)
	assert.Contains(t, strings.Join(stays.Story, "\n"), "getChildren /lock. The REPLY IS LOST")
	for _, step := range []string{"5", "6"} {
		right = asked(written(t, step, "", ""))
		assert.Empty(t, right.Wrong, "%s", strings.Join(right.Story, "\n"))
	}
	waits := asked(written(t, "6", "ok && n < own", "ok && (n < own || ownKind == read && k == write)"))
	assert.Equal(t, "nobody holds the lock, and a client waits forever", waits.Wrong,
		"a reader waits for a writer behind it")

	_, err = explore.Mine(t.Context(), nil, "", "2", "")
	assert.ErrorIs(t, err, explore.ErrAsks)
}
