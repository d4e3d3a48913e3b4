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
	"zklock/leased"
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
	lockcheck.OverHolds(named("5"), openReentrant, reentrant.New),
	lockcheck.OverHolds(named("6"), openShared, sharedlock.New),
}

// Beside them stand step 1's watched lock, the lock for the goroutines of a process, and the Go client's own.
var (
	Watched = lockcheck.Over(named("1w"), plainnode.NewWatched)
	Cohort  = lockcheck.OverSession(named("cohort"), openLeased, leased.NewCohort, leased.Token)
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

func openReentrant(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, clientOptions(dial)...)
}

func openShared(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, clientOptions(dial)...)
}

func openLeased(servers []string, timeout time.Duration, dial zk.Dialer) (*leased.Session, error) {
	return leased.Open(servers, timeout, leased.WithDialer(dial), leased.WithBuffer(zktest.Buffer))
}

// clientOptions are for a crowd of clients: each keeps little, and says nothing in a log.
func clientOptions(dial zk.Dialer) []func(*zk.Conn) {
	return []func(*zk.Conn){
		zk.WithDialer(dial),
		zk.WithLogger(zktest.NoLog),
		zk.WithMaxBufferSize(zktest.Buffer),
		zk.WithMaxConnBufferSize(zktest.Buffer),
	}
}
