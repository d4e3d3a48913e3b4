package exercise

import (
	"testing"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// Accepts tests that the check finds nothing wrong with a lock that is right: the step's own,
// or one that differs from it. The orders of two clients are not played.
func Accepts(t *testing.T, e Exercise, locks ...property.Subject) {
	e.judge(t, "accepts", "", locks)
}

// Refuses tests that the check stops at this property of a lock that is wrong.
func Refuses(t *testing.T, e Exercise, at *property.Property, locks ...property.Subject) {
	e.judge(t, "refuses", at.String(), locks)
}

// RefusesAtOnce tests that the check stops before the first property: the lock cannot be
// locked and unlocked.
func RefusesAtOnce(t *testing.T, e Exercise, locks ...property.Subject) {
	e.judge(t, "refuses", canBeUsed, locks)
}

// RefusesSomewhere tests that the check stops, whatever the property. It is for a lock whose
// mistake shows first in one story or in another, as the machine's speed has it.
func RefusesSomewhere(t *testing.T, e Exercise, locks ...property.Subject) {
	e.judge(t, "refuses", anywhere, locks)
}

// anywhere stands for the name of a property, whichever it is.
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
			}
		}
		if wrong.question != "" {
			t.Logf("the check stops at %q: %s", wrong.question, wrong.seen)
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
