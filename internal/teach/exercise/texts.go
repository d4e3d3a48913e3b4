package exercise

import (
	"fmt"
	"go/format"
)

// The texts of what Lay writes, and no step has.

// goWork and goMod are the workspace, and the module of the folder yours.
const (
	goWork = "// Laid by make exercise, for the folder yours. It can be deleted.\n%s\n\nuse (\n\t.\n\t./yours\n)\n"
	goMod  = "module zklock/yours\n\n%s\n"
)

// A test calls Check with what it can make the learner's locks with.
const aTest = `package %[1]s

import (
	"testing"

	"zklock/internal/teach/exercise"
%[2]s)

func TestMain(m *testing.M) { exercise.Main(m) }

// TestLock asks what your lock can do. In the root of the repository:
//
//	go test ./yours/%[1]s       everything
//	go test ./yours/%[1]s -v    what holds, too, with the evidence
//
// And one property, by its name or a part of it:
//
//	go test ./yours/%[1]s -run TestLock/%[3]s
func TestLock(t *testing.T) {
	exercise.Check(t, %[4]q, %[5]s)
}
`

// subjects are how the tests make the learner's locks.
var subjects = map[string]string{
	"1":         "exercise.Plain(New), exercise.Plain(NewEphemeral)",
	"2":         "exercise.Queue(New, ErrNotHeld)",
	"3":         "exercise.Queue(New, ErrNotHeld)",
	"4":         "exercise.Queue(New, ErrNotHeld)",
	"5":         "exercise.Held(Open, WithDialer, New, Token, ErrNotHeld, ErrLost)",
	"6":         "exercise.Held(Open, WithDialer, New, Token, ErrNotHeld, ErrLost)",
	"semaphore": "property.OverSemaphore(New)",
	"multilock": "property.OverMultiLock(New, predecessorwatch.New)",
	"election":  "property.OverElection(steps.OpenReentrant, New)",
}

// Subjects is Go for how the test makes the learner's locks.
func (e Exercise) Subjects() string { return subjects[e.Name] }

// imports are what the tests of the exercises after the steps need besides.
var imports = map[string]string{
	"semaphore": `"zklock/internal/property"`,
	"multilock": "\"zklock/internal/property\"\npredecessorwatch \"zklock/step04_predecessor_watch\"",
	"election":  "\"zklock/internal/property\"\n\"zklock/internal/check/steps\"",
}

// test is the learner's test file.
func (e Exercise) test() ([]byte, error) {
	example := underscored(e.Goals[0].Name.EN)
	return format.Source(fmt.Appendf(nil, aTest, e.pkg(), imports[e.Name], example, e.Name, e.Subjects()))
}
