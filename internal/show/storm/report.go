package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The properties that a storm asks for.
const (
	oneHolder       = "one holder at a time"
	nobodyEarly     = "nobody comes in before Unlock"
	noLostIncrement = "no increment lost, none doubled"
	risingTokens    = "each token greater than the last"
	served          = "every waiter is served"
	noOrphan        = "no znode is left behind"
	noWatch         = "no watch is left behind"
	nothingRuns     = "nothing runs on after Close"
)

var properties = []string{oneHolder, nobodyEarly, noLostIncrement, risingTokens, served, noOrphan, noWatch, nothingRuns}

// A breach is one case in which a property did not hold.
type breach struct {
	property string
	kind     int // -1: the client below the locks
	clients  []int
	at       time.Time
	detail   string
}

// breaches are all that were found.
type breaches []breach

// broken adds one. Whoever calls it for a store holds its mu.
func (all *breaches) broken(property string, kind int, clients []int, at time.Time, detail string, args ...any) {
	*all = append(*all, breach{property, kind, clients, at, fmt.Sprintf(detail, args...)})
}

// stopReserve is the time within which a process that ran again has found out
// that it had been stopped.
const stopReserve = 100 * time.Millisecond

// A tenure is a hold that may reach into a later one.
type tenure struct {
	Turn
	broken  bool // a later hold began beside it: that counts once
	excused bool // the same, while a process did not run
}

// judge returns the breaches that the record shows, up to a moment, and for each
// of kinds how often a process that did not run excuses two holders.
func (r Record) judge(upTo time.Time) (found breaches, excused []int) {
	excused = make([]int, len(kinds))
	earlier := make([][]*tenure, len(kinds))
	byBeginning := slices.SortedFunc(slices.Values(r.Turns), func(a, b Turn) int { return a.From.Compare(b.From) })
	for _, t := range byBeginning {
		if t.At.After(upTo) {
			continue
		}
		if t.Failure != ("") {
			found.broken(served, t.Kind, []int{t.Client}, t.At, "client %d: %s", t.Client, t.Failure)
		}
		if !t.held() {
			continue
		}
		earlier[t.Kind] = slices.DeleteFunc(earlier[t.Kind], func(before *tenure) bool { return before.isOver(t.From) })
		for _, before := range earlier[t.Kind] {
			bothRead := before.Read && t.Read
			if bothRead || before.broken {
				continue
			}
			switch r.meet(before.Turn, t) {
			case together:
				before.broken = true
				found.together(before.Turn, t)
			case early:
				before.broken = true
				found.early(before.Turn, t)
			case stopped:
				if !before.excused {
					before.excused = true
					excused[t.Kind]++
				}
			}
		}
		earlier[t.Kind] = append(earlier[t.Kind], &tenure{Turn: t})
		if at := t.RefusedAlive; !at.IsZero() && !r.explained(at, at, t.Client) {
			found.broken(
				risingTokens,
				t.Kind,
				[]int{t.Client},
				at,
				"the store refused client %d, which held the lock",
				t.Client,
			)
		}
	}
	return found, excused
}

// isOver tells whether a hold that begins at a moment cannot meet this one any more.
func (t *tenure) isOver(at time.Time) bool { return t.Until.Before(at) && !t.inside(at) }

// A meeting is what a later hold is to an earlier one.
type meeting int

const (
	apart    meeting = iota
	together         // for a while both held the lock, for all they could know
	early            // the later one began before the earlier client had called Unlock
	stopped          // together, while a process did not run, which could not know
)

// meet tells what a later hold is to an earlier one.
func (r Record) meet(before, t Turn) meeting {
	end := overlap(before, t)
	both := !end.Before(t.From)
	excused := both && r.explained(t.From, end, before.Client, t.Client)
	switch {
	case both && !excused:
		return together
	case before.inside(t.From) && !r.explained(t.From, t.From, t.Client):
		return early
	case excused:
		return stopped
	}
	return apart
}

// overlap is the end of the time that two holds share. If they share none, it lies before
// the beginning of the later one.
func overlap(before, t Turn) (end time.Time) {
	if t.Until.Before(before.Until) {
		return t.Until
	}
	return before.Until
}

// together adds that two held the lock.
func (all *breaches) together(before, t Turn) {
	who := []int{before.Client, t.Client}
	all.broken(
		oneHolder,
		t.Kind,
		who,
		t.From,
		"clients %d and %d, for %v",
		before.Client,
		t.Client,
		overlap(before, t).Sub(t.From),
	)
}

// early adds that a client came in before the one before it had called Unlock.
func (all *breaches) early(before, t Turn) {
	who := []int{before.Client, t.Client}
	all.broken(nobodyEarly, t.Kind, who, t.From, "client %d was in %v before client %d called Unlock",
		t.Client, before.Unlocked.Sub(t.From), before.Client)
}

// explained tells whether one of the clients' processes did not run at the
// time, and so could not notice.
func (r Record) explained(from, until time.Time, clients ...int) bool {
	return slices.ContainsFunc(r.Stalls, func(stall Stall) bool {
		his := slices.ContainsFunc(clients, func(c int) bool { return c/perProcess == stall.Process })
		isWithin := !from.Before(stall.From) && !until.After(stall.To.Add(stopReserve))
		return his && isWithin
	})
}

// count tells how many are so.
func count[T any](all []T, so func(T) bool) (n int) {
	for _, one := range all {
		if so(one) {
			n++
		}
	}
	return n
}

