package lockcheck

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// clientLock is the client library's own lock. It knows no context, so a
// caller who gives up can only leave it to itself.
type clientLock struct{ lock *zk.Lock }

func newClientLock(conn *zk.Conn, path string) clientLock {
	return clientLock{zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))}
}

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

func TestTheClientsOwnLock(t *testing.T) {
	lock := Over("zk.Lock", newClientLock)
	Holds(t, lock, OneHolder, CrashFrees, FirstCome, NoStranger, WaiterCrash,
		SilentWait, WakesOne, ArrivalWakesNobody, NoWatchLeft)
	Fails(t, lock, GivingUp, Unrelated, LostCreateReply, LostDeleteReply, LocksAgain, ToldOfLoss, Fenced, Shared)
}
