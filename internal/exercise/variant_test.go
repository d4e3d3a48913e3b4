package exercise

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
	childrenwatch "zklock/step03_children_watch"
)

// The check of each step's exercise accepts the step's lock, and right ones that differ from it. It
// refuses the starter and the wrong ones.
//
//	go test -run TestTheExercise/step_4/W8 ./internal/exercise
//
// The locks are compiled into a program of their own: this test once more, in which made has the locks.
func TestTheExercise(t *testing.T) {
	// Each lane asks one step after the other, beside the other lane: a step mostly waits, and alone leaves half of two
	// processors idle. The steps are divided so that both lanes end at about the same time.
	var lanes sync.WaitGroup
	for _, lane := range [][]Exercise{{Step5, Step3}, {Step1, Step2, Step4, Step6}} {
		lanes.Go(func() {
			for _, e := range lane {
				t.Run(e.String(), func(t *testing.T) { e.askAll(t) })
			}
		})
	}
	lanes.Wait()
}

// askAll tests what the check says of all variants of a step: in the program that has their locks itself, elsewhere by
// building and running this program.
func (e Exercise) askAll(t *testing.T) {
	if made == nil {
		e.askVariants(t)
		return
	}
	for _, v := range e.variants() {
		if _, isMade := made[key(e, v)]; isMade {
			v.ask(t, e)
		}
	}
	e.askOwnTest(t)
}

// made are the locks of the variants of a step, in the program that has them.
var made map[string][]property.Subject

func key(e Exercise, v Variant) string { return e.Name + " " + v.Name }

// starter is the exercise's starter, as a variant.
const starter = "the starter"

// variants are those of the exercise, with the step's own lock and the starter.
func (e Exercise) variants() (all []Variant) {
	for _, v := range append([]Variant{{Name: e.String()}, {Name: starter, Of: e.starter(), By: lacks[e.Name]}}, variants[e.Name]...) {
		if v.Of == "" {
			v.Of = e.Home
		}
		all = append(all, v)
	}
	return all
}

// lacks are the properties at which the check of a starter stops.
var lacks = map[string]*property.Property{
	"1": property.OneHolder,
	"2": property.FirstCome,
	"3": property.SilentWait,
	"4": property.WakesOne,
	"5": property.LostCreateReply,
	"6": property.Shared,
}

// ask tests what the check says of a variant.
func (v Variant) ask(t *testing.T, e Exercise) {
	t.Run(v.Name, func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%q is the lock in %s with these lines replaced:\n%s", v.Name, v.Of, v.Hunks)
			}
		})
		locks := slices.Clone(made[key(e, v)])
		switch {
		case v.Alone: // in step 1 the second lock is asked for everything
			e.refusesByOne(t, Wrong{By: v.By, Lock: locks[len(locks)-1], Besides: v.Besides})
		case v.By == nil:
			Accepts(t, e, locks...)
		default:
			Refuses(t, e, v.By, locks...)
		}
	})
}

// Each property is needed: a wrong lock lacks it, and has all others of the exercise.
func TestEachPropertyRefusesALockAlone(t *testing.T) {
	for _, e := range []Exercise{Step1, Step2, Step3, Step4, Step5, Step6} {
		var alone []*property.Property
		names := map[string]bool{}
		for _, v := range e.variants() {
			assert.False(t, names[v.Name], "%s has two variants with the name %q: one would be asked for both", e, v.Name)
			names[v.Name] = true
			if v.Alone {
				alone = append(alone, v.By)
			}
		}
		for _, p := range e.brings() {
			assert.Contains(t, alone, p, "%s: no wrong lock is refused by %q alone", e, p)
		}
	}
}

// Step 3 has another right lock on one znode: its waiters watch it.
func TestStep1sExerciseAcceptsALockThatWatches(t *testing.T) {
	watches := property.Over("watches", childrenwatch.NewWatched)
	watches.Znode = true
	Accepts(t, Step1, watches)
}

