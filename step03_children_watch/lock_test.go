package childrenwatch

import (
	"context"
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

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = property.Over("step 3", New)

func init() { lock.NotHeld = ErrNotHeld }

// It is not parallel, so it runs before most other tests. When a line of
// lock.go is broken, the properties say what that line is for.
func TestProperties(t *testing.T) {
	property.Holds(t, lock, property.Has(3)...)
	property.Holds(t, lock, property.UnlockTooMany, property.ReleasedWhileCutOff)
	property.Lacks(t, lock, property.Lacking(3)...)
	property.Lacks(t, lock, property.KeptList) // as in step 4
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
