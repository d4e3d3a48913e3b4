package predecessorwatch

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = property.Over("step 4", New)

func init() { lock.NotHeld = ErrNotHeld }

// made from the table of properties: go generate ./...
//
// step 4 has:
//   ✓ one holder at a time
//   ✓ a crashed holder's lock comes free
//   ✓ first come, first served
//   ✓ a stranger cannot release it
//   ✓ giving up leaves nothing behind
//   ✓ unrelated znodes are no obstacle
//   ✓ a waiter's crash lets nobody in
//   ✓ waiting sends no request
//   ✓ a release wakes one
//   ✓ an arrival wakes nobody
//   ✓ no watch is left behind
//   ✓ a long hold and a long wait come to a good end
//   ✓ missing parents are made
//   ✓ many goroutines share one lock
//   ✓ a znode is deleted whatever is in it
//   ✓ a waiter whose session expires says so or queues again
//   ✓ a release is seen, whenever it comes
//   ✓ an error in the wait leaves nothing behind
//   ✓ an unlock that failed can be called again
//   ✓ unlock says that the lock was lost
//   ✓ who holds nothing sends nothing
//   ✓ a lost create takes nobody else's place
//   ✓ a znode of an old session is no place in the queue
//   ✓ an unlock without the lock says so
//   ✓ a waiter whose znode was deleted is not let in beside another
//   ✓ a release is not missed while the line is down
//   ✓ unlock says whether the lock was never held, or was lost
//   ✓ who gives up is told what may be left
//   ✓ an error ends the wait
//   ✓ a waiter whose znode was deleted says so
//   ✓ what cannot work is refused before anything is sent
//   ✓ a closed session is named in the error
//   ✓ a session closed during a call ends the call
//   ✓ a missing permission is named, and can be given later
//   ✓ a parent that can have no children is named
//   ✓ a reply that is none does no harm
//   ✓ a directory full of foreign children is no obstacle
//   ✓ a server that is none is named
//
// step 4 lacks:
//   ✗ a lost reply to create does no harm
//   ✗ a lost reply to delete does no harm
//   ✗ the holder may lock again
//   ✗ the holder is told when the lock is lost
//   ✗ each tenure's token is greater than the last
//   ✗ readers share, writers do not, nobody starves
//   ✗ a broken line does not end the wait
//   ✗ who gives up need not wait for an answer
//
// end of what was made

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) { property.AsTheTableSays(t, "4", lock) }

// Numbers are compared, never names. A child that is not of the queue counts for nothing.
func TestPredecessor(t *testing.T) {
	for _, c := range []struct {
		children []string
		mine     string
		want     string
	}{
		{[]string{"lock-0000000007"}, "lock-0000000007", ""},
		{[]string{"lock-0000000008", "lock-0000000007"}, "lock-0000000007", ""},
		{[]string{"lock-0000000000", "lock-0000000001"}, "lock-0000000001", "lock-0000000000"},
		{[]string{"lock-0000000002", "lock-0000000009", "lock-0000000005"}, "lock-0000000009", "lock-0000000005"},
		{[]string{"lock-9999999999", "lock-10000000000"}, "lock-10000000000", "lock-9999999999"},
		{[]string{"config", "lock-", "lock-x", "0000000001", "lock-0000000002"}, "lock-0000000002", ""},
	} {
		got, err := predecessor(c.children, c.mine)
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "right before %s among %v", c.mine, c.children)
	}
}

func TestPredecessorNeedsItsOwnZnode(t *testing.T) {
	_, err := predecessor([]string{"lock-0000000003"}, "lock-0000000002")
	assert.ErrorIs(t, err, zk.ErrNoNode, "our znode is not in the list, so it is nobody's turn")
}

// A server that reads a request of more than 1 MB hangs up.
func TestAPathLongerThanARequestIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := lock.JoinAs(z, "A", property.Seat{Path: z.Root + "/" + strings.Repeat("k", 1_100_000)})
	err := a.Start().Err()
	require.ErrorContains(t, err, "bytes, and 500000 are the most")
	assert.Less(t, len(err.Error()), 200, "bytes of the error: it does not repeat the path")
	assert.Empty(t, a.Asked(0), "requests")
}
