package leased

import (
	"context"
	pathpkg "path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
)

// The two kinds of lock that stories are told of.
var (
	locks   = kind("step 5", New)
	cohorts = kind("step 5, Cohort", NewCohort)
)

func kind[L property.Holder](name string, newLock func(*Session, string) L) property.Subject {
	subject := property.OverSession(
		name,
		func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
			return Open(servers, timeout, WithDialer(dial))
		},
		newLock,
		Token,
	)
	subject.NotHeld, subject.Lost = ErrNotHeld, ErrLost
	return subject
}

// both tells the same story of a Lock and of a Cohort.
func both(t *testing.T, tell func(t *testing.T, z *zktest.Zoo, kind property.Subject)) {
	t.Parallel()
	for _, kind := range []property.Subject{locks, cohorts} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			tell(t, zktest.New(t), kind)
		})
	}
}

// holds fails the test unless the hold hangs on the first znode of the queue, which
// is the only one of the client's present session.
func holds(t *testing.T, z *zktest.Zoo, turn *zktest.Turn) {
	t.Helper()
	turn.Acquired()
	owned, err := z.Sessions()
	require.NoError(t, err)
	mine := owned[turn.SessionID()]
	require.Len(t, mine, 1, "znodes of %s's session", turn.Name)
	before, err := predecessor(turn.Queue(), pathpkg.Base(mine[0]))
	require.NoError(t, err)
	require.Empty(t, before, "%s holds the lock, and this one came before it", turn.Name)
}

// An outage begins when a frame is lost, and lasts until its end: the client
// connects again, but its handshake does not arrive. begun returns when it is cut off.
func outage(z *zktest.Zoo, m *zktest.Member, lost *wiretap.Trap) (begun, end func()) {
	hello := m.Tap.HoldRequest(wiretap.Connect, 1)
	return func() {
		zktest.AwaitChan(z, "the frame to be lost", lost.Sprung())
		zktest.AwaitChan(z, m.Name+" to connect again", hello.Sprung())
	}, hello.Let
}

// inTurn calls Lock, then inside, and Unlock.
func inTurn(m *zktest.Member, inside func()) func(context.Context) (context.Context, error) {
	return func(ctx context.Context) (context.Context, error) {
		held, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		inside()
		return held, m.Unlock(held)
	}
}

// lock is a call to Lock with a context of the test's own.
func lock(m *zktest.Member, ctx context.Context) *zktest.Turn {
	return m.StartIn(ctx)
}

// try is a call to TryLock, likewise.
func try(m *zktest.Member, ctx context.Context, wait time.Duration) *zktest.Turn {
	return m.Call(func(context.Context) (context.Context, error) { return m.TryLock(ctx, wait) })
}

func token(turn *zktest.Turn) int64 {
	n, _ := Token(turn.Held())
	return n
}

// lostEachTime lets a client hold the lock up to three times, until the hold is not lost. On
// a busy machine a renewal can come too late. It returns why the last hold was lost.
func lostEachTime(hold func() (lost error)) (lost error) {
	const tries = 3
	for range tries {
		lost = hold()
		if lost == nil {
			return nil
		}
	}
	return lost
}
