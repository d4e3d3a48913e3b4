package property

import (
	"context"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// ClientLock is the client library's own zk.Lock, made a zktest.Locker so that the steps can be
// compared with it. zk.Lock takes no context, so a caller cannot end its wait: a cancelled Lock
// returns while the znode stays in the queue, and the waiting goroutine ends with the session.
func ClientLock(conn *zk.Conn, path string) zktest.Locker {
	return clientLock{zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))}
}

type clientLock struct{ lock *zk.Lock }

func (l clientLock) Lock(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() { answer <- l.lock.Lock() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l clientLock) Unlock() error { return l.lock.Unlock() }
