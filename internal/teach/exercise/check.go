package exercise

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/page"
	"zklock/internal/upkeep/words"
)

// here is the folder of the learner's package.
var here string

// Main is for the TestMain of the learner's package.
func Main(m *testing.M) {
	var err error
	if here, err = os.Getwd(); err == nil {
		err = toRoot()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	words.AsAsked()
	zktest.Main(m)
}

// toRoot goes to the root of the repository.
func toRoot() error {
	for {
		if _, err := os.Stat("internal/teach/exercise"); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
		if dir, err := os.Getwd(); err != nil || dir == filepath.Dir(dir) {
			return errors.Join(err, errors.New("the learner's package has to be inside of the repository"))
		}
	}
}

// patience is how long a lock has for one property. Those that hold take a second or
// two, and more while others are asked, or on a busy machine.
var patience = zktest.Patience / 3

// spins is a number of requests without a rest that no client makes in one property, if
// it ever sleeps.
const spins = 300

// A check is one run of the learner's test.
type check struct {
	*testing.T
	exercise Exercise
	subjects []lockcheck.Subject
	server   *zkserver.Server
	record   Record
	asked    map[*lockcheck.Property]bool

	mu    sync.Mutex
	hangs int // properties that came to no answer, or to too many requests
}

// Check asks whether the learner's lock has the properties that the exercise is to
// bring. Each is a subtest. In step 1 the second subject is the one that frees the lock
// after a crash.
//
// First comes what every lock can do: if that fails, nothing else is asked. In a step
// with parts the properties of the parts come next, as far as the learner has come. What
// was found is kept beside the learner's files.
func Check(t *testing.T, name string, subjects ...lockcheck.Subject) {
	e, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	subjects[0].Name = "mine " + e.Name
	subjects[0].Acts() // in make play
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	yours, err := Yours(here)
	if err != nil {
		t.Fatal(err)
	}
	c := &check{T: t, exercise: e, subjects: subjects, server: server, record: Recorded(here)}
	c.asked = map[*lockcheck.Property]bool{}
	part := e.partOf(c.record)
	if version := yours.Version(); version != c.record.Version {
		c.record.Version, c.record.Answers = version, nil
	}
	if c.canBeUsed() && c.ask(e.upToPart(part)) {
		c.ask(e.Goals)
	}
	if err := c.record.Keep(here); err != nil {
		t.Error(err)
	}
	c.sum()
}

// partOf is the part that the learner was in when the lock was last checked: the first
// whose property was missing.
func (e Exercise) partOf(r Record) (n int) {
	parts := e.Parts()
	for n < len(parts) {
		n++
		if !slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Property == parts[n-1].Property && a.holds() }) {
			break
		}
	}
	return n
}

// upToPart are the properties that the parts bring, up to part n.
func (e Exercise) upToPart(n int) (properties []*lockcheck.Property) {
	parts := e.Parts()
	for _, p := range e.Goals {
		if at := parts.bringing(p); 0 < at && at <= n {
			properties = append(properties, p)
		}
	}
	return properties
}

// Run is the -run of go test that asks for one property.
func Run(property string) string { return "^TestLock$/^" + underscored(property) + "$" }

func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

// wanted tells whether -run leaves a subtest in.
func wanted(name string) bool {
	_, pattern, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	matches, err := regexp.MatchString(pattern, underscored(name))
	return matches || err != nil
}

// ask asks for the properties that were not asked yet, some at a time, for they mostly
// wait, and then tells of each. It tells whether all hold. If the first of the exercise
// does not, the others go wrong for the same reason, and are not told.
func (c *check) ask(properties []*lockcheck.Property) (hold bool) {
	properties = slices.DeleteFunc(slices.Clone(properties), func(p *lockcheck.Property) bool {
		return c.asked[p] || !wanted(p.Name)
	})
	results := make([]lockcheck.Result, len(properties))
	slots := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, p := range properties {
		c.asked[p] = true
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = c.result(p)
		})
	}
	all.Wait()
	hold = true
	for i, p := range properties {
		r := results[i]
		if r.Verdict == lockcheck.Stuck && c.hangs == 1 {
			r = c.result(p) // a busy machine can be the reason
		}
		hold = c.tell(p, r) && hold
		if !hold && p == c.exercise.Goals[0] {
			break
		}
	}
	return hold
}

