// Package semaphore is an exercise after the steps, for you to write: a semaphore gives
// permits to a fixed number of clients at a time.
//
// This starter is step 4's lock, which one client holds at a time.
//
//	go test ./yours/semaphore    what it can do, what it cannot do yet, and how to get a hint
package semaphore

import (
	"context"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
)

// Semaphore is one semaphore, seen by one client.
type Semaphore struct {
	conn    *zk.Conn
	path    string
	permits int
}

// New returns the semaphore at path. All clients must give the same number of
// permits.
func New(conn *zk.Conn, path string, permits int) *Semaphore {
	return &Semaphore{conn, path, permits}
}

// Acquire blocks until it gets a permit, and returns the function that
// gives it back. When ctx ends first, it returns ctx's error and leaves nothing
// behind.
//
// TODO 1: create a znode for each permit that is taken, and count them.
// 待办 1：每发出一个许可就创建一个 znode，数一数它们。
// TODO 2: wait while all s.permits are taken. Which client must leave?
// 待办 2：s.permits 个许可全部发出以后，就要等待。等的是哪个客户端离开？
// TODO 3: let one client at a time do this: then no client is overtaken, and a
// release wakes one. You have a lock for that.
// 待办 3：同一时刻只让一个客户端做这件事：谁也不会被插队，一次释放只唤醒一个。你有一把锁做这件事。
func (s *Semaphore) Acquire(ctx context.Context) (release func() error, err error) {
	line := predecessorwatch.New(s.conn, s.path+"/line")
	if err := line.Lock(ctx); err != nil {
		return nil, err
	}
	return line.Unlock, nil
}
