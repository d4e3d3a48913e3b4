package plainnode

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", ephemeral.Hold)
	zktest.Main(m)
}

// The three kinds of this step's lock.
var (
	plain     = property.Over("New", New)
	ephemeral = property.Over("NewEphemeral", NewEphemeral)
	watched   = property.Over("NewWatched", NewWatched)
)

func init() {
	for _, kind := range []*property.Subject{&plain, &ephemeral, &watched} {
		kind.Znode, kind.NotHeld = true, zk.ErrNoNode
	}
}

// made from the table of properties: go generate ./...
//
// step 1 has:
//   ✓ one holder at a time
//   ✓ giving up leaves nothing behind
//   ✓ unrelated znodes are no obstacle
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
//   ✓ what cannot work is refused before anything is sent
//   ✓ a closed session is named in the error
//   ✓ a session closed during a call ends the call
//   ✓ a missing permission is named, and can be given later
//   ✓ a parent that can have no children is named
//   ✓ a reply that is none does no harm
//   ✓ a directory full of foreign children is no obstacle
//   ✓ a server that is none is named
//
// step 1 lacks:
//   ✗ a crashed holder's lock comes free
//   ✗ first come, first served
//   ✗ a stranger cannot release it
//   ✗ waiting sends no request
//   ✗ a lost reply to create does no harm
//   ✗ a lost reply to delete does no harm
//   ✗ the holder may lock again
//   ✗ the holder is told when the lock is lost
//   ✗ each tenure's token is greater than the last
//   ✗ readers share, writers do not, nobody starves
//   ✗ a broken line does not end the wait
//   ✗ who gives up need not wait for an answer
//
// step 1, where the question does not arise:
//   – a waiter's crash lets nobody in
//   – a release wakes one
//   – an arrival wakes nobody
//   – the last number does no harm
//   – a waiter whose znode was deleted is not let in beside another
//
// step 1w has:
//   ✓ one holder at a time
//   ✓ a crashed holder's lock comes free
//   ✓ giving up leaves nothing behind
//   ✓ unrelated znodes are no obstacle
//   ✓ waiting sends no request
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
//   ✓ a release is not missed while the line is down
//   ✓ what cannot work is refused before anything is sent
//   ✓ a closed session is named in the error
//   ✓ a session closed during a call ends the call
//   ✓ a missing permission is named, and can be given later
//   ✓ a parent that can have no children is named
//   ✓ a reply that is none does no harm
//   ✓ a directory full of foreign children is no obstacle
//   ✓ a server that is none is named
//
// step 1w lacks:
//   ✗ first come, first served
//   ✗ a stranger cannot release it
//   ✗ a release wakes one
//   ✗ a lost reply to create does no harm
//   ✗ a lost reply to delete does no harm
//   ✗ the holder may lock again
//   ✗ the holder is told when the lock is lost
//   ✗ each tenure's token is greater than the last
//   ✗ readers share, writers do not, nobody starves
//   ✗ a broken line does not end the wait
//   ✗ who gives up need not wait for an answer
//
// step 1w, where the question does not arise:
//   – a waiter's crash lets nobody in
//   – the last number does no harm
//   – a waiter whose znode was deleted is not let in beside another
//
// end of what was made

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) {
	property.AsTheTableSays(t, "1", plain)
	property.AsTheTableSays(t, "1w", watched)
	property.Holds(t, ephemeral, property.CrashFrees, property.KilledHolder, // which New lacks
		property.OneHolder, property.LongHold)
	property.Holds(t, ephemeral, property.Promises...)
	property.Holds(t, ephemeral, property.BadInput...)
}

func TestLockIsOneCreateAndUnlockOneDelete(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a := kind.Join(z, "A")
		turn := a.Acquire()
		owner, there := z.Owner(a.Path)
		assert.True(t, there, "%s: the lock is held, and its znode is there", kind.Name)
		assert.Equal(
			t,
			map[string]int64{"New": 0, "NewEphemeral": a.ID}[kind.Name],
			owner,
			"%s: the session that the znode belongs to",
			kind.Name,
		)
		turn.Release()
		assert.Empty(t, z.Names(z.Root), "%s: what is left when the lock is released", kind.Name)
		assert.Equal(
			t,
			map[wiretap.Op]int{wiretap.Create: 1, wiretap.Delete: 1},
			a.Requests(0),
			"%s: the requests",
			kind.Name,
		)
	}
}

// A waiter that rests for an hour is told at once that its context has ended.
func TestGivingUpDoesNotWaitForTheNextTry(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	plain.Join(z, "A").Acquire()
	patient := property.Over("an hour between two tries", func(conn *zk.Conn, path string) *Lock {
		l := New(conn, path)
		l.poll = time.Hour
		return l
	})
	b := patient.Join(z, "B")
	waiting := b.Start()
	waiting.Queued()
	z.Barrier(b.Client)
	assert.EqualError(t, waiting.Cancel(), "zklock: lock "+b.Path+": context canceled")
	assert.Equal(t, 1, b.Requests(0)[wiretap.Create], "tries within the hour")
}

// The znode goes before B has set its watch on it. Then C, who waits, closes its session.
func TestAWaiterThatWatchesIsToldOfAnEnd(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := watched.Join(z, "A"), watched.Join(z, "B"), watched.Join(z, "C")
	held, slow := a.Acquire(), b.Tap.HoldRequest(wiretap.GetData, 1)
	second := b.Start()
	zktest.AwaitChan(z, "B to be about to watch", slow.Sprung())
	held.Release()
	slow.Let()
	second.Acquired()
	third := c.Start()
	third.MustWait("B holds the lock")
	c.Session.Close()
	assert.ErrorContains(t, third.Err(), "zklock: lock "+c.Path+": ")
	second.Release()
}

// Whoever puts a znode below the lock's keeps it from being deleted.
func TestUnlockSaysWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := plain.Join(z, "A")
	turn := a.Acquire()
	_, err := z.Observer().Create(a.Path+"/note", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	err = a.Unlock(turn.Held())
	assert.ErrorIs(t, err, zk.ErrNotEmpty)
	assert.ErrorContains(t, err, "zklock: unlock "+a.Path+": ")
	require.NoError(t, z.Observer().Delete(a.Path+"/note", -1))
	turn.Release()
}

// A server that reads a request of more than 1 MB hangs up.
func TestAPathLongerThanARequestIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := plain.JoinAs(z, "A", property.Seat{Path: z.Root + "/" + strings.Repeat("k", 1_100_000)})
	err := a.Start().Err()
	require.ErrorContains(t, err, "bytes, and 500000 are the most")
	assert.Less(t, len(err.Error()), 200, "bytes of the error: it does not repeat the path")
	assert.Empty(t, a.Asked(0), "requests")
}
