package sequentialspin

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// How to read these tests: see step 1's lock_test.go.

func TestMain(m *testing.M) {
	zktest.Child("holder", holder)
	zktest.Main(m)
}

var lock = property.Over("step 2", New)

func init() { lock.NotHeld = ErrNotHeld }

// It is not parallel, so it runs before most other tests. When a line of
// lock.go is broken, the properties say what that line is for.
func TestProperties(t *testing.T) {
	property.Holds(t, lock, property.Has(2)...)
	property.Holds(t, lock, property.UnlockTooMany)                                // as in step 1
	asleep := []*property.Property{property.WakesOne, property.ArrivalWakesNobody} // here no waiter sleeps
	property.DoesNotArise(t, lock, asleep...)
	property.Lacks(t, lock, property.Lacking(2, asleep...)...)
	property.Lacks(t, lock, property.KeptList) // as in step 4
}

// A process holds the lock, B waits, and the process is killed: its session is not closed, but expires.
func TestAKilledHoldersLockIsFreeAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	b := lock.Join(z, "B")
	process := z.Process("holder", b.Path)
	session, err := strconv.ParseInt(process.Line(), 10, 64)
	require.NoError(t, err, "the process holds the lock, and prints its session")
	waiting := b.Start()
	require.Equal(t, zktest.Polling, waiting.Waits(), "how B waits")
	process.Kill()
	z.AwaitExpiry(&zktest.Client{Name: "the killed process", ID: session})
	waiting.Acquired()
}

// holder is a process that takes the lock at a path, and keeps it.
func holder(servers, args []string) {
	conn, err := zktest.Dial(servers, zktest.MortalTimeout, net.DialTimeout)
	if err == nil {
		err = New(conn, args[0]).Lock(context.Background())
	}
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	zktest.Say("%d", conn.SessionID())
	select {}
}

func TestLockIsOneCreateAndOneListAndUnlockOneDelete(t *testing.T) {
	z := zktest.New(t)
	a := lock.Join(z, "A")
	a.Acquire().Release() // makes the directory
	before := a.Tap.Mark()
	held := a.Acquire()
	owner, _ := z.Owner(a.Path + "/lock-0000000001")
	assert.Equal(t, a.ID, owner, "the session that the holder's znode belongs to: its own")
	held.Release()
	assert.Empty(t, a.Queue(), "the queue after Unlock")
	assert.Equal(t, []string{"create", "getChildren", "delete"}, a.Asked(before), "A's requests")
}

// isFirst ignores a child that is not part of the queue.
func TestIsFirst(t *testing.T) {
	for _, c := range []struct {
		children []string
		mine     string
		want     bool
	}{
		{[]string{"lock-0000000007"}, "lock-0000000007", true},
		{[]string{"lock-0000000008", "lock-0000000007"}, "lock-0000000007", true},
		{[]string{"lock-0000000000", "lock-0000000001"}, "lock-0000000001", false}, // 0 is a number
		{[]string{"config", "lock-", "lock-x", "0000000001", "lock-0000000002"}, "lock-0000000002", true},
	} {
		got, err := isFirst(c.children, c.mine)
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "the first: %s among %v", c.mine, c.children)
	}
}

func TestIsFirstNeedsItsOwnZnode(t *testing.T) {
	_, err := isFirst([]string{"lock-0000000003"}, "lock-0000000002")
	assert.ErrorIs(t, err, zk.ErrNoNode, "our znode is not in the list, so we have no place in the queue")
}

func TestABadArgumentIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := z.Client("A")
	tooLong := strings.Repeat("/k", 600_000) // after a request of more than 1 MB the server closes the connection
	for path, says := range map[string]string{
		"":               "want an absolute path below the root",
		"/":              "want an absolute path below the root",
		"locks/orders":   "want an absolute path below the root",
		"/locks/":        "want an absolute path below the root",
		"/locks//orders": "want an absolute path below the root",
		tooLong:          "it has 1200000 bytes, and the limit is 500000",
	} {
		err := New(a.Conn, path).Lock(z.Ctx)
		require.Error(t, err, "Lock at a bad path")
		require.Less(t, len(err.Error()), 200, "bytes of the error")
		assert.ErrorContains(t, err, says)
	}
	assert.ErrorContains(t, New(nil, "/locks/orders").Lock(z.Ctx), "the connection is nil")
	var none context.Context
	assert.ErrorContains(t, New(a.Conn, "/locks/orders").Lock(none), "the context is nil")
	assert.Empty(t, wiretap.Count(a.Tap.Frames()).Asked, "requests")
}

func TestAClosedConnectionOrNoPermission(t *testing.T) { property.BadInput(t, lock) }
