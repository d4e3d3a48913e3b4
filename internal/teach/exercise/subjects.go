package exercise

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

// Plain is a lock of step 1, as Check asks it.
func Plain[L zktest.Locker](newLock func(*zk.Conn, string) L) property.Subject {
	subject := property.Over("", newLock)
	subject.Znode, subject.NotHeld = true, zk.ErrNoNode
	return subject
}

// Queue is a lock of steps 2 to 4.
func Queue[L zktest.Locker](newLock func(*zk.Conn, string) L, notHeld error) property.Subject {
	subject := property.Over("", newLock)
	subject.NotHeld = notHeld
	return subject
}

// Held is a lock of steps 5 and 6.
func Held[S zktest.Session, O any, L property.Holder](
	open func(servers []string, timeout time.Duration, options ...O) (S, error), withDialer func(zk.Dialer) O,
	newLock func(S, string) L, token func(context.Context) (int64, bool), notHeld, lost error,
) property.Subject {
	dialing := func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error) {
		return open(servers, timeout, withDialer(dial))
	}
	subject := property.OverSession("", dialing, newLock, token)
	subject.NotHeld, subject.Lost = notHeld, lost
	return subject
}
