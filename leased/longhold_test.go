package leased

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
)

// This lock is right for a second or two. Only the property of the long hold refuses it.

// losesEarly is a lock whose holds never extend their lease.
type losesEarly struct {
	lock    *Mutex
	session *Session
}

// earlyHold ends before its lease ends.
type earlyHold struct {
	*Hold
	early time.Time
}

func (h *earlyHold) Context(parent context.Context) context.Context {
	held, end := context.WithCancelCause(h.Hold.Context(parent))
	time.AfterFunc(time.Until(h.early), func() { end(ErrLost) }) // the mistake
	return held
}

func (l losesEarly) Lock(ctx context.Context) (*earlyHold, error) {
	hold, err := l.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return &earlyHold{hold, time.Now().Add(l.session.Timeout() * 9 / 10)}, nil
}

func (l losesEarly) TryLock(ctx context.Context) (*earlyHold, error) { return l.Lock(ctx) }

func TestAHoldThatIsLostOnAHealthyLine(t *testing.T) {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
		return Open(t.Context(), servers, timeout, WithDialer(dial))
	}
	wrong := property.OverHolds("loses early", open, func(s *Session, path string) losesEarly {
		return losesEarly{NewMutex(s, path), s}
	})
	property.Holds(t, wrong, property.OneHolder, property.LocksAgain, property.ToldOfLoss, property.Fenced)
	property.Lacks(t, wrong, property.LongHold)
}
