package page

import (
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

// A Step is a lock that the tour shows.
type Step struct {
	Key     string            `json:"key"`  // "1", "2", …
	Title   string            `json:"-"`    // in one short word
	Name    string            `json:"name"` // in a few words
	Lesson  string            `json:"lesson"`
	Subject lockcheck.Subject `json:"-"`
}

// Steps are all steps, in order.
var Steps = []Step{
	{"1", "plain", "a plain znode", "One znode is the lock. Every try of a waiter is a write; a crash locks all out.",
		lockcheck.Over("step 1", plainnode.New)},
	{"2", "spin", "a queue, and asking", "Numbered znodes stand in line, and die with their session; all keep asking.",
		lockcheck.Over("step 2", sequentialspin.New)},
	{"3", "herd", "watch the directory", "Nobody asks, the server tells: but it tells everyone, and they all look.",
		lockcheck.Over("step 3", childrenwatch.New)},
	{"4", "chain", "watch the one before", "Each watches the one before it: a release wakes one, however many wait.",
		lockcheck.Over("step 4", predecessorwatch.New)},
	{"5", "safe", "a lock to rely on", "Step 4 made safe: lost replies, re-entry, notice of a loss, fencing tokens.",
		lockcheck.OverSession("step 5", open5, reentrant.New, reentrant.Token)},
	{"6", "shared", "a lock to share", "Readers share it, a writer is alone; each still waits for one other only.",
		lockcheck.OverSession("step 6", open6, sharedlock.New, sharedlock.Token)},
}

// ClientLock is the Go client's own lock: it stands beside the steps in the
// scoreboard and the matrix, and has no stories.
var ClientLock = Step{"", "client", "", "The Go client's own lock, for comparison: it waits as step 4 does.",
	lockcheck.Over("zk.Lock", lockcheck.ClientLock)}

func open5(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
}

func open6(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
}
