// Package steps has the lists of what the commands offer: the locks, and the published
// mistakes. And it makes the locks, each in the one shape that property gives it.
package steps

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/zktest"
	"zklock/leased"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// All are the six steps' locks, in order.
var All = []property.Subject{
	property.Over(named("1"), plainnode.New),
	property.Over(named("2"), sequentialspin.New),
	property.Over(named("3"), childrenwatch.New),
	property.Over(named("4"), predecessorwatch.New),
	property.OverHolds(named("5"), OpenReentrant, reentrant.New),
	property.OverHolds(named("6"), openShared, sharedlock.New),
}

// Beside them stand step 3's lock without a queue, the locks for work, and the Go client's own.
var (
	Watched = property.Over(named("3w"), childrenwatch.NewWatched)
	Mutex   = property.OverHolds(named("mutex"), openLeased, leased.NewMutex)
	RWMutex = property.OverHolds(named("rwmutex"), openLeased, leased.NewRWMutex)
	Cohort  = property.OverHolds(named("cohort"), openLeased, leased.NewCohort)
	Client  = property.Over(named("zk"), property.ClientLock)
)

// named is what the tests call the lock of a key.
func named(key string) string { return Find(key).Subject }

// Of is the lock of a key of the table.
func Of(key string) property.Subject {
	for _, s := range Every {
		if s.Name == named(key) {
			return s
		}
	}
	panic("nothing makes the lock " + key)
}

// Every is each lock of the table: the steps' first.
var Every = slices.Concat(All, []property.Subject{Watched, Mutex, RWMutex, Cohort, Client})

// OpenReentrant opens a session of step 5.
func OpenReentrant(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, clientOptions(dial)...)
}

func openShared(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, clientOptions(dial)...)
}

func openLeased(servers []string, timeout time.Duration, dial zk.Dialer) (*leased.Session, error) {
	return leased.Open(context.Background(), servers, timeout, leased.WithDialer(dial), leased.WithBuffer(zktest.Buffer))
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
