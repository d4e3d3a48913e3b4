package reentrant

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("paused holder", pausedHolder) // in cost_test.go
	zktest.Main(m)
}

var locks = func() property.Subject {
	subject := property.OverHolds(
		"step 5",
		func(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
			return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
		},
		New,
	)
	subject.NotHeld = ErrNotHeld
	return subject
}()

func TestProperties(t *testing.T) {
	property.Holds(t, locks, property.EveryStep...)
	property.Holds(
		t, locks,
		// as in step 4
		property.CrashFrees,
		property.FirstCome,
		property.OnlyHolder,
		property.WaiterCrash,
		property.SilentWait,
		property.WakesOne,
		property.ArrivalWakesNobody,
		property.NotBeside,
		// new in this step
		property.LostCreateReply,
		property.LostDeleteReply,
		property.GivesUpCutOff,
		property.LocksAgain,
		property.ToldOfLoss,
		property.Fenced,
		property.LineBreaks,
		property.LaggingServer,
	)
	property.Lacks(t, locks, property.Shared)
}

// What cannot become a lock is refused at once, by an error that is short, however long the path is.
func TestABadArgumentIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	session, mark := a.Session.(*Session), a.Tap.Mark()
	refused := func(session *Session, ctx context.Context, path, says string) {
		t.Helper()
		_, err := New(session, path).Lock(ctx)
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 200, "bytes of the error")
	}
	tooLong := strings.Repeat("/k", 600_000) // of a longer request than 1 MB the server says nothing, and hangs up
	for path, says := range map[string]string{
		"":                               "want an absolute path below the root",
		"/":                              "want an absolute path below the root",
		"locks/orders":                   "want an absolute path below the root",
		"/locks//orders":                 "want an absolute path below the root",
		strings.Repeat("k", longestPath): "want an absolute path below the root",
		tooLong:                          "it has 1200000 bytes, and 500000 are the most",
	} {
		refused(session, z.Ctx, path, says)
	}
	var none context.Context
	refused(session, none, a.Path, "the context is nil")
	refused(nil, z.Ctx, a.Path, "the session is nil or empty")
	ended, cancel := context.WithCancel(z.Ctx)
	cancel()
	refused(session, ended, tooLong[:longestPath], "context canceled")
	session.Close()
	refused(session, z.Ctx, a.Path, "the session is closed: open another one")
	require.Empty(t, a.Asked(mark), "requests")
}

func TestTryLock(t *testing.T) {
	property.Holds(t, locks, property.Tries, property.TryLost)
}
