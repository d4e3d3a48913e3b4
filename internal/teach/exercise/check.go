package exercise

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
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
	if isSupervised() {
		os.Exit(supervise())
	}
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

// patience is how long a lock has for one property. Those that hold take some seconds, and
// more on a busy machine. A lock that hangs, and whose calls neither begin nor come back,
// has half of it.
var patience = zktest.Patience / 3

// spins is a number of requests without a rest that no client makes in one property, if
// it ever sleeps.
const spins = 300

// Properties mostly wait, so many are asked at a time. What fails on a busy machine is asked
// once more, with few at a time.
const (
	many = 12
	few  = 3
)

// slow are the properties that take longest. They are begun first, for the whole list
// takes as long as the last of them.
var slow = []*property.Property{property.LongHold, property.LaggingServer, property.OutageAtEntry,
	property.LossLetsNobodyIn, property.AliveAtEntry, property.UnlockEnds, property.ToldOfLoss,
	property.SilentWait, property.QuietAfter, property.LostWhileWaiting, property.NoStranger}

// A check is one run of the learner's test.
type check struct {
	*testing.T
	exercise Exercise
	subjects []property.Subject
	server   *zkserver.Server
	record   Record
	asked    map[*property.Property]bool
}

// Check asks whether the learner's lock has the properties that the exercise is to
// bring. Each is a subtest. In step 1 the second subject is the one that frees the lock
// after a crash.
//
// First comes what every lock can do: if that fails, nothing else is asked. Then comes
// what failed last time. In a step with parts the property of the part that the learner is
// in comes next, and then all that the lock can have by now. When all properties hold, every
// order of two clients and a long wait are asked last. What was found is kept beside the
// learner's files.
func Check(t *testing.T, name string, subjects ...property.Subject) {
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
	c.asked = map[*property.Property]bool{}
	part := min(e.partsDone(c.record)+1, len(e.Parts()))
	c.record.isAbout(yours)
	usable := c.canBeUsed()
	switch {
	case namesAProperty():
		c.askNamed(usable)
	case usable:
		c.askFrom(part)
		c.last()
	}
	c.sum()
	if askedAgain() {
		return
	}
	if err := c.record.Keep(here); err != nil {
		t.Error(err)
	}
}

// partsDone counts the parts, from the first on, whose own property holds.
func (e Exercise) partsDone(r Record) (n int) {
	for _, part := range e.Parts() {
		if !r.holds(part.own()) {
			break
		}
		n++
	}
	return n
}

// askFrom asks for the goals of a learner who is in this part; 0 if there are no parts. As
// soon as one does not hold, the rest is not asked: the learner need not wait for it.
func (c *check) askFrom(part int) {
	e := c.exercise
	failed := c.failedLastTime(part)
	if len(e.Parts()) == 0 {
		if c.ask(failed) {
			c.ask(e.Goals)
		}
		return
	}
	c.ask(slices.Concat(failed, e.ownOf(1, part)))
	stillFails := slices.ContainsFunc(failed, func(p *property.Property) bool { return !c.record.holds(p) })
	if stillFails {
		return
	}
	done := e.partsDone(c.record)
	for done >= part && done < len(e.Parts()) && c.ask(e.ownOf(done+1, done+1)) {
		done++
	}
	// All that the lock can have by now takes longer. It is asked when a part is done, and
	// when it was asked last time, and came to an end at what failed.
	partIsDone := done >= part
	cameToAnEnd := len(failed) > 0 && done == part-1
	if partIsDone || cameToAnEnd {
		c.ask(e.after(done))
	}
}

// failedLastTime are those goals that a lock can have after a part, and that are no
// part's own, that did not hold when they were last asked.
func (c *check) failedLastTime(part int) (properties []*property.Property) {
	own := c.exercise.ownOf(1, part)
	for _, p := range c.exercise.after(part) {
		if slices.Contains(c.record.Failed, p.Name.EN) && !slices.Contains(own, p) {
			properties = append(properties, p)
		}
	}
	return properties
}

