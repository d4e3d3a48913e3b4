package play

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

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/steps"
)

// A lock is one that can be chosen.
type lock struct {
	Key    string    `json:"key"`
	Name   lang.Text `json:"name"`
	Lesson lang.Text `json:"-"`

	part string // the name that its process has; "": that of another program
	step string // whose lock it is, "" if it is of none
	test string // of a published mistake: the test that has it
}

// locks are all that can be chosen, in the order of the list.
var locks = func() (all []lock) {
	for _, s := range steps.Steps() {
		name := lang.Of("Step %v: %v", "第 %v 步：%v", s.Key, s.Name)
		all = append(all, lock{Key: s.Key, Name: name, Lesson: s.Lesson, part: s.Subject, step: s.Key})
	}
	work := text("For work: what the steps teach, and a lease.", "用在生产环境里：有各步讲的一切，还有租约。")
	for i, l := range []property.Subject{steps.Mutex, steps.RWMutex, steps.Cohort} {
		key := [...]string{"mutex", "rwmutex", "cohort"}[i]
		all = append(all, lock{Key: key, Name: text(l.Name, l.Name), Lesson: work, part: l.Name})
	}
	client := steps.Find("zk")
	all = append(all, lock{Key: client.Key, Name: client.Name, Lesson: client.Lesson, part: client.Subject})
	for _, m := range steps.Mistakes {
		all = append(all, lock{
			Key:    m.Key(),
			Name:   lang.Of("%s: %s", "%s：%s", m.Key(), text(m.Name, m.Chinese)),
			Lesson: text("A mistake that was published: docs/mistakes.md shows its code.", "一个公开发表过的错误：代码见 docs/mistakes.zh-CN.md。"),
			step:   m.Step,
			test:   m.Run(),
		})
	}
	lesson := text("Your exercise, built anew whenever you save it.", "你的练习，每次保存都重新编译。")
	all = append(all, lock{Key: "mine", Name: text("Mine: the first that is not done", "我的：第一个没完成的"), Lesson: lesson})
	for _, s := range steps.Steps() {
		name := lang.Of("Mine: step %v", "我的：第 %v 步", s.Key)
		all = append(all, lock{Key: "mine" + s.Key, Name: name, Lesson: lesson, step: s.Key})
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

// Part begins the part of a client in a process that was started for it.
func Part() {
	for _, s := range steps.Every {
		s.Acts()
	}
}

// program returns the program of a lock's clients, which is built first if it is not
// this one. A complaint of the compiler is its error.
func (l lock) program(ctx context.Context, repo, exercises, scratch string) (p program, err error) {
	p.step = l.step
	switch {
	case l.test != "":
		home := steps.Find(l.step).Folder
		p.part, p.path, p.args = l.Key, filepath.Join(scratch, home+".test"), []string{"-test.run", l.test}
		if _, err = os.Stat(p.path); err != nil {
			_, err = run(ctx, repo, "go", "test", "-c", "-o", p.path, "./"+home)
		}
	case l.mine():
		p.path = filepath.Join(scratch, "mine"+rand.Text())
		var said string
		said, err = run(
			ctx,
			repo,
			"go",
			"run",
			"./internal/cmd/exercise",
			"build",
			strings.TrimPrefix(l.Key, "mine"),
			exercises,
			p.path,
		)
		p.part, p.step, p.args = "mine "+said, said, []string{"-test.run", "^TestLock$"}
	default:
		p.part = l.part
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
