package property

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
)

// Hold is what Lock returns in steps 5 and 6, and in leased.
type Hold interface {
	comparable
	Context() context.Context
	Token() int64
	Unlock(context.Context) error
}

// OverHolds makes a Subject of a lock that is made from a session of its own kind and a
// path, and whose Lock returns a hold.
func OverHolds[S zktest.Session, H Hold, L interface {
	Lock(context.Context) (H, error)
	TryLock(context.Context, time.Duration) (H, error)
}](
	name string,
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newLock func(S, string) L,
) Subject {
	return Subject{
		Name: name,
		Open: func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
			s, err := open(servers, timeout, dial)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Ways: func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
			session, _ := s.(S) // S's own nil, if s is nil
			l := newLock(session, path)
			shared, isShared := any(l).(interface {
				RLock(context.Context) (H, error)
				TryRLock(context.Context, time.Duration) (H, error)
			})
			if isShared {
				reader := wayOf(l, shared.RLock, shared.TryRLock)
				read = &reader
			}
			return wayOf(l, l.Lock, l.TryLock), read
		},
	}
}

// heldThrough is the key under which a context of the stories carries the hold of a lock.
type heldThrough struct{ lock any }

// wayOf gives a lock with holds the shape of the stories, where a context carries the hold.
func wayOf[H Hold](
	l any,
	lock func(context.Context) (H, error),
	try func(context.Context, time.Duration) (H, error),
) zktest.Way {
	key := heldThrough{l}
	carry := func(h H, err error) (context.Context, error) {
		if err != nil {
			return nil, err
		}
		return context.WithValue(h.Context(), key, h), nil
	}
	// holdOf is the lock's nil hold, if held carries none.
	holdOf := func(held context.Context) (h H) {
		if held != nil {
			h, _ = held.Value(key).(H)
		}
		return h
	}
	return zktest.Way{
		Lock: func(ctx context.Context) (context.Context, error) { return carry(lock(ctx)) },
		TryLock: func(ctx context.Context, wait time.Duration) (context.Context, error) {
			return carry(try(ctx, wait))
		},
		Unlock: func(held context.Context) error {
			h := holdOf(held)
			if held == nil {
				return h.Unlock(nil)
			}
			return h.Unlock(context.WithoutCancel(held))
		},
		Token: func(held context.Context) (int64, bool) {
			h := holdOf(held)
			var none H
			if h == none {
				return 0, false
			}
			return h.Token(), true
		},
	}
}
