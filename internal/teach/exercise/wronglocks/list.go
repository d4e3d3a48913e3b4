// Package wronglocks is a list of locks that somebody might write in an exercise, in good
// faith: wrong ones, that the exercise's check has to reject, and right ones that differ
// from the step's own, that it has to accept.
package wronglocks

import (
	"fmt"
	"slices"

	"zklock/internal/property"
)

// A Variant is a step's lock with something changed.
type Variant struct {
	Step   int
	Name   string
	Belief string // what somebody believed in good faith; of a right one, why it is right
	Edits  []Edit

	// Of a wrong one: the property that has to reject it, and words of the evidence.
	Rejects *property.Property
	Words   string
}

func (v Variant) String() string { return fmt.Sprintf("step %d: %s", v.Step, v.Name) }

// An Edit replaces the one place in a file that has the old text.
type Edit struct{ File, Old, New string }

// inLock is a change at one place of lock.go.
func inLock(was, is string) Edit { return Edit{"lock.go", was, is} }

// inHold is a change at one place of hold.go.
func inHold(was, is string) Edit { return Edit{"hold.go", was, is} }

// All are the variants, first those that are right.
var All = slices.Concat(right, step1, step2, step3, step4, step5, step6)