// conclude judges the whole storm, when nobody is at work. The caller holds mu.
func (s *storm) conclude(end time.Time) {
	found, excused := s.judge(end)
	s.breaches = append(s.breaches, found...)
	s.excused = excused
	for k, number := range s.numbers {
		written := count(s.Turns, func(t Turn) bool { return t.Kind == k && t.Wrote })
		if number.value != int64(written) {
			s.breaches.broken(
				noLostIncrement,
				k,
				nil,
				end,
				"%d increments were made, and the number is %d",
				written,
				number.value,
			)
		}
	}
}

// cause names the fault that a breach goes back to: the last one before it that
// befell one of its clients, else the last one of the servers.
func (s *storm) cause(b breach) string {
	own, servers := "", ""
	for _, f := range s.faults { // in the order in which they were ordered
		isNear := !f.From.After(b.at.Add(time.Second)) && !f.To.Before(b.at.Add(-5*time.Second))
		if !f.happened() || !isNear {
			continue
		}
		befellOtherLock := f.reach() == aLock && f.Kind != b.kind
		switch {
		case slices.ContainsFunc(b.clients, f.befell) && !befellOtherLock:
			own = f.Was
		case f.reach() == theServers:
			servers = f.Was
		}
	}
	return cmp.Or(own, servers, "no fault near")
}

// violations counts the breaches of steps 5 and 6, which have to be none.
func violations(breaches breaches) int {
	return count(breaches, func(b breach) bool { return trusted(b.kind) })
}

// happened tells whether the fault's moment came.
func (f *fault) happened() bool { return f.Was != "" }

// progress prints a line now and then, and tells when there is a violation.
func (s *storm) progress(ctx context.Context, violated func()) {
	for rest(ctx, max(s.length/12, 5*time.Second)) {
		s.mu.Lock()
		faults := count(s.faults, (*fault).happened)
		// Processes tell of their holds and of their stalls one after the other.
		breaches, _ := s.judge(time.Now().Add(-time.Second))
		breaches = append(breaches, s.breaches...)
		holds := count(s.Turns, Turn.held)
		s.mu.Unlock()
		n := violations(breaches)
		fmt.Fprintf(
			s.out,
			"  %4.0f s  %4d faults  %7d acquisitions  %d violations in steps 5 and 6, %d breaches in the others\n",
			time.Since(s.began).Seconds(),
			faults,
			holds,
			n,
			len(breaches)-n,
		)
		if n > 0 {
			violated()
		}
	}
}

// print writes the table.
func (s *storm) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-48s %7d\n", "faults", count(s.faults, (*fault).happened))
	each := map[string]int{}
	for _, f := range s.faults {
		each[f.Was]++
	}
	delete(each, "")
	for _, what := range slices.Sorted(maps.Keys(each)) {
		fmt.Fprintf(w, "  %-46s %7d\n", what, each[what])
	}
	row := func(title string, value func(kind int) any) {
		fmt.Fprintf(w, "%-48s", title)
		for k := range kinds {
			fmt.Fprintf(w, " %9v", value(k))
		}
		fmt.Fprintln(w)
	}
	turns := func(title string, so func(Turn) bool) {
		row(title, func(k int) any { return count(s.Turns, func(t Turn) bool { return t.Kind == k && so(t) }) })
	}
	fmt.Fprintln(w)
	row("", func(k int) any { return kinds[k].Name })
	turns("acquisitions", Turn.held)
	turns("  of them to read", func(t Turn) bool { return t.held() && t.Read })
	row("hand-overs from client to client", func(k int) any { return s.numbers[k].handOvers })
	turns("gave up by its own wish", func(t Turn) bool { return t.GaveUp })
	turns("was told that the lock was lost", func(t Turn) bool { return t.held() && t.Lost })
	row("stale accesses that the store refused", func(k int) any { return s.numbers[k].refused })
	row("two holders, one in a process that did not run", func(k int) any { return s.excused[k] })
	row("longest wait", func(k int) any {
		longest := time.Duration(0)
		for _, t := range s.Turns {
			if t.Kind == k && t.held() {
				longest = max(longest, t.Waited)
			}
		}
		return longest.Round(100 * time.Millisecond)
	})
	fmt.Fprintln(w, "breaches")
	for _, property := range properties {
		row("  "+property, func(k int) any {
			return count(s.breaches, func(b breach) bool { return b.property == property && b.kind == k })
		})
	}
	s.printCauses(w)
}

// printCauses lists the breaches with the fault that each goes back to.
func (s *storm) printCauses(w io.Writer) {
	type line struct {
		title string
		cause string
	}
	counts, example := map[line]int{}, map[line]string{}
	for _, b := range s.breaches {
		who := "the client"
		if b.kind >= 0 {
			who = kinds[b.kind].Name
		}
		l := line{fmt.Sprintf("%s: %s", who, b.property), s.cause(b)}
		counts[l]++
		example[l] = func(text string) string {
			first, _, _ := strings.Cut(text, "\n")
			return first
		}(b.detail)
	}
	lines := slices.SortedFunc(maps.Keys(counts), func(a, b line) int {
		return cmp.Or(cmp.Compare(a.title, b.title), counts[b]-counts[a])
	})
	for i, l := range lines {
		if i == 0 || l.title != lines[i-1].title {
			fmt.Fprintf(w, "\n%s\n", l.title)
		}
		fmt.Fprintf(w, "  %5d  %-46s %s\n", counts[l], l.cause, example[l])
	}
}
