// Package exercise is a graduation exercise, for you to write: several locks
// taken as one, all or none, that cannot wait for each other or for themselves.
//
// What stands here takes the first lock only.
//
//	make exercise STEP=multilock
//	make hint STEP=multilock
package exercise

import (
	"context"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
)

// MultiLock is several locks, seen by one client.
type MultiLock struct{ locks []*predecessorwatch.Lock }

// New returns the locks at paths as one.
//
// TODO 3: two clients name the same paths in different orders.
// TODO 4: a client names a path twice.
func New(conn *zk.Conn, paths ...string) *MultiLock {
	m := &MultiLock{}
	for _, path := range paths {
		m.locks = append(m.locks, predecessorwatch.New(conn, path))
	}
	return m
}

// Lock blocks until this client holds all the locks. When it cannot get one,
// because ctx has ended or for any other reason, it holds none.
//
// TODO 1: take all of them.
// TODO 2: or none.
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.locks[0].Lock(ctx)
}

// Unlock releases all the locks. An error with one does not keep the others.
//
// TODO 1: all of them.
// TODO 5: and if one of them answers with an error?
func (m *MultiLock) Unlock() error {
	return m.locks[0].Unlock()
}
