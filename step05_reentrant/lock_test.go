package reentrant

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
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
	property.Holds(t, locks, property.Has(5)...)
	property.Lacks(t, locks, property.Lacking(5)...)
}

// Only the lock's own znodes are in the queue. Another lock's directory, or a number with a sign, is not.
func TestOnlyTheQueuesOwnNamesCount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"_c_0123456789abcdef-lock-0000000007":                     7,
		"_c_00000000-0000-0000-0000-000000000000-lock-0000000008": 8,          // Curator's, zk.Lock's
		"_c_0123456789abcdef-lock-2147483647":                     2147483647, // the greatest
	} {
		n, ok := number(name)
		require.True(t, ok, name)
		require.Equal(t, want, n, name)
	}
	for _, name := range []string{
		"_c_0123456789abcdef-lock-000000007",
		"_c_0123456789abcdef-lock-00000000007",
		"_c_0123456789abcdef-lock-+000000007",
		"_c_0123456789abcdef-lock--000000007",
		"_c_0123456789abcdef-lock-0000000007x",
		"_c_0123456789abcdef-lock-",
		"lock-0000000007",
		"lock--000000007",
		"block-0000000007",
		"orders",
	} {
		_, ok := number(name)
		require.False(t, ok, name)
	}
}

// An argument with which Lock can never succeed is refused at once. The error is short, however long the path is.
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
	tooLong := strings.Repeat("/k", 600_000) // after a request of more than 1 MB the server closes the connection
	for path, says := range map[string]string{
		"":                               "want an absolute path below the root",
		"/":                              "want an absolute path below the root",
		"locks/orders":                   "want an absolute path below the root",
		"/locks//orders":                 "want an absolute path below the root",
		strings.Repeat("k", longestPath): "want an absolute path below the root",
		tooLong:                          "it has 1200000 bytes, and the limit is 500000",
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

// Open returns when there is a session, and not before.
func TestOpenWaitsForTheSession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	tap := wiretap.New()
	hello := tap.HoldReply(wiretap.Connect, 1)
	opened := make(chan *Session, 1)
	go func() {
		session, err := Open(z.Servers(), zktest.SessionTimeout, zk.WithDialer(tap.Dial), zk.WithLogger(zktest.NoLog))
		assert.NoError(t, err)
		opened <- session
	}()
	zktest.AwaitChan(z, "the server to give a session", hello.Sprung())
	require.Empty(t, opened, "Open has returned, and the session has not come")
	hello.Let()
	select {
	case session := <-opened:
		require.Equal(t, zk.StateHasSession, session.Conn().State())
		session.Close()
	case <-z.Ctx.Done():
		t.Fatal("timed out waiting for Open to return")
	}
}

// lines gets the client library's log.
type lines chan string

func (l lines) Printf(format string, args ...any) { l <- fmt.Sprintf(format, args...) }

func TestTheLibrarySaysNothingWhileNothingIsWrong(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	said := make(lines, 100)
	session, err := Open(z.Servers(), zktest.SessionTimeout, zk.WithLogger(said))
	require.NoError(t, err)
	defer session.Close()
	hold, err := New(session, z.Root+"/lock").Lock(z.Ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
	require.Zero(t, len(said), "lines that the library has written to the program's log")
}

func TestFaults(t *testing.T) {
	property.Faults(t, locks, property.HoldErrors{Lost: ErrLost, NoAnswer: errNoAnswer})
}

func TestUnlockOfANilHold(t *testing.T) {
	t.Parallel()
	var none *Hold
	require.ErrorIs(t, none.Unlock(), ErrNotHeld)
}

// key marks a value in a context.
type key struct{}

// A long hold keeps no context whose parent has ended.
func TestAHoldForgetsTheContextsThatHaveEnded(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	turn := locks.Join(z, "A").Acquire()
	value := new([1024]byte)
	kept := weak.Make(value)
	parent, cancel := context.WithCancel(context.WithValue(z.Ctx, key{}, value))
	turn.Held().Context(parent)
	cancel()
	z.Await("the parent that has ended to be collected", func() bool {
		runtime.GC()
		return kept.Value() == nil
	})
	turn.Release()
}

// go vet warns of a copied lock: the copy would not find the holds of the original.
func TestGoVetWarnsOfACopiedLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "copies.go")
	require.NoError(t, os.WriteFile(file, []byte(`package copies

import reentrant "zklock/step05_reentrant"

func copies(l *reentrant.Lock) { another := *l; _ = &another }
`), 0o666))
	said, err := exec.CommandContext(t.Context(), "go", "vet", "-copylocks", file).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "assignment copies lock value", "what go vet says")
}

// Open refuses an address that can never work, before it connects. The client library would try it forever.
func TestABadAddressIsRefused(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		"", "zk1", ":2181", "zk1:", "zk1:zk", "zk1:0", "zk1:65536", " zk1:2181", "zk1:2181/app",
	} {
		_, err := Open([]string{"localhost:2181", server}, time.Second)
		require.ErrorContains(t, err, "want host:port and nothing else", "%q", server)
	}
}
