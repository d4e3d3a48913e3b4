package plainnode

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
)

// W4, in its first form: Lock prints an error and returns as if it had the lock.
// Here that error says that another client holds the lock.
type careless struct{ right *Lock }

func (l careless) Lock(context.Context) error {
	_ = create(l.right.conn, l.right.path, l.right.mode) // the published listings print it
	return nil
}

func (l careless) Unlock() error { return l.right.Unlock() }

func newCareless(conn *zk.Conn, path string) careless { return careless{New(conn, path)} }

func TestAnErrorIsTakenForTheLock(t *testing.T) {
	t.Parallel()
	property.Lacks(t, property.Over("a careless lock", newCareless), property.OneHolder)
}