// askNamed asks for what -run names.
func (c *check) askNamed(usable bool) {
	names := []string{canBeUsed}
	for _, p := range c.exercise.Goals {
		names = append(names, p.Name.EN)
	}
	if c.exercise.hasLast() {
		names = append(names, everyOrder, property.SilentForLong.Name.EN)
	}
	if !slices.ContainsFunc(names, wanted) {
		c.Fail()
		say(c.T, "-run names no property of this exercise. They are: %s", strings.Join(names, ", "))
		return
	}
	if usable && c.ask(c.exercise.Goals) {
		c.last()
	}
}

// ownOf are the properties that the parts are made for, from one part to another.
func (e Exercise) ownOf(from, to int) (properties []*property.Property) {
	for _, part := range e.Parts()[from-1 : to] {
		properties = append(properties, part.own())
	}
	return properties
}

// after are the goals that a lock can have after a part: those that no later part brings.
func (e Exercise) after(part int) (properties []*property.Property) {
	parts := e.Parts()
	for _, p := range e.Goals {
		if parts.bringing(p) <= part {
			properties = append(properties, p)
		}
	}
	return properties
}

// Run is the -run of go test that asks for one property.
func Run(property string) string { return "^TestLock$/^" + underscored(property) + "$" }

func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

// namesAProperty tells whether -run does: then not all is asked.
func namesAProperty() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "/")
}

// wanted tells whether -run and -skip leave a subtest in.
func wanted(name string) bool {
	_, run, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	_, skip, skips := strings.Cut(flag.Lookup("test.skip").Value.String(), "/")
	runs, err1 := regexp.MatchString(run, underscored(name))
	skipped, err2 := regexp.MatchString(skip, underscored(name))
	if err1 != nil || err2 != nil {
		return true // testing itself says what is wrong with the pattern
	}
	return runs && !(skips && skipped)
}

// ask asks for the properties that were not asked yet, and then tells of each. It tells
// whether all hold. Once one does not, those behind it in the list are not asked any more:
// the learner need not wait for them. Those that were asked already, and do not hold, are
// not told: it may be for the same reason.
func (c *check) ask(properties []*property.Property) (hold bool) {
	properties = slices.DeleteFunc(slices.Clone(properties), func(p *property.Property) bool {
		return c.asked[p] || !wanted(p.Name.EN)
	})
	results := c.results(properties, many)
	if zktest.Busy() {
		failed := slices.DeleteFunc(slices.Clone(properties), func(p *property.Property) bool {
			return results[p].Verdict.Accepted()
		})
		maps.Copy(results, c.results(failed, few))
	}
	hold = true
	for _, p := range properties {
		c.asked[p] = true
		if hold || results[p].Verdict.Accepted() {
			hold = c.tell(p, results[p]) && hold
		}
	}
	return hold
}

// results asks for so many properties at a time. It has no verdict on those that are not
// needed, as one before them fails.
func (c *check) results(properties []*property.Property, atATime int) map[*property.Property]property.Result {
	results := map[*property.Property]property.Result{}
	needed := map[*property.Property]context.Context{}
	enough := map[*property.Property]context.CancelFunc{}
	for _, p := range properties {
		needed[p], enough[p] = context.WithCancel(c.Context())
		defer enough[p]()
	}
	var writing sync.Mutex
	slots := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for _, p := range slowFirst(properties) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			result, finished := c.result(needed[p], p)
			if !finished {
				return
			}
			writing.Lock()
			results[p] = result
			writing.Unlock()
			if result.Verdict.Accepted() {
				return
			}
			for _, behind := range properties[slices.Index(properties, p)+1:] {
				enough[behind]()
			}
		})
	}
	all.Wait()
	for _, r := range results {
		if !r.Verdict.Accepted() {
			return results // whose goroutines may go on
		}
	}
	for name, at := range leftBehind() {
		for p, r := range results {
			if p.Name.EN == name {
				r.Verdict = property.No
				r.Evidence = fmt.Sprintf("a goroutine was left behind, at %s", at)
				results[p] = r
			}
		}
	}
	return results
}

// slowFirst are the properties in the order in which they are begun.
func slowFirst(properties []*property.Property) (ordered []*property.Property) {
	for _, p := range slow {
		if slices.Contains(properties, p) {
			ordered = append(ordered, p)
		}
	}
	for _, p := range properties {
		if !slices.Contains(slow, p) {
			ordered = append(ordered, p)
		}
	}
	return ordered
}

