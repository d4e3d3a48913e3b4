// Package multilock is the solution of an exercise after the steps: several locks taken as one, all
// or none.
package multilock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
)

// MultiLock is several locks, seen by one client.
type MultiLock struct{ locks []*predecessorwatch.Lock }

// New returns the locks at paths as one. Lock always takes them in the order of their names. So of
// two clients that want the same locks, one is ahead of the other at every lock, and they cannot
// wait for each other. A path that is named twice is one lock.
func New(conn *zk.Conn, paths ...string) *MultiLock {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	m := &MultiLock{}
	for _, path := range slices.Compact(paths) {
		m.locks = append(m.locks, predecessorwatch.New(conn, path))
	}
	return m
}

// Lock blocks until this client holds all the locks. When it cannot get one,
// because ctx has ended or for any other reason, it holds none.
func (m *MultiLock) Lock(ctx context.Context) error {
	for i, lock := range m.locks {
		if err := lock.Lock(ctx); err != nil {
			return errors.Join(err, unlock(m.locks[:i]))
		}
	}
	return nil
}

// Unlock releases all the locks. An error of one does not keep the others locked.
func (m *MultiLock) Unlock() error { return unlock(m.locks) }

func unlock(locks []*predecessorwatch.Lock) (err error) {
	for _, lock := range slices.Backward(locks) {
		err = errors.Join(err, lock.Unlock())
	}
	return err
}
