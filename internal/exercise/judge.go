package exercise

import (
	"fmt"
	"slices"
	"testing"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// Accepts tests that the check finds nothing wrong with a right lock: the step's own, or one that
// differs from it. Accepts plays no interleavings of two clients.
func Accepts(t *testing.T, e Exercise, locks ...property.Subject) {
	e.judge(t, "accepts", "", locks)
}

// Refuses tests that the check of a wrong lock stops at this property.
func Refuses(t *testing.T, e Exercise, at *property.Property, locks ...property.Subject) {
	e.judge(t, "refuses", at.String(), locks)
}

// anywhere is used in place of a property's name. It means any property.
const anywhere = "any property"

func (e Exercise) judge(t *testing.T, verb, want string, locks []property.Subject) {
	locks[0] = locks[0].Elsewhere(t.Name())
	t.Run(verb+" "+locks[0].Name, func(t *testing.T) {
		t.Parallel()
		server, err := zktest.Shared()
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			zktest.LeavesGoroutines()
		}
		var wrong answer // the first answer that says no
		for a := range e.answers(t.Context(), server, locks) {
			if !a.holds() {
				wrong = a
				break
			}
		}
		if wrong.question != "" {
			t.Logf("the check stops at %q: %s\nask yourself: %s (hints: %q)", wrong.question, wrong.seen, wrong.ask.EN, wrong.hints)
		}
		if wrong.isStuck() {
			t.Errorf("the check has no answer: %s", wrong.seen)
		}
		stoppedAnywhere := want == anywhere && wrong.question != ""
		if wrong.question != want && !stoppedAnywhere {
			t.Errorf("the check should have stopped at %q, and has stopped at %q", want, wrong.question)
		}
	})
}

// A Wrong is a lock with one mistake, which the property By finds.
type Wrong struct {
	By   *property.Property
	Lock property.Subject

	// Besides are properties that may also refuse the lock. RefusesByOne does not ask for them.
	Besides []*property.Property
}

// Wrong returns a lock with one mistake, which the property with this name finds.
func (e Exercise) Wrong(by, name string, lock property.Subject) Wrong {
	at := slices.IndexFunc(e.Properties, func(p *property.Property) bool { return p.String() == by })
	if at < 0 {
		panic(fmt.Sprintf("%s asks for no property %q", e, by))
	}
	lock.Name = name
	return Wrong{By: e.Properties[at], Lock: lock}
}

// RefusesByOne tests that the exercise needs each property that it asks for and that no exercise
// before it asks for. For each of these properties there is a wrong lock that lacks it, and that
// has all others of the exercise.
func RefusesByOne(t *testing.T, e Exercise, all ...Wrong) {
	var by []*property.Property
	for _, wrong := range all {
		by = append(by, wrong.By)
		e.refusesByOne(t, wrong)
	}
	for _, p := range e.brings() {
		if !slices.Contains(by, p) {
			t.Errorf("no wrong lock is refused by %q alone", p)
		}
	}
}

// brings lists the properties that no exercise before this one asks for.
func (e Exercise) brings() []*property.Property {
	brought := slices.Clone(e.Properties)
	for _, earlier := range All {
		if earlier.Name == e.Name {
			break
		}
		brought = without(brought, earlier.Properties)
	}
	return brought
}

func without(all, some []*property.Property) []*property.Property {
	return slices.DeleteFunc(slices.Clone(all), func(p *property.Property) bool { return slices.Contains(some, p) })
}

func (e Exercise) refusesByOne(t *testing.T, wrong Wrong) {
	lock := wrong.Lock.Elsewhere(t.Name())
	t.Run("refuses by one "+lock.Name, func(t *testing.T) {
		t.Parallel()
		server, err := zktest.Shared()
		if err != nil {
			t.Fatal(err)
		}
		zktest.LeavesGoroutines()
		asked := e
		asked.Properties = without(e.Properties, wrong.Besides)
		var refusing []string
		for a := range asked.answers(t.Context(), server, []property.Subject{lock}) {
			if a.holds() {
				continue
			}
			t.Logf("%s %s: %s", a.verdict, a.question, a.seen)
			refusing = append(refusing, string(a.verdict)+" "+a.question)
		}
		want := []string{string(property.No) + " " + wrong.By.String()}
		if !slices.Equal(refusing, want) {
			t.Errorf("want: %q alone; got: %q", want, refusing)
		}
	})
}
