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

// A Step is a lock that the page shows.
type Step struct {
	Key     string            `json:"key"` // "1", "2", …
	Name    string            `json:"name"`
	Lesson  string            `json:"lesson"`
	Subject lockcheck.Subject `json:"-"`
}

// Steps are all locks that the page can show, in order.
var Steps = []Step{
	{"1", "a plain znode", "Whoever creates the znode holds the lock; the others keep trying.",
		lockcheck.Over("step 1", plainnode.New)},
	{"2", "a queue, and asking", "Numbered znodes stand in line; everyone keeps listing them.",
		lockcheck.Over("step 2", sequentialspin.New)},
	{"3", "watch the directory", "Everyone watches the directory: each change wakes all.",
		lockcheck.Over("step 3", childrenwatch.New)},
	{"4", "watch the one before", "Everyone watches the znode before its own: a release wakes one.",
		lockcheck.Over("step 4", predecessorwatch.New)},
	{"5", "a lock to rely on", "Step 4, safe against lost replies; it tells the holder of a loss.",
		lockcheck.OverSession("step 5", open5, reentrant.New, reentrant.Token)},
	{"6", "a lock to share", "Readers share, a writer is alone; each watches whom it waits for.",
		lockcheck.OverSession("step 6", open6, sharedlock.New, sharedlock.Token)},
}

func open5(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
}

func open6(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
}
