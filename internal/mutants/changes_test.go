package main

import (
	"go/format"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const small = `package p

import "errors"

const rest = 20

func f(a, b int) error {
	if a < b && a != -1 { // why
		return errors.New("no")
	}
	return nil
}
`

func TestAllSingleChanges(t *testing.T) {
	all, err := changes([]byte(small))
	require.NoError(t, err)
	made := map[string]string{}
	for _, c := range all {
		_, err := format.Source(c.apply([]byte(small)))
		assert.NoError(t, err, "%s is no Go any more", c)
		made[c.String()] = c.text
	}
	assert.Equal(t, map[string]string{
		"rest: `20` becomes `19`":                "19",
		"rest: `20` becomes `21`":                "21",
		"f: `if a < b && a != -1 { …` deleted":   "",
		"f: `a < b && a != -1` negated":          "!(a < b && a != -1)",
		"f: `a < b` negated":                     "!(a < b)",
		"f: `a < b` becomes `a <= b`":            "a <= b",
		"f: `a != -1` negated":                   "!(a != -1)",
		"f: `-1` becomes `-2`":                   "-2",
		"f: `-1` becomes `0`":                    "0",
		"f: `return errors.New(\"no\")` deleted": "",
		"f: `\"no\"` becomes `\"\"`":             `""`,
		"f: `return nil` deleted":                "",
	}, made)
}

func TestTwoChangesWithTheSameWordsAreNumbered(t *testing.T) {
	all, err := changes([]byte("package p\n\nfunc f() bool {\n\tg()\n\tg()\n\treturn h()\n}\n"))
	require.NoError(t, err)
	assert.Equal(t, "f: `g()` deleted (no. 2)", all[1].String())
}

func TestAnImportThatIsUsedNoMoreIsKept(t *testing.T) {
	all, err := changes([]byte(small))
	require.NoError(t, err)
	for _, c := range all {
		if c.what == "`if a < b && a != -1 { …` deleted" {
			assert.Contains(t, string(c.apply([]byte(small))), `import _ "errors"`)
		}
	}
}
