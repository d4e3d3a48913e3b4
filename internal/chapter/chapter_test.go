package chapter

import (
	"strings"
	"testing"
)

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

func TestSize(t *testing.T) {
	for asked, want := range map[string]int{"": 50, "1": 1, "100": 100, "150": 150} {
		if got, err := size(asked, 50); got != want || err != nil {
			t.Errorf("WAITERS=%s: %d, %v; want %d", asked, got, err, want)
		}
	}
	for _, asked := range []string{"0", "-3", "151", "ten", "5050", "100,000", "1.5"} {
		if got, err := size(asked, 50); err == nil || !strings.HasPrefix(err.Error(), "WAITERS="+asked+": ") {
			t.Errorf("WAITERS=%s: %d, %v; want an error that names the value", asked, got, err)
		}
	}
}
