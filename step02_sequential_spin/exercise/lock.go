// Package sequentialspin is step 2, for you to write: each client puts an ephemeral
// sequential znode into the lock's directory, and the client with the lowest number
// holds the lock. The others poll: they list the directory until they have the
// lowest number.
//
// This starter is step 1 with an ephemeral znode. It is right, but it has no queue,
// and any client can release the lock.
//
//	go test ./yours/step2    what your lock can do, what it cannot do yet, and how to get a hint
//
// errors.go is given.
package sequentialspin

import (
	"context"
	"errors"
	pathpkg "path"
	"time"

	"github.com/go-zookeeper/zk"
)

// pollInterval is how long a waiter pauses between two lists.
const pollInterval = 20 * time.Millisecond

// ErrNotHeld is what Unlock returns when this client does not hold the lock.
var ErrNotHeld = errors.New("the lock is not held by this client: each Unlock needs a Lock before it")

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
type Lock struct {
	conn *zk.Conn
	dir  string
	// TODO 4 needs something here.
	// 待办 4 在这里需要一个字段。
}

// New returns the lock whose directory is path. It sends nothing. The
// directory's children named lock-<number> are the queue; others are ignored.
func New(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, dir: path}
}

// Lock blocks until this client's znode is the first in the queue. When ctx
// ends first, it deletes its znode and returns ctx's error. If the delete fails, the
// error says so. Any other error of ZooKeeper also ends the wait.
func (l *Lock) Lock(ctx context.Context) error {
	if err := check(ctx, l.conn, l.dir); err != nil {
		return err
	}
	// TODO 1: get a number, once: create l.dir+"/lock-" with zk.FlagEphemeralSequential.
	// 待办 1：取一个序号，只取一次：用 zk.FlagEphemeralSequential 创建 l.dir+"/lock-"。
	// TODO 2: then poll with a list of l.dir: is there a smaller number than mine?
	// 待办 2：然后轮询，列出 l.dir：有比自己小的序号吗？
	// TODO 3: delete the znode when ctx ends, or when a request fails.
	// 待办 3：ctx 结束或请求失败时，删除这个 znode。
	for {
		if err := ctx.Err(); err != nil {
			return failed("lock", l.dir, err)
		}
		_, err := create(l.conn, l.dir, zk.FlagEphemeral)
		if err == nil {
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			return failed("lock", l.dir, err)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}

// Unlock deletes the znode that holds the lock. It returns ErrNotHeld when this
// client does not hold the lock.
func (l *Lock) Unlock() error {
	if err := check(context.Background(), l.conn, l.dir); err != nil {
		return err
	}
	// TODO 4: whose znode is this? Delete your own.
	// 待办 4：这是谁的 znode？只能删除自己的。
	return failed("unlock", l.dir, l.conn.Delete(l.dir, -1))
}

// create creates a znode and returns its path, with the number that the server
// added. It creates parents only when the server replies that they are missing:
// creating them each time would cost one more write each time.
func create(conn *zk.Conn, path string, mode int32) (string, error) {
	made, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return made, err
	}
	_, err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return create(conn, path, mode)
}
