// Package plainnode is step 1, for you to write: one znode is the lock. The client
// that creates it holds the lock, and deletes it to release the lock. A client that
// finds the znode tries again a little later.
//
//	go test ./yours/step1    what your lock can do, what it cannot do yet, and how to get a hint
//
// errors.go is given.
package plainnode

import (
	"context"
	"errors"
	pathpkg "path"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one client. It is safe for use by many goroutines.
type Lock struct {
	conn *zk.Conn
	path string
	mode int32 // of the znode that is the lock
}

// New returns the lock whose znode is path. It sends nothing.
func New(conn *zk.Conn, path string) *Lock {
	return &Lock{conn: conn, path: path, mode: zk.FlagPersistent}
}

// Lock blocks until this client has created the znode. When ctx ends first, it
// returns ctx's error and leaves nothing behind.
func (l *Lock) Lock(ctx context.Context) error {
	if err := check(ctx, l.conn, l.path); err != nil {
		return err
	}
	// TODO 1: each try is a create. Look at its error: which value means that the
	//         lock is yours, and which that another client holds it? Return any other one
	//         by failed, which names the lock.
	// 待办 1：每次尝试都是一次 create。看它返回的错误：哪个值表示锁归你？哪个值表示锁由别的客户端持有？
	//         其他的错误，用 failed 写明是哪把锁，再返回。
	// TODO 2: while another client holds it, pause for 20 ms and try again.
	// 待办 2：锁由别的客户端持有时，等 20 ms，再试。
	// TODO 3: when ctx has ended, stop trying and return the reason.
	// 待办 3：ctx 结束时停止尝试，并说明原因。
	_ = create(l.conn, l.path, l.mode)
	return nil
}

// Unlock releases the lock.
func (l *Lock) Unlock() error {
	if err := check(context.Background(), l.conn, l.path); err != nil {
		return err
	}
	// TODO 4: delete the znode. (The version -1 matches any version.)
	// 待办 4：删除 znode。（version 为 -1 表示任意版本。）
	return nil
}

// create creates the znode at path, and its missing parents.
func create(conn *zk.Conn, path string, mode int32) error {
	_, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return create(conn, path, mode)
}

// NewEphemeral returns the same lock, on a znode that the server deletes when
// its creator's session ends.
//
// TODO 5: this one is still persistent.
// 待办 5：这一种还是持久节点。
func NewEphemeral(conn *zk.Conn, path string) *Lock {
	return New(conn, path)
}
