// Command judge holds the learner's lock of one exercise against the properties
// that it is to have, and prints each answer as a line of JSON, in order.
// internal/exercise builds it for each check.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	election "zklock/docs/graduation/election/exercise"
	multilock "zklock/docs/graduation/multilock/exercise"
	semaphore "zklock/docs/graduation/semaphore/exercise"
	"zklock/internal/lockcheck"
	"zklock/internal/page"
	"zklock/internal/steps"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
	step01 "zklock/step01_plain_node/exercise"
	step02 "zklock/step02_sequential_spin/exercise"
	step03 "zklock/step03_children_watch/exercise"
	predecessorwatch "zklock/step04_predecessor_watch"
	step04 "zklock/step04_predecessor_watch/exercise"
	step05 "zklock/step05_reentrant/exercise"
	step06 "zklock/step06_shared_lock/exercise"
)

var (
	patience = flag.Duration("patience", zktest.Patience, "for one property")
	first    = flag.String("first", "", "the property to ask first")
	only     = flag.String("only", "", "the one property to ask, which need not be a goal")
	file     = flag.String("replay", "", "give no answer to -only, but a page of what was seen")
)

// exercises are the learner's versions, and the properties that each is to have: those of
// its step. What the starter lacks stands in the order in which it is best written.
var exercises = map[string]struct {
	yours lockcheck.Subject
	goals []*lockcheck.Property
}{
	"01": {lockcheck.Over("New", step01.New),
		[]*lockcheck.Property{lockcheck.OneHolder, lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.NoWatchLeft, lockcheck.LongHold}},
	"02":        {lockcheck.Over("New", step02.New), upTo(lockcheck.WaiterCrash, lockcheck.NoWatchLeft, lockcheck.LongHold)},
	"03":        {lockcheck.Over("New", step03.New), upTo(lockcheck.SilentWait, lockcheck.NoWatchLeft, lockcheck.LongHold)},
	"04":        {lockcheck.Over("New", step04.New), upTo(lockcheck.NoWatchLeft, lockcheck.LongHold)},
	"05":        {lockcheck.OverSession("New", steps.OpenReentrant, step05.New, step05.Token), upTo(lockcheck.LongHold)},
	"06":        {lockcheck.OverSession("New", steps.OpenShared, step06.New, step06.Token), upTo(lockcheck.Shared, lockcheck.ByKind, lockcheck.Upgrade)},
	"semaphore": {lockcheck.OverSemaphore(semaphore.New), lockcheck.SemaphoreProperties},
	"multilock": {lockcheck.OverMultiLock(multilock.New, predecessorwatch.New), lockcheck.MultiLockProperties},
	"election":  {lockcheck.OverElection(steps.OpenReentrant, election.New), lockcheck.ElectionProperties},
}

// upTo is the list of properties as far as last, and more.
func upTo(last *lockcheck.Property, more ...*lockcheck.Property) []*lockcheck.Property {
	n := slices.Index(lockcheck.Properties, last) + 1
	return slices.Concat(lockcheck.Properties[:n], more)
}

// A question is a property that an exercise is to have.
type question struct {
	of lockcheck.Subject
	*lockcheck.Property
}

// questions are what the learner's version of an exercise is asked.
func questions(name string) (all []question) {
	yours, goals := exercises[name].yours, exercises[name].goals
	if *only != "" {
		return []question{{yours, property(name, *only)}}
	}
	for _, p := range goals {
		all = append(all, question{yours, p})
	}
	if name == "01" { // what frees a crashed holder's lock is a constructor of its own
		all = append(all, question{lockcheck.Over("NewEphemeral", step01.NewEphemeral), lockcheck.CrashFrees})
	}
	if i := slices.IndexFunc(all, func(q question) bool { return q.Name == *first }); i >= 0 {
		all = slices.Concat(all[i:i+1], all[:i], all[i+1:])
	}
	return all
}

// property finds a property of a step by its name.
func property(name, asked string) *lockcheck.Property {
	all := slices.Concat(lockcheck.Properties, exercises[name].goals)
	return all[slices.IndexFunc(all, func(p *lockcheck.Property) bool { return p.Name == asked })]
}

// An answer is what the judge says of one property.
type answer struct{ Verdict, Property, Evidence, Hint string }

func main() {
	for name, exercise := range exercises { // make play has started it
		exercise.yours.Name = "mine " + name
		exercise.yours.Acts()
	}
	flag.Parse()
	say := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr // for what the learner's lock prints
	server, err := zktest.Shared()
	switch {
	case err != nil:
	case *file != "":
		err = replay(server, flag.Arg(0))
	default:
		for _, answered := range ask(server, questions(flag.Arg(0))) {
			_ = say.Encode(<-answered)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(7) // complete, as internal/exercise calls it: a learner's lock may end the program, too
}

// ask asks some questions at a time: they mostly wait.
func ask(server *zkserver.Server, questions []question) (answers []chan answer) {
	slots := make(chan struct{}, 8)
	for _, q := range questions {
		answered := make(chan answer, 1)
		answers = append(answers, answered)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := lockcheck.Check(server, q.of, q.Property, *patience)
			if r.Verdict == lockcheck.Stuck { // a busy machine can be the reason
				r = lockcheck.Check(server, q.of, q.Property, *patience)
			}
			answered <- answer{string(r.Verdict), q.Name, r.Evidence, q.Hint}
		}()
	}
	return answers
}

// replay holds the learner's version and the step's own against a property, and writes
// a page of what both have done.
func replay(server *zkserver.Server, name string) error {
	p := property(name, *only)
	step := page.Steps[slices.IndexFunc(page.Steps, func(s page.Step) bool { return "0"+s.Key == name })]
	yours := lockcheck.Check(server, exercises[name].yours, p, *patience)
	out, err := os.Create(*file)
	if err != nil {
		return err
	}
	defer out.Close()
	return page.Evidence(server.Origin, step, yours, lockcheck.Check(server, step.Subject, p, 0)).Write(out)
}
