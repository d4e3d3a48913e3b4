// Package multilock is an exercise after the steps, for you to write: several locks taken as one,
// all or none. Clients never wait for each other in a circle, and a client never waits for itself.
//
// This starter takes only the first lock.
//
//	go test ./yours/multilock    what it can do, what it cannot do yet, and how to get a hint
package multilock

import (
	"context"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
)

// MultiLock is several locks, seen by one client.
type MultiLock struct{ locks []*predecessorwatch.Lock }

// New returns the locks at paths as one.
//
// TODO 1: two clients name the same paths in different orders.
// 待办 1：两个客户端给出同样的路径，顺序却不同。
// TODO 2: a client names a path twice.
// 待办 2：一个客户端把同一个路径写了两遍。
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
// TODO 3: take all of them.
// 待办 3：全部加锁。
// TODO 4: or none.
// 待办 4：否则一把也不要。
func (m *MultiLock) Lock(ctx context.Context) error {
	return m.locks[0].Lock(ctx)
}

// Unlock releases all the locks. An error of one does not keep the others locked.
//
// TODO 5: all of them.
// 待办 5：全部释放。
// TODO 6: what if one of them returns an error?
// 待办 6：其中一把返回错误怎么办？
func (m *MultiLock) Unlock() error {
	return m.locks[0].Unlock()
}
