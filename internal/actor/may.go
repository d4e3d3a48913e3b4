package actor

import "slices"

// A Standing is what decides which calls a client can make.
type Standing struct {
	State  string
	Enters bool // it calls Lock once more, within its hold
	Held   bool // it has held the lock at least once
	Reads  bool // its lock has readers
}

// awaits reports whether a call of Lock has not returned.
func (s Standing) awaits() bool { return s.State == Waits || s.Enters }

// refusals lists the reasons against calls. If several apply, the first is reported.
var refusals = []struct {
	calls   []string
	applies func(Standing) bool
	why     string
}{
	{[]string{"read"}, func(s Standing) bool { return !s.Reads }, "has a lock without readers"},
	{[]string{"lock", "read", "again"}, Standing.awaits, "waits already"},
	{[]string{"lock", "read"}, func(s Standing) bool { return IsInside(s.State) }, "holds the lock already"},
	{[]string{"lock", "read", "unlock"}, func(s Standing) bool { return s.State == Releases }, "calls Unlock already"},
	{[]string{"again"}, func(s Standing) bool { return !IsInside(s.State) }, "does not hold the lock"},
	{[]string{"giveup"}, func(s Standing) bool { return !s.awaits() }, "does not wait"},
	{[]string{"unlock"}, func(s Standing) bool { return s.State == Waits }, "waits: it can give up"},
	{[]string{"put"}, func(s Standing) bool { return !s.Held }, "has not held the lock"},
}

// Refuses returns why a call makes no sense now, or "" if it does. A client that does not hold the lock
// may call Unlock, so that a learner can see whether the lock refuses this.
func (s Standing) Refuses(call string) string {
	for _, r := range refusals {
		if slices.Contains(r.calls, call) && r.applies(s) {
			return r.why
		}
	}
	return ""
}
