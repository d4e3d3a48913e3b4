package chapter

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCompare(t *testing.T) {
	const text = "» it wakes 10 waiters\n| 3 | 490 requests |\n| 4 | 19,000 requests |\n"
	for _, c := range []struct {
		format string
		args   []any
		says   string
	}{
		{"it wakes %d waiters", []any{10}, ""},
		{"it wakes %d waiters", []any{1}, "no such line"},
		{"it wakes %d waiter", []any{10}, "no such line"},
		{"| %d | %v requests |", []any{3, About(500, 2)}, ""},
		{"| %d | %v requests |", []any{3, About(1500, 2)}, "it says 490, measured 1500"},
		{"| %d | %v requests |", []any{3, About(100, 2)}, "it says 490, measured 100"},
		{"| %d | %v requests |", []any{4, About(21000, 1.5)}, ""},
		{"%v notifications", []any{About(10, 2)}, "no such line"},
	} {
		said := ""
		if err := compare(text, c.format, c.args); err != nil {
			said = err.Error()
		}
		assert.Equal(t, c.says, said, "compare(%q, %v)", c.format, c.args)
	}
	assert.Equal(t, "0.012", About(0.01234, 2).String())
	assert.Equal(t, "1200", About(1250, 2).String())
}

func TestSize(t *testing.T) {
	for asked, want := range map[string]int{"": 50, "1": 1, "100": 100, "150": 150} {
		got, err := size(asked, 50)
		assert.NoError(t, err, "WAITERS=%s", asked)
		assert.Equal(t, want, got, "WAITERS=%s", asked)
	}
	for _, asked := range []string{"0", "-3", "151", "ten", "5050", "100,000", "1.5"} {
		_, err := size(asked, 50)
		assert.ErrorContains(t, err, "WAITERS="+asked+": ")
	}
}
