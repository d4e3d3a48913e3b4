// Package steps makes the locks of the table of locks, each in the one shape that
// lockcheck gives it.
package steps

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/tables"
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
	lockcheck.Over(named("1"), plainnode.New),
	lockcheck.Over(named("2"), sequentialspin.New),
	lockcheck.Over(named("3"), childrenwatch.New),
	lockcheck.Over(named("4"), predecessorwatch.New),
	lockcheck.OverSession(named("5"), OpenReentrant, reentrant.New, reentrant.Token),
	lockcheck.OverSession(named("6"), OpenShared, sharedlock.New, sharedlock.Token),
}

// Beside them stand step 1's watched lock, step 5's second one, and the Go client's own.
var (
	Watched = lockcheck.Over(named("1w"), plainnode.NewWatched)
	Cohort  = lockcheck.OverSession(named("cohort"), OpenReentrant, reentrant.NewCohort, reentrant.Token)
	Client  = lockcheck.Over(named("zk"), lockcheck.ClientLock)
)

// named is what the tests call the lock of a key.
func named(key string) string { return tables.Find(key).Subject }

// Of is the lock of a key of the table.
func Of(key string) lockcheck.Subject {
	for _, s := range Every {
		if s.Name == named(key) {
			return s
		}
	}
	panic("nothing makes the lock " + key)
}

// Every is each lock of the table: the steps' first.
var Every = slices.Concat(All, []lockcheck.Subject{Watched, Cohort, Client})

// OpenReentrant opens a session of step 5.
func OpenReentrant(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, reentrant.WithDialer(dial), reentrant.WithBuffer(zktest.Buffer))
}

// OpenShared opens a session of step 6.
func OpenShared(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial), sharedlock.WithBuffer(zktest.Buffer))
}
