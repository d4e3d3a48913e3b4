package main

import (
	"go/format"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const small = `package p

import "errors"
import "math/rand/v2"

const rest = 20

var _ = rand.Int

func f(a, b int) error {
	if a < b && a != -1 { // why
		return errors.New("no")
	}
	g(true)
	g(true)
	return nil
}
`

func TestAllSingleChanges(t *testing.T) {
	all, err := changes("p.go", small, map[string]int{})
	require.NoError(t, err)
	made := map[string]string{}
	for _, c := range all {
		_, err := format.Source([]byte(c.made()))
		assert.NoError(t, err, "%s is no Go any more", c)
		made[c.String()] = c.text
	}
	const ifDeleted = "f: `if a < b && a != -1 { …` deleted"
	assert.Equal(t, map[string]string{
		"rest: `20` becomes `19`":                "19",
		"rest: `20` becomes `21`":                "21",
		ifDeleted:                                "",
		"f: `a < b && a != -1` negated":          "!(a < b && a != -1)",
		"f: `a < b` negated":                     "!(a < b)",
		"f: `a < b` becomes `a <= b`":            "a <= b",
		"f: `a != -1` negated":                   "!(a != -1)",
		"f: `-1` becomes `-2`":                   "-2",
		"f: `-1` becomes `0`":                    "0",
		"f: `return errors.New(\"no\")` deleted": "",
		"f: `\"no\"` becomes `\"\"`":             `""`,
		"f: `g(true)` deleted":                   "",
		"f: `true` becomes `false`":              "false",
		"f: `g(true)` deleted (no. 2)":           "",
		"f: `true` becomes `false` (no. 2)":      "false",
		"f: `return nil` deleted":                "",
	}, made)
	for _, c := range all {
		if c.String() == ifDeleted {
			assert.Contains(t, c.made(), `import _ "errors"`, "an import that is used no more is kept")
			assert.Contains(t, c.made(), `import "math/rand/v2"`, "an import that is used")
		}
	}
}

func TestTheCompilerBlamesTheChange(t *testing.T) {
	c := change{path: "step04_predecessor_watch/lock.go"}
	const scratch = "/tmp/zklock-mutants-12/34"
	const refusal = "34/root/step04_predecessor_watch/lock.go:35:1: missing return"
	assert.True(t, blames("/tmp/zklock-mutants-12/"+refusal, scratch, c))
	assert.True(t, blames("../zklock-mutants-12/"+refusal, scratch, c), "as it is called from a folder beside it")
	assert.False(t, blames("step04_predecessor_watch/help_test.go:35:1: undefined: x", scratch, c))
}
