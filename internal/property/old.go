package property

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// oldHold is a hold whose context is made by Lock, as leased has it until it has the form of
// steps 5 and 6.
type oldHold interface {
	Context() context.Context
	Token() int64
	Unlock(context.Context) error
}

type oldLock[H oldHold] interface {
	Lock(context.Context) (H, error)
	TryLock(context.Context, time.Duration) (H, error)
}

// OverOldHolds is OverHolds of such a lock.
func OverOldHolds[S zktest.Session, H oldHold, L oldLock[H]](
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
			session, _ := s.(S)
			l := newLock(session, path)
			shared, isShared := any(l).(interface {
				RLock(context.Context) (H, error)
				TryRLock(context.Context, time.Duration) (H, error)
			})
			if isShared {
				read = &zktest.Way{Lock: oldLocking(shared.RLock), TryLock: oldLocking(trying(shared.TryRLock))}
			}
			return zktest.Way{Lock: oldLocking(l.Lock), TryLock: oldLocking(trying(l.TryLock))}, read
		},
	}
}

func trying[H oldHold](try func(context.Context, time.Duration) (H, error)) func(context.Context) (H, error) {
	return func(ctx context.Context) (H, error) { return try(ctx, 0) }
}

func oldLocking[H oldHold](lock func(context.Context) (H, error)) func(context.Context) (zktest.Hold, error) {
	return func(ctx context.Context) (zktest.Hold, error) {
		if ctx == nil {
			_, err := lock(ctx)
			return nil, err
		}
		own, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // ctx bounds the wait alone
		stop := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
		defer stop()
		hold, err := lock(own)
		if err != nil {
			return nil, err
		}
		return newHold[H]{hold}, nil
	}
}

type newHold[H oldHold] struct{ hold H }

func (h newHold[H]) Context(context.Context) context.Context { return h.hold.Context() }
func (h newHold[H]) Token() int64                            { return h.hold.Token() }
func (h newHold[H]) Unlock() error                           { return h.hold.Unlock(h.hold.Context()) }
