// Package steps has the locks of the six steps, each as a property.Subject, and two other ones:
// step 3's lock without a queue, and the client library's own lock.
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

// All lists the locks of the six steps, in order.
var All = []property.Subject{
	property.Over("step 1", plainnode.New),
	property.Over("step 2", sequentialspin.New),
	property.Over("step 3", childrenwatch.New),
	property.Over("step 4", predecessorwatch.New),
	property.OverHolds("step 5", OpenReentrant, reentrant.New),
	property.OverHolds("step 6", openShared, sharedlock.New),
}

// Step returns the lock of a step, counted from 1.
func Step(number int) property.Subject { return All[number-1] }

// Watched is step 3's lock without a queue. Client is the client library's own lock.
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

// clientOptions returns options for tests with many clients: each client has small buffers, and
// writes no log.
func clientOptions(dial zk.Dialer) []func(*zk.Conn) {
	return []func(*zk.Conn){
		zk.WithDialer(dial),
		zk.WithLogger(zktest.NoLog),
		zk.WithMaxBufferSize(zktest.Buffer),
		zk.WithMaxConnBufferSize(zktest.Buffer),
	}
}
