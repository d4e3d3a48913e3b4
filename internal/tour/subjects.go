package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
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
	{"1", lockcheck.Over("step 1", plainnode.New), "plain",
		"One znode is the lock: every try of a waiter is a write, and a crash locks all out."},
	{"2", lockcheck.Over("step 2", sequentialspin.New), "spin",
		"A queue of znodes that die with their session: fair, crash-proof, and asking all the time."},
	{"3", lockcheck.Over("step 3", childrenwatch.New), "herd",
		"Nobody asks, the server tells. But it tells everyone, each time, and they all look: a herd."},
	{"4", lockcheck.Over("step 4", predecessorwatch.New), "chain",
		"Each watches the one before it: a release wakes one client, however many wait."},
	{"5", safe, "safe",
		"Step 4 made safe: lost replies, re-entry, notice of a loss, and a token for the store."},
	{"6", sharedByReaders, "shared",
		"Readers share it, writers exclude; each still waits for one other only."},
	{"", lockcheck.Over("zk.Lock", lockcheck.ClientLock), "client",
		"The Go client's own lock, for comparison: it waits as step 4 does."},
}

var safe = lockcheck.OverSession("step 5",
	func(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
		return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
	}, reentrant.New, reentrant.Token)

var sharedByReaders = lockcheck.OverSession("step 6",
	func(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
		return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
	}, sharedlock.New, sharedlock.Token)

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
