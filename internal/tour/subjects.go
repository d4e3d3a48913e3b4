package main

import (
	"fmt"
	"strings"

	"zklock/internal/lockcheck"
	"zklock/internal/page"
)

// A column is a subject as the tour shows it.
type column struct {
	step    string // "1", "2", …: what STEPS names; "" is always there
	subject lockcheck.Subject
	title   string // in one short word
	lesson  string // in one line
}

// columns holds the steps in order, and last the client's own lock.
var columns = []column{
	{"1", page.Steps[0].Subject, "plain",
		"One znode is the lock: every try of a waiter is a write, and a crash locks all out."},
	{"2", page.Steps[1].Subject, "spin",
		"A queue of znodes that die with their session: fair, crash-proof, and asking all the time."},
	{"3", page.Steps[2].Subject, "herd",
		"Nobody asks, the server tells. But it tells everyone, each time, and they all look: a herd."},
	{"4", page.Steps[3].Subject, "chain",
		"Each watches the one before it: a release wakes one client, however many wait."},
	{"5", page.Steps[4].Subject, "safe",
		"Step 4 made safe: lost replies, re-entry, notice of a loss, and a token for the store."},
	{"6", page.Steps[5].Subject, "shared",
		"Readers share it, writers exclude; each still waits for one other only."},
	{"", lockcheck.Over("zk.Lock", lockcheck.ClientLock), "client",
		"The Go client's own lock, for comparison: it waits as step 4 does."},
}

// chosen returns the columns of the steps in a list such as "3,4", and the
// client's own lock. An empty list names all.
func chosen(steps string) ([]column, error) {
	if steps == "" {
		return columns, nil
	}
	wanted := map[string]bool{"": true}
	for step := range strings.SplitSeq(steps, ",") {
		wanted[strings.TrimLeft(strings.TrimSpace(step), "0")] = true
	}
	var found []column
	for _, c := range columns {
		if wanted[c.step] {
			found = append(found, c)
			delete(wanted, c.step)
		}
	}
	for step := range wanted {
		return nil, fmt.Errorf("STEPS=%s: there is no step %q", steps, step)
	}
	return found, nil
}

func subjects(columns []column) (all []lockcheck.Subject) {
	for _, c := range columns {
		all = append(all, c.subject)
	}
	return all
}
