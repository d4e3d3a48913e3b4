// Package steps has the six steps' locks, each in the one shape that package property
// gives it, and two that stand beside them: step 3's lock without a queue, and the Go client's own.
package steps

import (
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// All are the six steps' locks, in order.
var All = []property.Subject{
	property.Over("step 1", plainnode.New),
	property.Over("step 2", sequentialspin.New),
	property.Over("step 3", childrenwatch.New),
	property.Over("step 4", predecessorwatch.New),
	property.OverHolds("step 5", OpenReentrant, reentrant.New),
	property.OverHolds("step 6", openShared, sharedlock.New),
}

// Step is the lock of a step, from 1.
func Step(number int) property.Subject { return All[number-1] }

// Beside them stand step 3's lock without a queue, and the Go client's own.
var (
	Watched = property.Over("step 3w", childrenwatch.NewWatched)
	Client  = property.Over("zk.Lock", property.ClientLock)
)

// OpenReentrant opens a session of step 5.
func OpenReentrant(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, clientOptions(dial)...)
}

func openShared(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
	return sharedlock.Open(servers, timeout, clientOptions(dial)...)
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
