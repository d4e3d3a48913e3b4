package sharedlock

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
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// open is Open without the client library's log: the tap's record has what happened.
func open(servers []string, timeout time.Duration, dial zk.Dialer) (*Session, error) {
	return Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
}

var locks = func() property.Subject {
	subject := property.OverHolds("step 6", open, New)
	subject.NotHeld = ErrNotHeld
	return subject
}()

func TestProperties(t *testing.T) {
	property.Holds(t, locks, property.Has(6)...)
}

// session.go and errors.go are those of step 5, with one error more.
func TestSessionAndErrorsAreThoseOfStep5(t *testing.T) {
	t.Parallel()
	const upgrade = "\tErrUpgrade = errors.New(\"the hold is a reader's: release it, and then lock to write\")\n"
	for _, file := range []string{"session.go", "errors.go"} {
		step5, err := os.ReadFile(filepath.Join("..", "step05_reentrant", file))
		require.NoError(t, err)
		here, err := os.ReadFile(file)
		require.NoError(t, err)
		want := strings.Replace(string(step5), "package reentrant\n", "package sharedlock\n", 1)
		require.Equal(t, want, strings.Replace(string(here), upgrade, "", 1), file)
	}
}

// Only the lock's own znodes are in the queue. Another lock's directory, or a number with a sign, is not.
func TestOnlyTheQueuesOwnNamesCount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]kind{
		"_c_0123456789abcdef-__READ__0000000007": read,
		"_c_0123456789abcdef-__WRIT__2147483647": write,
	} {
		_, k, ok := number(name)
		require.True(t, ok, name)
		require.Equal(t, want, k, name)
	}
	for _, name := range []string{
		"_c_0123456789abcdef-__READ__000000007",
		"_c_0123456789abcdef-__READ__00000000007",
		"_c_0123456789abcdef-__READ__+000000007",
		"_c_0123456789abcdef-__WRIT__-000000007",
		"_c_0123456789abcdef-lock-0000000007",
		"__WRIT__0000000007",
		"the__WRIT__0000000007",
	} {
		_, _, ok := number(name)
		require.False(t, ok, name)
	}
}

// Left out: a persistent znode with the name of a place is in the queue. To find out that it has no
// owner takes a request more. The package leased makes that request.
func TestADirectoryNamedAsAPlaceStandsInTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	a.Acquire().Release() // makes the lock's directory
	other, err := z.Observer().Create(a.Path+"/_c_stock-__WRIT__0000000000", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	waiting := a.Start()
	waiting.MustWait("a znode without an owner is before it")
	require.NoError(t, z.Observer().Delete(other, -1))
	waiting.Release()
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

// The clients of these stories read and write in turn.
func TestReadersAndWritersInTurn(t *testing.T) {
	for _, lock := range []property.Subject{property.Reading(locks, true), property.Reading(locks, false)} {
		property.Holds(
			t, lock,
			property.CrashFrees,
			property.FirstCome,
			property.WakesOne,
			property.ArrivalWakesNobody,
			property.LostCreateReply,
			property.LostDeleteReply,
			property.LocksAgain,
			property.ToldOfLoss,
			property.Fenced,
			property.WaiterCrash,
		)
	}
}

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	turns := queue(zktest.New(t), locks, "WRRWRWWRR")
	waitsFor := []int{
		0, 0, // the last writer before a reader,
		2, // the last of all before a writer
		3, 4, 5, 6, 6,
	}
	for i, turn := range turns[1:] {
		znode := turns[waitsFor[i]].Znode()
		require.Equal(t, []string{znode}, turn.Tap.Watched(), "%s watches number %d", turn.Name, waitsFor[i])
	}
}

// A reader may get the lock beside readers although a writer waits behind it. W26 waits for that writer.
func TestAReaderDoesNotWaitForAWriterBehindIt(t *testing.T) {
	t.Parallel()
	names := []string{"_c_a-__READ__0000000000", "_c_b-__READ__0000000001", "_c_c-__WRIT__0000000002"}
	before, err := predecessor(names, names[1])
	require.NoError(t, err)
	require.Empty(t, before, "whom the second reader waits for")
	before, err = predecessor(names, names[2])
	require.NoError(t, err)
	require.Equal(t, names[1], before, "whom the writer waits for")
}

// as is the member as a reader or a writer.
func as(k kind, m *zktest.Member) *zktest.Member {
	if k == read {
		return m.Reader
	}
	return m
}

// queue lets clients call Lock one after the other, R to read and W to write.
// It returns when those in front hold the lock, and all others wait silently.
func queue(z *zktest.Zoo, lock property.Subject, letters string) (turns []*zktest.Turn) {
	var waiting []*zktest.Turn
	for i, letter := range letters {
		k := map[rune]kind{'R': read, 'W': write}[letter]
		turn := as(k, lock.Join(z, fmt.Sprintf("client %d (%s)", i+1, k))).Start()
		turn.Queued()
		if i == 0 || !strings.Contains(letters[:i+1], "W") {
			turn.Acquired()
		} else {
			waiting = append(waiting, turn)
		}
		turns = append(turns, turn)
	}
	z.Settle(waiting...)
	return turns
}

// As in step 5.
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

import sharedlock "zklock/step06_shared_lock"

func copies(l *sharedlock.RWLock) { another := *l; _ = &another }
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
