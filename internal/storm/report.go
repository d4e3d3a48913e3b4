package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The properties that a storm asks for.
const (
	oneHolder = iota
	nobodyEarly
	noLostIncrement
	risingTokens
	served
	noOrphan
	noWatch
	nothingRuns
	allProperties
)

var propertyNames = [allProperties]string{
	oneHolder:       "one holder at a time",
	nobodyEarly:     "nobody comes in before Unlock",
	noLostIncrement: "no increment lost, none doubled",
	risingTokens:    "each token greater than the last",
	served:          "every waiter is served",
	noOrphan:        "no znode is left behind",
	noWatch:         "no watch is left behind",
	nothingRuns:     "nothing runs on after Close",
}

// A breach is one case in which a property did not hold.
type breach struct {
	property, kind int // kind -1: the client below the locks
	clients        []int
	at             time.Time
	detail         string
}

// stopReserve is the time within which a process that ran again has found out
// that it had been stopped.
const stopReserve = 100 * time.Millisecond

// judge returns the breaches that the record of all holds shows, up to a moment,
// and for each of kinds how often a process that did not run excuses two
// holders. The caller holds mu.
func (s *storm) judge(upTo time.Time) (found []breach, excused []int) {
	excused = make([]int, len(kinds))
	for k := range kinds {
		holds := slices.SortedFunc(slices.Values(s.holds[k]), func(a, b Hold) int { return a.From.Compare(b.From) })
		type earlier struct {
			Hold
			met, excused bool // by a later one: it counts once
		}
		var before []earlier // those that may reach into the next
		for _, h := range holds {
			if h.Until.After(upTo) {
				continue
			}
			before = slices.DeleteFunc(before, func(b earlier) bool { return b.Until.Before(h.From) && !b.inside(h.From) })
			for i := range before {
				b := &before[i]
				if b.Read && h.Read || b.met {
					continue
				}
				until := b.Until
				if h.Until.Before(until) {
					until = h.Until
				}
				both := !until.Before(h.From)
				stopped := both && s.explained(h.From, until, b.Client, h.Client)
				switch who := []int{b.Client, h.Client}; {
				case both && !stopped:
					b.met = true
					found = append(found, breach{oneHolder, k, who, h.From, fmt.Sprintf("clients %d and %d, for %v", b.Client, h.Client, until.Sub(h.From))})
				case b.inside(h.From) && !s.explained(h.From, h.From, h.Client):
					b.met = true
					found = append(found, breach{nobodyEarly, k, who, h.From, fmt.Sprintf("client %d was in %v before client %d called Unlock", h.Client, b.Unlocked.Sub(h.From), b.Client)})
				case stopped && !b.excused:
					b.excused = true
					excused[k]++
				}
			}
			before = append(before, earlier{Hold: h})
			if t := h.RefusedAlive; !t.IsZero() && !s.explained(t, t, h.Client) {
				found = append(found, breach{risingTokens, k, []int{h.Client}, t,
					fmt.Sprintf("the store refused client %d, which held the lock", h.Client)})
			}
		}
	}
	return found, excused
}

// conclude judges the whole storm. The caller holds mu.
func (s *storm) conclude(end time.Time) {
	found, excused := s.judge(end)
	s.breaches = slices.Concat(s.breaches, found, s.sums())
	s.excused = excused
}

// sums compares each number with the increments that were made. It is for the
// end, when nobody is at work.
func (s *storm) sums() (found []breach) {
	for k := range kinds {
		written := int64(0)
		for _, h := range s.holds[k] {
			if h.Wrote {
				written++
			}
		}
		if n := s.numbers[k].value; n != written {
			found = append(found, breach{noLostIncrement, k, []int{-1}, time.Now(),
				fmt.Sprintf("%d increments were made, and the number is %d", written, n)})
		}
	}
	return found
}

// explained tells whether one of the clients' processes did not run at the
// time, and so could not notice.
func (s *storm) explained(from, until time.Time, clients ...int) bool {
	return slices.ContainsFunc(s.stalls, func(stall Stall) bool {
		his := slices.ContainsFunc(clients, func(c int) bool { return c/perProcess == stall.Process })
		return his && !from.Before(stall.From) && !until.After(stall.To.Add(stopReserve))
	})
}

// cause names the fault that a breach goes back to: the last one before it that
// befell one of its clients, else the last one of the servers.
func (s *storm) cause(b breach) string {
	own, servers := "", ""
	for _, f := range s.faults { // in the order in which they were ordered
		if !f.Happened || f.From.After(b.at.Add(time.Second)) || f.To.Before(b.at.Add(-5*time.Second)) {
			continue
		}
		switch {
		case slices.ContainsFunc(b.clients, f.befell) && (f.what() < createReplyLost || f.Kind == b.kind): // that of a connection matters to its lock alone
			own = faultNames[f.what()]
		case f.what() < serverFaults:
			servers = faultNames[f.what()]
		}
	}
	return cmp.Or(own, servers, "no fault near")
}