// result asks for one property. It has not finished if its result was no longer needed.
func (c *check) result(needed context.Context, p *property.Property) (r property.Result, finished bool) {
	if needed.Err() != nil {
		return r, false
	}
	inJournal(begins, p.Name.EN)
	defer inJournal(ends, p.Name.EN)
	ctx, hangs := context.WithTimeout(needed, patience)
	defer hangs()
	calls := &calls{}
	defer calls.whenQuiet(patience/2, hangs)()
	labelled(p.Name.EN, func() {
		r = property.CheckUntil(ctx, c.server, calls.of(Asked(p, c.subjects)), p)
	})
	if panicked := calls.panicked(); panicked != ("") {
		r.Verdict, r.Evidence = property.No, panicked
		return r, true
	}
	if r.Verdict.Accepted() {
		return r, true
	}
	if needed.Err() != nil { // it was interrupted, and that may be all that is wrong
		return r, false
	}
	for _, line := range r.Lines {
		if n := restless(line.Frames); n > spins {
			r.Verdict = property.No
			r.Evidence = fmt.Sprintf("%s sent %d requests without a rest before them: it does not sleep", line.Client, n)
		}
	}
	return r, true
}

// Asked is the one of an exercise's subjects that is asked for a property: in step 1 the
// second one frees the lock after a crash.
func Asked(p *property.Property, subjects []property.Subject) property.Subject {
	if p == property.CrashFrees && len(subjects) > 1 {
		return subjects[1]
	}
	return subjects[0]
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
func (c *check) tell(p *property.Property, r property.Result) bool {
	if r.Verdict == "" {
		return false
	}
	c.record.answer(Answer{p.Name.EN, string(r.Verdict), r.Evidence})
	return c.Run(p.Name.EN, func(t *testing.T) {
		if file := os.Getenv(PageVariable); file != "" {
			if err := c.page(r, file); err != nil {
				t.Error(err)
			}
		}
		switch r.Verdict {
		case property.Yes:
			say(t, "%s", r.Evidence)
		case property.Void:
			say(t, "this does not arise: %s", r.Evidence)
		default:
			t.Fail()
			told(t.Output(), r.Evidence, question(p, r.Evidence))
		}
	})
}

// told prints what was seen, and what to ask oneself.
func told(out io.Writer, seen string, ask string) {
	fmt.Fprintln(out, InTwoLines(fmt.Sprintf("seen: %s", seen)))
	if ask != "" {
		fmt.Fprintf(out, "ask yourself: %s\n", ask)
	}
}

// say prints a line of a test, in the reader's language.
func say(t *testing.T, format string, args ...any) {
	fmt.Fprintf(t.Output(), format+"\n", args...)
}

// sum tells how far the lock has come, and what to go on with.
func (c *check) sum() {
	e := c.exercise
	next := e.Missing(c.record)
	if next == nil && c.Failed() {
		return
	}
	if next == nil {
		say(c.T, "All %d hold.", len(e.Goals))
		for _, what := range e.NotTested() {
			say(c.T, "Not tested: %s.", what)
		}
		return
	}
	if namesAProperty() {
		return // not all were asked
	}
	goOn := fmt.Sprintf("%q", next.Name)
	if part := e.Parts().bringing(next); part > 0 {
		goOn = e.Parts().Name(part)
	}
	if len(c.record.Answers) > 0 {
		say(c.T, "%d of %d that were asked hold. Go on with %s.", e.Held(c.record), len(c.record.Answers), goOn)
	}
	if open := len(e.Goals) - len(c.record.Answers); open > 0 {
		say(c.T, "The other %d are asked when what has failed holds.", open)
	}
	say(c.T, "More help: make hint STEP=%s", e.Name)
}

// PageVariable names the file for a page of what the property that is asked has shown.
const PageVariable = "ZKLOCK_REPLAY"

// page writes a page of what the learner's lock has done, and the step's own beside it.
func (c *check) page(yours property.Result, file string) error {
	step := page.Steps[slices.IndexFunc(page.Steps, func(s page.Step) bool { return s.Key == c.exercise.Name })]
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	own := property.Check(c.server, step.Subject, yours.Property, 0)
	return page.Evidence(words.Whole(c.server.Origin), step, yours, own).Write(out)
}
