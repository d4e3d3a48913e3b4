package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
	"zklock/internal/teach/exercise"
)

// besides are the locks that stand beside the steps'.
var besides = []lockcheck.Subject{steps.Watched, steps.Cohort, steps.Client}

// A lock is one that can be explored.
type lock struct {
	name string // for people
	part string // the name that its process has

	test     string // of a published mistake: the test that has it
	folder   string // where that is
	mine     bool   // the learner's own
	step     string // of mine; "": the first that is not done
	wakesOne bool   // it promises that a release wakes at most one
	znode    bool   // it is a znode, and not a directory
}

// locks are those that are not published mistakes. The waiters of steps 1 and 2 ask again
// and again: their orders have no end.
var locks = map[string]lock{
	"1w":     {name: "step 1w", part: "step 1w", znode: true},
	"3":      {name: "step 3", part: "step 3"},
	"4":      {name: "step 4", part: "step 4", wakesOne: true},
	"5":      {name: "step 5", part: "step 5", wakesOne: true},
	"6":      {name: "step 6", part: "step 6", wakesOne: true},
	"cohort": {name: "step 5, a Cohort", part: "step 5, a Cohort", wakesOne: true},
	"zk":     {name: "zk.Lock", part: "zk.Lock", wakesOne: true},
}

// find returns the lock that STEP names. 04 is 4, and mine4 is mine of step 4.
func find(key string) (lock, error) {
	if step, ok := strings.CutPrefix(key, "mine"); ok {
		return lock{name: key, mine: true, step: step}, nil
	}
	if l, ok := locks[strings.TrimLeft(key, "0")]; ok {
		return l, nil
	}
	for i, m := range steps.Mistakes {
		name := fmt.Sprintf("W%d", i+1)
		if name != key {
			continue
		}
		folders, err := filepath.Glob(fmt.Sprintf("step%02d_*", m.Step))
		if err != nil || len(folders) != 1 {
			break
		}
		return lock{name: name + ": " + m.Name, part: name, test: `^Test` + name + `\D`, folder: folders[0], wakesOne: wakesOne(m.Step)}, nil
	}
	return lock{}, fmt.Errorf("there is no lock %q", key)
}

// wakesOne tells whether a step's lock promises that a release wakes at most one.
func wakesOne(step int) bool { return step >= 4 }

// program returns the program of the lock's clients, with its arguments. It is built first
// if it is not this one. What mine is shows then.
func (l *lock) program(ctx context.Context, scratch string) (program string, args []string, err error) {
	program = filepath.Join(scratch, "program")
	switch {
	case l.test != "":
		_, err := output(ctx, "go", "test", "-c", "-o", program, "./"+l.folder)
		return program, []string{"-test.run", l.test}, err
	case l.mine:
		step, err := output(ctx, "go", "run", "./internal/teach/exercise/command", "build", l.step, exercise.Folder, program)
		l.part = "mine " + step
		n, _ := strconv.Atoi(step)
		l.znode, l.wakesOne = n == 1, wakesOne(n)
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