// violations counts the breaches of steps 5 and 6, which have to be none.
func violations(breaches []breach) (n int) {
	for _, b := range breaches {
		if trusted(b.kind) {
			n++
		}
	}
	return n
}

// happened counts the faults by what they were.
func (s *storm) happened() (each [allFaults]int, all int) {
	s.faultsMu.Lock()
	defer s.faultsMu.Unlock()
	for _, f := range s.faults {
		if f.Happened {
			each[f.what()]++
			all++
		}
	}
	return each, all
}

// progress prints a line now and then. It calls found when there has been a
// violation.
func (s *storm) progress(ctx context.Context, found func()) {
	for rest(ctx, max(s.length/12, 5*time.Second)) {
		_, faults := s.happened()
		s.mu.Lock()
		holds := 0
		for k := range kinds {
			holds += len(s.holds[k])
		}
		// Processes tell of their holds and of their stalls one after the other.
		breaches, _ := s.judge(time.Now().Add(-time.Second))
		breaches = append(breaches, s.breaches...)
		s.mu.Unlock()
		n := violations(breaches)
		fmt.Fprintf(s.out, "  %4.0f s  %4d faults  %7d acquisitions  %d violations in steps 5 and 6, %d breaches in the others\n",
			time.Since(s.began).Seconds(), faults, holds, n, len(breaches)-n)
		if n > 0 {
			found()
		}
	}
}

// print writes the table.
func (s *storm) print(w io.Writer) {
	each, all := s.happened()
	fmt.Fprintf(w, "\n%-48s %7d\n", "faults", all)
	for what, n := range each {
		if n > 0 {
			fmt.Fprintf(w, "  %-46s %7d\n", faultNames[what], n)
		}
	}
	row := func(title string, value func(kind int) any) {
		fmt.Fprintf(w, "%-48s", title)
		for k := range kinds {
			fmt.Fprintf(w, " %9v", value(k))
		}
		fmt.Fprintln(w)
	}
	count := func(k int, holds func(Hold) bool) (n int) {
		for _, h := range s.holds[k] {
			if holds(h) {
				n++
			}
		}
		return n
	}
	fmt.Fprintln(w)
	row("", func(k int) any { return kinds[k].name })
	row("acquisitions", func(k int) any { return len(s.holds[k]) })
	row("  of them to read", func(k int) any { return count(k, func(h Hold) bool { return h.Read }) })
	row("hand-overs from client to client", func(k int) any { return s.numbers[k].handOvers })
	row("gave up by its own wish", func(k int) any { return s.gaveUp[k] })
	row("was told that the lock was lost", func(k int) any { return count(k, func(h Hold) bool { return h.Lost }) })
	row("stale accesses that the store refused", func(k int) any { return s.numbers[k].refused })
	row("two holders, one in a process that did not run", func(k int) any { return s.excused[k] })
	row("longest wait", func(k int) any {
		longest := slices.MaxFunc(append(s.holds[k], Hold{}), func(a, b Hold) int { return cmp.Compare(a.Waited, b.Waited) })
		return longest.Waited.Round(100 * time.Millisecond)
	})
	fmt.Fprintln(w, "breaches")
	for p, name := range propertyNames {
		row("  "+name, func(k int) any {
			n := 0
			for _, b := range s.breaches {
				if b.property == p && b.kind == k {
					n++
				}
			}
			return n
		})
	}
	s.printCauses(w)
}

// printCauses lists the breaches with the fault that each goes back to.
func (s *storm) printCauses(w io.Writer) {
	type line struct{ kind, property, cause string }
	counts, example := map[line]int{}, map[line]string{}
	for _, b := range s.breaches {
		who := "the client"
		if b.kind >= 0 {
			who = kinds[b.kind].name
		}
		l := line{who, propertyNames[b.property], s.cause(b)}
		counts[l]++
		example[l], _, _ = strings.Cut(b.detail, "\n")
	}
	lines := make([]line, 0, len(counts))
	for l := range counts {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.property, b.property), counts[b]-counts[a])
	})
	for i, l := range lines {
		if i == 0 || l.kind != lines[i-1].kind || l.property != lines[i-1].property {
			fmt.Fprintf(w, "\n%s: %s\n", l.kind, l.property)
		}
		fmt.Fprintf(w, "  %5d  %-46s %s\n", counts[l], l.cause, example[l])
	}
}