// askVariants builds the program of a step, and runs the same part of this test in it.
func (e Exercise) askVariants(t *testing.T) {
	root, err := os.Getwd()
	require.NoError(t, err)
	here := filepath.Join(root, "internal", "exercise")
	texts := map[string]string{}
	var locks []lock
	for i, v := range e.variants() {
		files, err := v.files(root)
		if !assert.NoError(t, err) {
			continue
		}
		name := regexp.MustCompile("[^a-zA-Z0-9]+").ReplaceAllString(v.Name, "-") // which the compiler's errors say
		l := lock{v, fmt.Sprintf("made%d/%s", i, name), fmt.Sprintf("%q", key(e, v)), kindOf(v.Of)}
		for file, text := range files {
			texts[filepath.Join(here, l.Package, file)] = text
		}
		locks = append(locks, l)
	}
	var table bytes.Buffer
	require.NoError(t, madeFile.Execute(&table, locks))
	texts[filepath.Join(here, "made_test.go")] = table.String()

	dir := t.TempDir()
	list, err := overlay(dir, texts)
	require.NoError(t, err)
	program := filepath.Join(dir, "locks.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", program, "./internal/exercise")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "build the locks of %s: %s", e, said)

	server, err := zktest.Shared()
	require.NoError(t, err)
	pattern := flag.Lookup("test.run").Value.String()
	if parts := strings.SplitN(pattern, "/", 3); len(parts) < 3 {
		pattern = "^TestTheExercise$/^" + strings.ReplaceAll(e.String(), " ", "_") + "$"
	}
	const limit = "40m" // beside other tests, the rows of step 5 take more than half of it
	verbose := "-test.v=" + strconv.FormatBool(testing.Verbose())
	ask := exec.CommandContext(t.Context(), program, verbose, "-test.run", pattern, "-test.timeout", limit)
	ask.Dir = here
	ask.Env = server.Environ()
	said, err = ask.CombinedOutput()
	t.Logf("%s", said)
	assert.NoError(t, err)
}

// A lock is a variant in the program.
type lock struct {
	Variant
	Package string // below internal/exercise
	Key     string
	Kind    string
}

// kindOf returns how the locks in a folder are made.
func kindOf(folder string) string {
	switch {
	case strings.HasPrefix(folder, Step1.Home):
		return "Znode"
	case folder == Step5.starter(): // its Lock returns an error, as step 4's does
		return "Session"
	case strings.HasPrefix(folder, Step5.Home), strings.HasPrefix(folder, Step6.Home):
		return "Holds"
	}
	return "Queue"
}

var madeFile = template.Must(template.New("").Parse(`package exercise

import (
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/zktest"
{{range $i, $l := .}}	made{{$i}} "zklock/internal/exercise/{{.Package}}"
{{end}})

var (
	_ time.Duration
	_ zk.Dialer
	_ zktest.Session
)

func init() {
	made = map[string][]property.Subject{}
	var s property.Subject
{{range $i, $l := .}}{{if eq .Kind "Znode"}}
	s = property.Over({{.Key}}, made{{$i}}.New)
	s.Znode, s.NotHeld = true, zk.ErrNoNode
	made[{{.Key}}] = append(made[{{.Key}}], s)
	s = property.Over({{.Key}}, made{{$i}}.NewEphemeral)
	s.Znode, s.NotHeld = true, zk.ErrNoNode
	made[{{.Key}}] = append(made[{{.Key}}], s)
{{else}}{{if eq .Kind "Queue"}}
	s = property.Over({{.Key}}, made{{$i}}.New)
{{else}}
	s = property.Over{{.Kind}}({{.Key}}, func(servers []string, timeout time.Duration, dial zk.Dialer) (*made{{$i}}.Session, error) {
		return made{{$i}}.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}, made{{$i}}.New)
{{end}}	s.NotHeld = made{{$i}}.ErrNotHeld
	made[{{.Key}}] = append(made[{{.Key}}], s)
{{end}}{{end}}}
`))
