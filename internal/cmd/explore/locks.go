package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"zklock/internal/exercise"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/steps"
)

// A lock is one that can be explored.
type lock struct {
	name lang.Text // for people
	part string    // the name that its process has

	test     string // of a published mistake: the test that has it
	folder   string // where that is
	mine     bool   // the learner's own
	step     string // of mine; "": the first that is not done
	wakesOne bool   // it promises that a release wakes at most one
	znode    bool   // it is a znode, and not a directory
}

// locks are those that are not published mistakes. Where the waiters ask again and again,
// as in steps 1 and 2, the orders have no end: those are left out.
var locks = func() map[string]lock {
	all := map[string]lock{}
	for _, l := range steps.Locks {
		if !polls[l.Key] {
			all[l.Key] = lock{name: called(l), part: l.Subject, wakesOne: wakesOne(l.Key), znode: l.Znode}
		}
	}
	for key, l := range map[string]property.Subject{"mutex": steps.Mutex, "rwmutex": steps.RWMutex} {
		all[key] = lock{name: lang.Text{EN: l.Name, ZH: l.Name}, part: l.Name, wakesOne: true}
	}
	return all
}()

// called is a lock's name: the Go client's is the same in both languages.
func called(l steps.Lock) lang.Text {
	if step, isStep := strings.CutPrefix(l.Subject, "step "); isStep {
		return lang.Of("step %s", "第 %s 步", step)
	}
	return lang.Text{EN: l.Subject, ZH: l.Subject}
}

// find returns the lock that STEP names. 04 is 4, and mine4 is mine of step 4.
func find(key string) (lock, error) {
	if step, ok := strings.CutPrefix(key, "mine"); ok {
		return lock{name: lang.Text{EN: key, ZH: key}, mine: true, step: step}, nil
	}
	if l, ok := locks[strings.TrimLeft(key, "0")]; ok {
		return l, nil
	}
	for _, m := range steps.Mistakes {
		if m.Key() == key {
			folder := steps.Find(m.Step).Folder
			name := lang.Of("%s: %s", "%s：%s", key, lang.Text{EN: m.Name, ZH: m.Chinese})
			return lock{name: name, part: key, test: m.Run(), folder: folder, wakesOne: wakesOne(m.Step)}, nil
		}
	}
	return lock{}, fmt.Errorf("there is no lock %q", key)
}

// polls has the locks whose waiters ask again and again.
var polls = map[string]bool{"1": true, "2": true}

// wakesOne tells whether a lock promises that a release wakes at most one.
func wakesOne(key string) bool { return !polls[key] && key != "1w" && key != "3" }

// program returns the program of the lock's clients, with its arguments. It is built first
// if it is not this one. What mine is shows then.
func (l *lock) program(ctx context.Context, scratch string) (program string, args []string, err error) {
	program = filepath.Join(scratch, "program")
	switch {
	case l.test != "":
		_, err := output(ctx, "go", "test", "-c", "-o", program, "./"+l.folder)
		return program, []string{"-test.run", l.test}, err
	case l.mine:
		step, err := output(
			ctx,
			"go",
			"run",
			"./internal/cmd/exercise",
			"build",
			l.step,
			exercise.Folder,
			program,
		)
		l.part = "mine " + step
		l.znode, l.wakesOne = step == "1", wakesOne(step)
		return program, []string{"-test.run", "^TestLock$"}, err
	}
	program, err = os.Executable()
	return program, nil, err
}

// output runs a command, and returns what it says. Its errors are what it says, too.
func output(ctx context.Context, name string, args ...string) (said string, err error) {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(text)), err
}
