package exercise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zklock/internal/lang"
	"zklock/internal/process"
	"zklock/internal/property"
	"zklock/internal/zkserver"
)

// A mistake is a published one, with which a learner's own test must fail: see docs/mistakes.md.
type mistake struct {
	key  string // its name on that page
	what lang.Text
	lock string // the name of the variant that has it, if that is not the key
}

func (m mistake) variant() string { return cmp.Or(m.lock, m.key) }

// mistakes has a mistake for each step, by the name of the exercise.
var mistakes = map[string]mistake{
	"1": {key: "W4", what: lang.Text{EN: "Lock returns after an error", ZH: "Lock 出错照样返回"}},
	"2": {key: "W1", what: lang.Text{EN: "the znode is persistent", ZH: "znode 是持久节点"}},
	"3": {
		key:  "W13",
		what: lang.Text{EN: "the latch that the watch opens is created after the watch has fired", ZH: "监听器触发之后，才创建它要打开的闭锁"},
		lock: "W13 at the second notification",
	},
	"4": {key: "W8", what: lang.Text{EN: "a client that is woken believes that it has the lock", ZH: "被唤醒就当拿到了锁"}},
	"5": {key: "W11", what: lang.Text{EN: "only a client that had to wait is recognized as the holder", ZH: "只有等过的才被认作持有者"}},
	"6": {key: "W26", what: lang.Text{EN: "a reader waits for a writer behind it", ZH: "读者等排在自己后面的写者"}},
}

// byMistake is the role of a learner's test whose lock has a mistake.
const byMistake = "a lock with a mistake"

// told is the result of the test in that role.
type toldResult struct {
	Verdict  property.Verdict
	Evidence string
}

// askMistake runs the learner's own test with a variant that has a mistake. It builds the test once more,
// by an overlay in which the step's lock, with the mistake, is in place of the learner's.
func (e Exercise) askMistake(t *testing.T, server *zkserver.Server, variant string) (r toldResult, err error) {
	here, err1 := os.Getwd()
	mod, err2 := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err := errors.Join(err1, err2); err != nil {
		return r, err
	}
	wrong := variants[e.Name][slices.IndexFunc(variants[e.Name], func(v Variant) bool { return v.Name == variant })]
	wrong.Of = e.Home
	files, err := wrong.files(filepath.Dir(string(mod)))
	if err != nil {
		return r, err
	}
	texts := map[string]string{}
	mine, _ := filepath.Glob(filepath.Join(here, "*.go"))
	for _, file := range mine {
		if !strings.HasSuffix(file, "_test.go") {
			texts[file] = ""
		}
	}
	for name, text := range files {
		texts[filepath.Join(here, name)] = text
	}
	dir := t.TempDir()
	list, err := overlay(dir, texts)
	if err != nil {
		return r, err
	}
	program := filepath.Join(dir, "mine.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s", "-overlay", list, "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		return r, fmt.Errorf("your test has to compile with another lock as well: %w\n%s", err, said)
	}
	ask := process.InRole(byMistake, exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$"))
	ask.Env = append(ask.Env, server.Environ()...)
	said, err := ask.Output()
	if err == nil {
		err = json.Unmarshal(said, &r)
	}
	return r, err
}

// tellMistake is the other process of askMistake: it prints the result, and ends.
func tellMistake(t *testing.T, lock property.Subject, test func(a, b, c *Client)) {
	server, err := zkserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := askOwn(t.Context(), server, lock, test)
	text, err := json.Marshal(toldResult{r.Verdict, r.Evidence})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(text))
	os.Exit(0)
}
