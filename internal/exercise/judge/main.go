// Command judge holds the learner's lock of one exercise against the properties
// that it is to have, and prints each answer as a line of JSON, in order.
// internal/exercise builds it for each check.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/docs/graduation/check"
	election "zklock/docs/graduation/election/exercise"
	multilock "zklock/docs/graduation/multilock/exercise"
	semaphore "zklock/docs/graduation/semaphore/exercise"
	"zklock/internal/lockcheck"
	"zklock/internal/page"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
	step01 "zklock/step01_plain_node/exercise"
	step02 "zklock/step02_sequential_spin/exercise"
	step03 "zklock/step03_children_watch/exercise"
	step04 "zklock/step04_predecessor_watch/exercise"
	reentrant "zklock/step05_reentrant"
	step05 "zklock/step05_reentrant/exercise"
	sharedlock "zklock/step06_shared_lock"
	step06 "zklock/step06_shared_lock/exercise"
)

// A question is a property that an exercise is to have.
type question struct {
	name, hint string
	ask        func(server *zkserver.Server, patience time.Duration) (verdict, evidence string)
}

// over asks a lock for the properties of internal/lockcheck.
func over(subject lockcheck.Subject, properties []*lockcheck.Property) (all []question) {
	for _, p := range properties {
		all = append(all, question{p.Name, p.Hint, func(server *zkserver.Server, patience time.Duration) (string, string) {
			r := lockcheck.CheckWithin(server, subject, p, patience)
			return string(r.Verdict), r.Evidence
		}})
	}
	return all
}

// graduation asks for the properties of a graduation exercise.
func graduation(properties []check.Property) (all []question) {
	for _, p := range properties {
		all = append(all, question{p.Name, p.Hint, p.Ask})
	}
	return all
}

// An answer is what the judge says of one property.
type answer struct {
	Verdict, Property, Evidence, Hint string
}

// goals names the properties that each exercise is to have: those of its step.
// What the starter lacks stands in the order in which it is best written.
var goals = map[string][]*lockcheck.Property{
	"01": {lockcheck.OneHolder, lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.NoWatchLeft, lockcheck.LongHold},
	"02": upTo(lockcheck.WaiterCrash, lockcheck.NoWatchLeft, lockcheck.LongHold),
	"03": upTo(lockcheck.SilentWait, lockcheck.NoWatchLeft, lockcheck.LongHold),
	"04": upTo(lockcheck.NoWatchLeft, lockcheck.LongHold),
	"05": upTo(lockcheck.LongHold),
	"06": upTo(lockcheck.Shared, lockcheck.ByKind, lockcheck.Upgrade),
}

// upTo is the list of properties as far as last, and more.
func upTo(last *lockcheck.Property, more ...*lockcheck.Property) (all []*lockcheck.Property) {
	for _, p := range lockcheck.Properties {
		all = append(all, p)
		if p == last {
			break
		}
	}
	return append(all, more...)
}

// questions are what the learner's version of an exercise is asked.
func questions(name string) []question {
	switch name {
	case "01": // what frees a crashed holder's lock is a constructor of its own
		return append(over(lockcheck.Over("New", step01.New), goals[name]),
			over(lockcheck.Over("NewEphemeral", step01.NewEphemeral), []*lockcheck.Property{lockcheck.CrashFrees})...)
	case "semaphore":
		return graduation(check.SemaphoreProperties(semaphore.New))
	case "multilock":
		return graduation(check.MultiLockProperties(multilock.New))
	case "election":
		return graduation(check.ElectionProperties(election.New))
	}
	return over(subject(name), goals[name])
}

// subject is the learner's version of a step.
func subject(name string) lockcheck.Subject {
	switch name {
	case "01":
		return lockcheck.Over("New", step01.New)
	case "02":
		return lockcheck.Over("New", step02.New)
	case "03":
		return lockcheck.Over("New", step03.New)
	case "04":
		return lockcheck.Over("New", step04.New)
	case "05":
		open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
			return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
		}
		return lockcheck.OverSession("New", open, step05.New, step05.Token)
	case "06":
		open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
			return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
		}
		return lockcheck.OverSession("New", open, step06.New, step06.Token)
	}
	panic("no such exercise: " + name) // internal/exercise names it
}

// chosen are the questions of an exercise, one property "first", or "only" that one,
// which then need not be among its goals.
func chosen(name, how, property string) (all []question) {
	is := func(q question) bool { return q.name == property }
	if how == "only" {
		all = over(subject(name), slices.Concat(lockcheck.Properties, goals[name]))
		return all[slices.IndexFunc(all, is):][:1]
	}
	all = questions(name)
	if i := slices.IndexFunc(all, is); i >= 0 {
		asked := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, asked)
	}
	return all
}

func main() {
	patience, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err) // internal/exercise gives it
	}
	server, err := zktest.Shared()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer server.Stop()
	say := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr                       // for what the learner's lock prints
	defer func() { _ = say.Encode(answer{}) }() // the last
	how, property := "", ""
	if len(os.Args) > 4 {
		how, property = os.Args[3], os.Args[4]
	}
	if how == "replay" {
		if err := replay(server, os.Args[1], property, patience, os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for _, answered := range ask(server, chosen(os.Args[1], how, property), patience) {
		_ = say.Encode(<-answered)
	}
}

// replay holds the learner's version and the step's own against a property, and writes
// a page of what both have done.
func replay(server *zkserver.Server, name, property string, patience time.Duration, file string) error {
	all := slices.Concat(lockcheck.Properties, goals[name])
	p := all[slices.IndexFunc(all, func(p *lockcheck.Property) bool { return p.Name == property })]
	step := page.Steps[slices.IndexFunc(page.Steps, func(s page.Step) bool { return "0"+s.Key == name })]
	yours := lockcheck.CheckWithin(server, subject(name), p, patience)
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	return page.Evidence(server.Origin, step, "/lock", yours, lockcheck.Check(server, step.Subject, p)).Write(out)
}

// ask asks some questions at a time: they mostly wait.
func ask(server *zkserver.Server, questions []question, patience time.Duration) (answers []chan answer) {
	slots := make(chan struct{}, 8)
	for _, q := range questions {
		answered := make(chan answer, 1)
		answers = append(answers, answered)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			verdict, evidence := q.ask(server, patience)
			if verdict == "?" { // a busy machine can be the reason
				verdict, evidence = q.ask(server, patience)
			}
			answered <- answer{verdict, q.name, evidence, q.hint}
		}()
	}
	return answers
}
