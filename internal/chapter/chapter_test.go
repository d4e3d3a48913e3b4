package chapter

import "testing"

func TestCompare(t *testing.T) {
	const text = "It wakes 10 waiters.\n| 3 | 490 requests |\n"
	for _, c := range []struct {
		format string
		args   []any
		ok     bool
	}{
		{"wakes %d waiters", []any{10}, true},
		{"wakes %d waiters", []any{11}, false},
		{"| %d | %v requests |", []any{3, About(500, 2)}, true},
		{"| %d | %v requests |", []any{3, About(1500, 2)}, false},
		{"| %d | %v requests |", []any{3, About(100, 2)}, false},
		{"%v notifications", []any{About(10, 2)}, false},
	} {
		if err := compare(text, c.format, c.args); (err == nil) != c.ok {
			t.Errorf("compare(%q, %v) = %v, want ok %v", c.format, c.args, err, c.ok)
		}
	}
	if got := About(0.01234, 2).String() + " " + About(1250, 2).String(); got != "0.012 1200" {
		t.Errorf("rounded to %s", got)
	}
}
