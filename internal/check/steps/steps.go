// Package steps is the list of the locks that the commands show, each in the one
// shape that lockcheck gives it.
package steps

import (
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// All are the six steps' locks, in order.
var All = []lockcheck.Subject{
	lockcheck.Over("step 1", plainnode.New),
	lockcheck.Over("step 2", sequentialspin.New),
	lockcheck.Over("step 3", childrenwatch.New),
	lockcheck.Over("step 4", predecessorwatch.New),
	lockcheck.OverSession("step 5", OpenReentrant, reentrant.New, reentrant.Token),
	lockcheck.OverSession("step 6", OpenShared, sharedlock.New, sharedlock.Token),
}

// Beside them stand step 1's watched lock, step 5's second one, and the Go client's own.
var (
	Watched = lockcheck.Over("step 1w", plainnode.NewWatched)
	Cohort  = lockcheck.OverSession("step 5, a Cohort", OpenReentrant, reentrant.NewCohort, reentrant.Token)
	Client  = lockcheck.Over("zk.Lock", lockcheck.ClientLock)
)

// OpenReentrant opens a session of step 5.
func OpenReentrant(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, reentrant.WithDialer(dial), reentrant.WithBuffer(zktest.Buffer))
}

// OpenShared opens a session of step 6.
func OpenShared(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial), sharedlock.WithBuffer(zktest.Buffer))
}
