package wronglocks

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/zkserver"
	"zklock/internal/teach/exercise"
)

// A Verdict is what a property has said of a variant.
type Verdict struct{ Property, Verdict, Evidence string }

// Answer is the program that Lay makes. Its arguments are the places of variants in All, in
// the order of laid. For each it prints a line of JSON, with its Verdicts: of a wrong one that
// is rejected as it must be, one Verdict.
func Answer(laid [][]lockcheck.Subject) {
	server, err := zktest.Shared()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 4) // so many variants at a time: they mostly wait
	var printing sync.Mutex
	say := json.NewEncoder(os.Stdout)
	for i, subjects := range laid {
		at, err := strconv.Atoi(os.Args[1+i])
		if err != nil {
			panic(err)
		}
		v := All[at]
		slots <- struct{}{}
		all.Go(func() {
			verdicts := v.ask(server, subjects)
			printing.Lock()
			_ = say.Encode(struct {
				At       int
				Verdicts []Verdict
			}{at, verdicts})
			printing.Unlock()
			<-slots
		})
	}
	all.Wait()
}

// ask asks first what must reject the variant, and if that does not, all the rest.
func (v Variant) ask(server *zkserver.Server, subjects []lockcheck.Subject) (verdicts []Verdict) {
	check := func(p *lockcheck.Property) Verdict {
		subject := exercise.Asked(p, subjects)
		subject.Name = v.Name
		r := lockcheck.Check(server, subject, p, zktest.Patience)
		return Verdict{p.Name, string(r.Verdict), r.Evidence.EN}
	}
	if v.Rejects != nil {
		first := check(v.Rejects)
		if v.rejectedBy(first) {
			return []Verdict{first}
		}
		verdicts = append(verdicts, first)
	}
	asked := lockcheck.Asked(v.Step)
	rest := make([]Verdict, len(asked))
	var all sync.WaitGroup
	slots := make(chan struct{}, 3)
	for i, p := range asked {
		slots <- struct{}{}
		all.Go(func() {
			rest[i] = check(p)
			<-slots
		})
	}
	all.Wait()
	return append(verdicts, rest...)
}

// rejectedBy tells whether a verdict rejects the variant as it must.
func (v Variant) rejectedBy(verdict Verdict) bool {
	return verdict.Verdict == string(lockcheck.No) && strings.Contains(verdict.Evidence, v.Words)
}