// result asks for one property. It has no verdict if nothing more is asked, because
// others have hung.
func (c *check) result(p *lockcheck.Property) lockcheck.Result {
	c.mu.Lock()
	enough := c.hangs > 1
	c.mu.Unlock()
	if enough {
		return lockcheck.Result{}
	}
	subject := c.subjects[0]
	if p == lockcheck.CrashFrees && len(c.subjects) > 1 {
		subject = c.subjects[1]
	}
	broken := &panics{}
	r := lockcheck.Check(c.server, broken.in(subject), p, patience)
	if said := broken.String(); said != "" {
		r.Verdict, r.Evidence = lockcheck.No, said
		return r
	}
	if r.Verdict == lockcheck.Yes {
		return r
	}
	spinning := ""
	for _, line := range r.Lines {
		if n := restless(line.Frames); n > spins {
			spinning = words.Sprintf("%s sent %d requests without a rest before them: it does not sleep", line.Client, n)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Verdict == lockcheck.Stuck {
		c.hangs++
	}
	if spinning != "" {
		r.Verdict, r.Evidence = lockcheck.No, spinning
		c.hangs += 2
	}
	return r
}

// requests counts what a client has asked of the server.
func requests(frames []wiretap.Frame) (n int) {
	for _, f := range frames {
		if asks(f) {
			n++
		}
	}
	return n
}

func asks(f wiretap.Frame) bool { return f.Kind == wiretap.Request && f.Op != wiretap.Ping }

// restless counts the requests that were made as soon as the one before was answered.
func restless(frames []wiretap.Frame) (n int) {
	var answered time.Time
	for _, f := range frames {
		if f.Kind == wiretap.Reply {
			answered = f.At
		}
		if asks(f) && f.At.Sub(answered) < 2*time.Millisecond {
			n++
		}
	}
	return n
}

// tell tells of one property, and tells whether it holds.
func (c *check) tell(p *lockcheck.Property, r lockcheck.Result) bool {
	if r.Verdict == "" {
		return false
	}
	c.record.answer(Answer{p.Name, string(r.Verdict), r.Evidence})
	return c.Run(p.Name, func(t *testing.T) {
		if file := os.Getenv(pageVariable); file != "" {
			if err := c.page(r, file); err != nil {
				t.Error(err)
			}
		}
		if r.Verdict == lockcheck.Yes {
			say(t, "%s", r.Evidence)
			return
		}
		t.Fail()
		say(t, "seen: %s", r.Evidence)
		say(t, "ask yourself: %s", p.Hint)
	})
}

// say prints a line of a test, in the reader's language.
func say(t *testing.T, format string, args ...any) {
	words.Fprintf(t.Output(), format+"\n", args...)
}

// sum tells how far the lock has come, and what to go on with.
func (c *check) sum() {
	e := c.exercise
	next := e.Missing(c.record)
	if next == nil {
		say(c.T, "All %d hold.", len(e.Goals))
		return
	}
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // not all were asked
	}
	goOn := words.Sprintf("%q", next.Name)
	if part := e.Parts().bringing(next); part > 0 {
		goOn = e.Parts().Name(part)
	}
	if len(c.record.Answers) > 0 {
		say(c.T, "%d of %d hold. Go on with %s.", e.Held(c.record), len(e.Goals), goOn)
	}
	if open := len(e.Goals) - len(c.record.Answers); open > 0 {
		say(c.T, "The other %d are asked when what has failed holds.", open)
	}
	say(c.T, "More help: make hint STEP=%s", e.Name)
}

// panics notes that the learner's lock has panicked.
type panics struct {
	mu   sync.Mutex
	said string
}

func (p *panics) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// in is the subject, whose calls return an error when they panic.
func (p *panics) in(subject lockcheck.Subject) lockcheck.Subject {
	ways := subject.Ways
	subject.Ways = func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
		write, read = ways(s, path)
		write = p.inWay(write)
		if read != nil {
			reading := p.inWay(*read)
			read = &reading
		}
		return write, read
	}
	return subject
}

func (p *panics) inWay(w zktest.Way) zktest.Way {
	lock, unlock, try := w.Lock, w.Unlock, w.TryLock
	w.Lock = func(ctx context.Context) (held context.Context, err error) {
		defer p.caught(&err)
		return lock(ctx)
	}
	w.Unlock = func(held context.Context) (err error) {
		defer p.caught(&err)
		return unlock(held)
	}
	if try != nil {
		w.TryLock = func(ctx context.Context, wait time.Duration) (held context.Context, err error) {
			defer p.caught(&err)
			return try(ctx, wait)
		}
	}
	return w
}

// caught makes a panic an error. It notes where in the learner's files it has happened.
func (p *panics) caught(err *error) {
	broken := recover()
	if broken == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", broken)
	said := (*err).Error()
	for line := range strings.Lines(string(debug.Stack())) {
		if _, at, ok := strings.Cut(line, here+string(filepath.Separator)); ok && !strings.Contains(at, "_test.go") {
			at, _, _ = strings.Cut(at, " +0x")
			said += ", at " + at
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == "" {
		p.said = said
	}
}

// pageVariable names the file for a page of what the property that is asked has shown.
const pageVariable = "ZKLOCK_REPLAY"

// Replay lets a test write a page of what the property that it asks for has shown.
func Replay(page string, test func() error) error {
	if err := os.Setenv(pageVariable, page); err != nil {
		return err
	}
	return errors.Join(test(), os.Unsetenv(pageVariable))
}

// page writes a page of what the learner's lock has done, and the step's own beside it.
func (c *check) page(yours lockcheck.Result, file string) error {
	step := page.Steps[slices.IndexFunc(page.Steps, func(s page.Step) bool { return s.Key == c.exercise.Name })]
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	own := lockcheck.Check(c.server, step.Subject, yours.Property, 0)
	return page.Evidence(c.server.Origin, step, yours, own).Write(out)
}
