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

// A Choice is a lock that make play and make explore offer: one of Locks, that of step 5's part A, a published
// mistake, or an exercise that the learner has written.
type Choice struct {
	Key    string    `json:"key"` // the value of LEFT, RIGHT and STEP
	Name   lang.Text `json:"name"`
	Lesson lang.Text `json:"-"`

	lock string // the key of the lock that it is, or changes; "": the first exercise that is not done
	test string // for a published mistake: the test with that lock

	isPartA bool

	NeedsThree bool `json:"-"` // a published mistake that two clients cannot show
}

// Choices lists all choices, in the order in which the commands offer them.
var Choices = func() (all []Choice) {
	for _, l := range Locks {
		all = append(all, Choice{Key: l.Key, Name: l.Heading(), Lesson: l.Lesson, lock: l.Key})
	}
	all = append(all, Choice{
		Key:  PartA,
		Name: text("Step 5, part A", "第 5 步（上）"),
		Lesson: text("What you have built at the end of part A: lost replies do no harm, but a holder does not learn of its loss.",
			"学完第 5 步（上）时写成的锁：响应丢失没有害处，但是持有者丢了锁也得不到通知。"),
		lock:    "5",
		isPartA: true,
	})
	for _, m := range Mistakes {
		all = append(all, Choice{
			Key:  m.Key(),
			Name: lang.Of("%s: %s", "%s：%s", m.Key(), text(m.Name, m.Chinese)),
			Lesson: text("A mistake that was published: see docs/mistakes.md, and its test.",
				"一个公开发表过的错误：见 docs/mistakes.zh-CN.md 和它的测试。"),
			lock:       m.Step,
			test:       m.Run(),
			NeedsThree: m.Three,
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

// PartA is the key of the lock that step 5's part A ends with. It is the number of its last stair.
const PartA = "5.5"

// Choose returns the choice with a key that the user has typed. It ignores leading zeroes: 04 is 4.
func Choose(key string) (Choice, error) {
	if i := slices.IndexFunc(Choices, func(c Choice) bool { return c.Key == strings.TrimLeft(key, "0") }); i >= 0 {
		return Choices[i], nil
	}
	return Choice{}, fmt.Errorf("there is no lock %q", key)
}

// IsMine reports whether the learner has written the lock.
func (c Choice) IsMine() bool { return strings.HasPrefix(c.Key, "mine") }

// IsMistake reports whether the choice is a published mistake.
func (c Choice) IsMistake() bool { return c.test != "" }

// Base returns, for a published mistake, the key of the lock whose code has it here: that of its
// step, but at most step 4, so that nothing else of step 5 helps.
func (c Choice) Base() string { return min(c.lock, "4") }

// A Program is a program that runs as a client of a lock.
type Program struct {
	Lock Entry  // the lock that it uses, or that its lock is a change of
	Part string // the role that its process plays
	Path string
	Args []string
}

// Program returns the program of a choice's clients. For a lock of Locks this is the running program.
// For part A, a mistake or an exercise, Program builds it, and returns an error of the compiler as its error.
// repo is the folder of the repository, exercises that of the learner's packages, and scratch the
// folder for a program that is built.
func (c Choice) Program(ctx context.Context, repo, exercises, scratch string) (p Program, err error) {
	switch {
	case c.IsMistake():
		p.Lock = Find(c.lock)
		p.Part, p.Args = c.Key, []string{"-test.run", c.test}
		p.Path = filepath.Join(scratch, p.Lock.Folder+".test")
		if _, err = os.Stat(p.Path); err != nil {
			_, err = run(ctx, repo, "go", "test", "-c", "-o", p.Path, "./"+p.Lock.Folder)
		}
	case c.isPartA:
		p.Lock, p.Part = Find(c.lock), "mine "+c.lock
		p.Path, p.Args = filepath.Join(scratch, "partA.test"), []string{"-test.run", "^TestLock$"}
		if _, err = os.Stat(p.Path); err != nil {
			_, err = run(ctx, repo, "go", "run", "./internal/cmd/exercise", "stair", c.Key, p.Path)
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

// run runs a command in a folder, and returns what it prints. If the command fails, the error is what
// it prints to the standard error.
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
