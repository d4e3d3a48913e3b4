package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"zklock/internal/page"
	"zklock/internal/steps"
)

// A lock is one that can be chosen.
type lock struct {
	Key     string `json:"key"`
	Name    string `json:"name"`
	Lesson  string `json:"lesson"`
	Chapter string `json:"chapter"` // the address of its step's chapter, "" if it has none

	home string // its step's folder, "" if it has none
	test string // of a published mistake: the test that has it
}

var homes = []string{"step01_plain_node", "step02_sequential_spin", "step03_children_watch",
	"step04_predecessor_watch", "step05_reentrant", "step06_shared_lock"}

// mistakes are the published ones, by their number from 1.
var mistakes = []struct {
	step int
	name string
}{
	{2, "the znode is persistent"},
	{2, "compares itself with itself"},
	{2, "overlooks number zero"},
	{2, "returns after an error"},
	{2, "one queue for all locks"},
	{2, "the znode is made in the constructor"},
	{2, "waits by recursion"},
	{4, "trusts the wake-up"},
	{4, "asks if it exists"},
	{5, "one count for all locks"},
	{5, "counts only who waited"},
	{4, "forgets its znode"},
	{3, "makes its latch too late"},
	{5, "deletes the first"},
	{4, "wakes under the waiter's lock"},
	{2, "sorts by a piece of the guid"},
	{2, "sorts by the host's name"},
	{4, "tries, and stays"},
	{4, "waits for nobody"},
	{4, "compares a path with a name"},
	{4, "looks twice"},
	{4, "looks before the try"},
}

// locks are all that can be chosen, in the order of the list.
var locks = func() (all []lock) {
	for i, s := range page.Steps {
		all = append(all, lock{s.Key, "Step " + s.Key + ": " + s.Name, s.Lesson, "/chapter/" + s.Key, homes[i], ""})
	}
	all = append(all, lock{Key: "zk", Name: "zk.Lock, the Go client's own", Lesson: page.ClientLock.Lesson})
	for i, m := range mistakes {
		all = append(all, lock{fmt.Sprintf("W%d", i+1), fmt.Sprintf("W%d: %s", i+1, m.name), fmt.Sprintf("A mistake that was published: make hunt W=%d shows its code.", i+1),
			fmt.Sprintf("/chapter/%d", m.step), homes[m.step-1], fmt.Sprintf(`^TestW%d\D`, i+1)})
	}
	all = append(all, lock{Key: "mine", Name: "Mine: the first that is not done", Lesson: "Your exercise, built anew whenever you save it."})
	for i := range page.Steps {
		all = append(all, lock{fmt.Sprintf("mine%d", i+1), fmt.Sprintf("Mine: step %d", i+1), "Your exercise, built anew whenever you save it.", fmt.Sprintf("/chapter/%d", i+1), homes[i], ""})
	}
	return all
}()

// find returns the lock of a key.
func find(key string) (lock, error) {
	if i := slices.IndexFunc(locks, func(l lock) bool { return l.Key == key }); i >= 0 {
		return locks[i], nil
	}
	return lock{}, fmt.Errorf("there is no lock %q", key)
}

func (l lock) mine() bool { return strings.HasPrefix(l.Key, "mine") }

// A program has the part of a lock's client.
type program struct {
	part, path string
	args       []string
	step       string // whose lock it is
}

// part begins the part of a client in a process that was started for it.
func part() {
	for _, s := range append(steps.All, steps.Client) {
		s.Acts()
	}
}

// program returns the program of a lock's clients, which is built first if it is not
// this one. A complaint of the compiler is its error.
func (l lock) program(ctx context.Context, repo, exercises, scratch string) (p program, err error) {
	switch {
	case l.test != "":
		p = program{l.Key, filepath.Join(scratch, l.home+".test"), []string{"-test.run", l.test}, l.Chapter[len("/chapter/"):]}
		if _, err = os.Stat(p.path); err != nil {
			_, err = run(ctx, repo, "go", "test", "-c", "-o", p.path, "./"+l.home)
		}
	case l.mine():
		p.path = filepath.Join(scratch, "mine"+rand.Text())
		var said string
		said, err = run(ctx, repo, "go", "run", "./internal/exercise", "build", strings.TrimPrefix(l.Key, "mine"), exercises, p.path)
		p.part, p.step = "mine "+said, strings.TrimPrefix(said, "0")
	default:
		p.part, p.step = "step "+l.Key, l.Key
		if l.Key == "zk" {
			p.part, p.step = steps.Client.Name, ""
		}
		p.path, err = os.Executable()
	}
	return p, err
}

// run runs a command of ours in a folder, and returns what it says. Its errors are what
// it says, too.
func run(ctx context.Context, dir, name string, args ...string) (said string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		err = errors.New(strings.TrimSpace(strings.TrimSuffix(string(failed.Stderr), "exit status 1\n")))
	}
	return strings.TrimSpace(string(text)), err
}
