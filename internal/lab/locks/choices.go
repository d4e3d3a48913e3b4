package locks

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
)

// A Choice is a lock that make play and make explore offer: one of Locks, a published
// mistake, or what the learner has written.
type Choice struct {
	Key    string    `json:"key"` // what LEFT, RIGHT and STEP name
	Name   lang.Text `json:"name"`
	Lesson lang.Text `json:"-"`

	lock string // the key of the lock that it is, or is a change of; "": the first exercise that is not done
	test string // of a published mistake: the test that has it
}

// Choices are all of them, in the order in which they are offered.
var Choices = func() (all []Choice) {
	for _, l := range Locks {
		all = append(all, Choice{Key: l.Key, Name: l.Heading(), Lesson: l.Lesson, lock: l.Key})
	}
	for _, m := range Mistakes {
		all = append(all, Choice{
			Key:  m.Key(),
			Name: lang.Of("%s: %s", "%s：%s", m.Key(), text(m.Name, m.Chinese)),
			Lesson: text("A mistake that was published: see docs/mistakes.md, and its test.",
				"一个公开发表过的错误：见 docs/mistakes.zh-CN.md 和它的测试。"),
			lock: m.Step,
			test: m.Run(),
		})
	}
	lesson := text("Your exercise, built anew whenever you save it.", "你的练习：每次保存以后，都会重新编译。")
	all = append(all, Choice{Key: "mine", Name: text("Mine: the first that is not done", "我的：第一个没有完成的"), Lesson: lesson})
	for _, s := range Steps() {
		all = append(all, Choice{
			Key: "mine" + s.Key, Name: lang.Of("Mine: step %v", "我的：第 %v 步", s.Key), Lesson: lesson, lock: s.Key,
		})
	}
	return all
}()

// Choose returns the choice of a key that somebody has typed: 04 is 4.
func Choose(key string) (Choice, error) {
	if i := slices.IndexFunc(Choices, func(c Choice) bool { return c.Key == strings.TrimLeft(key, "0") }); i >= 0 {
		return Choices[i], nil
	}
	return Choice{}, fmt.Errorf("there is no lock %q", key)
}

// IsMine tells whether the learner has written it.
func (c Choice) IsMine() bool { return strings.HasPrefix(c.Key, "mine") }

// IsMistake tells whether it is a published mistake.
func (c Choice) IsMistake() bool { return c.test != "" }

// A Program is what is started as a client of a lock.
type Program struct {
	Lock Entry  // that it has, or a change of it
	Part string // its name as a process
	Path string
	Args []string
}

// Program returns the program of a choice's clients. It is built first if it is not this one: a
// complaint of the compiler is the error. repo is where the repository is, exercises where the
// learner's packages are, and scratch where the program may be put.
func (c Choice) Program(ctx context.Context, repo, exercises, scratch string) (p Program, err error) {
	switch {
	case c.IsMistake():
		p.Lock = Find(c.lock)
		p.Part, p.Args = c.Key, []string{"-test.run", c.test}
		p.Path = filepath.Join(scratch, p.Lock.Folder+".test")
		if _, err = os.Stat(p.Path); err != nil {
			_, err = run(ctx, repo, "go", "test", "-c", "-o", p.Path, "./"+p.Lock.Folder)
		}
	case c.IsMine():
		p.Path, p.Args = filepath.Join(scratch, "mine"+rand.Text()), []string{"-test.run", "^TestLock$"}
		var step string
		step, err = run(ctx, repo, "go", "run", "./internal/cmd/exercise", "build", c.lock, exercises, p.Path)
		if err == nil {
			p.Lock, p.Part = Find(step), "mine "+step
		}
	default:
		p.Lock = Find(c.lock)
		p.Part = p.Lock.Subject
		p.Path, err = os.Executable()
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
