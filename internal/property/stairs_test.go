package property

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// Locks that a learner may have on the way: a method is missing, or has another name.
type (
	noLock      struct{}
	noUnlock    struct{}
	noContext   struct{}
	holdRelease struct{}
	barelyHolds struct{ lock *reentrant.Lock }
)

func (noUnlock) Lock(context.Context) error { return nil }

func (noContext) Lock() (bareHold, error) { return bareHold{}, nil }

func (holdRelease) Lock(context.Context) (released, error) { return released{}, nil }

type released struct{}

func (released) Release() error { return nil }

func (b barelyHolds) Lock(ctx context.Context) (bareHold, error) {
	h, err := b.lock.Lock(ctx)
	return bareHold{h}, err
}

// bareHold is a Hold that can only be unlocked.
type bareHold struct{ hold *reentrant.Hold }

func (h bareHold) Unlock() error { return h.hold.Unlock() }

func openStep5(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
}

func TestAMissingLockOrUnlockIsNamed(t *testing.T) {
	for _, lock := range []struct {
		made any
		says string
	}{
		{noLock{}, "your lock has no method Lock"},
		{noUnlock{}, "your lock has no Unlock() error; from 5.6 on, Lock returns (*Hold, error), and the Hold has it"},
		{
			noContext{},
			"your Lock is a func() (property.bareHold, error); from 5.6 on, it is a func(context.Context) (*Hold, error)",
		},
		{holdRelease{}, "your Hold has no Unlock() error; 5.6 says what it is for"},
	} {
		subject := OverSession("a stair", openStep5, func(*reentrant.Session, string) any { return lock.made })
		way, _ := subject.Ways(nil, "/lock")
		_, err := way.Lock(t.Context())
		require.EqualError(t, err, lock.says)
	}
}

func TestAMissingContextOrTokenIsNamed(t *testing.T) {
	server, err := zktest.Shared()
	require.NoError(t, err)
	subject := OverSession("a stair", openStep5, func(s *reentrant.Session, path string) barelyHolds {
		return barelyHolds{reentrant.New(s, path)}
	})
	for p, says := range map[*Property]string{
		ToldOfLoss: "your Hold has no Context(context.Context) context.Context; 5.7 says what it is for",
		Fenced:     "your Hold has no Token() int64; 5.8 says what it is for",
	} {
		check := func() Result { return Check(server, subject, p) }
		r := Beside(check).OrAlone(check)
		require.Equal(t, No, r.Verdict, "%v", r)
		require.Contains(t, r.Evidence, says)
	}
}
