package plainnode

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// How to read these tests. Each has clients of its own on a real server.
//
//	z := zktest.New(t)          the server, and a directory for this test: z.Root
//	a := plain.Join(z, "A")     client A, with a session of its own, which will use the lock
//	held := a.Acquire()         A calls Lock, and holds the lock
//	held.Release()              A calls Unlock
//	waiting := b.Start()        B calls Lock in the background
//	waiting.Waits()             how B waits (it polls, or waits silently), or that its Lock has returned
//	waiting.StillWaits()        the same, after all that has happened so far
//	waiting.MustWait("A")       B waits silently, or the test fails
//	waiting.Acquired()          B's Lock has returned, and B holds the lock
//	a.Crash()                   from now on nothing passes between A and the server
//	z.Expire(a.Client)          A crashes, and its session ends at once
//	plain.JoinMortal(z, "A")    a client whose session ends two seconds after a crash
//	z.AwaitExpiry(a.Client)     the server has ended A's session
//	waiting.Queued()            the server has answered B's create, or a list
//	waiting.Err()               what B's Lock returned, once it has
//	a.Queue()                   the names in the lock's directory
//	z.Owner(path)               the session that owns the znode; 0: the znode is not ephemeral
//	z.Observer()                a client with no part in the story, to arrange things with
//	z.Barrier(a.Client)         A has received every notification of what has happened so far
//	a.Tap.LoseReply(…)          the next reply of this kind is lost, and the connection breaks
//	a.Tap                       the connection between A and the server: messages can be lost or delayed
//	a.Asked(0)                  the requests that A has sent
//
//	line := plain.Line(z, 10)   a holder and a queue of ten waiters
//	count := z.Count(line...)   counts from now on what passes on their connections; count() is the sum
//	line = z.Pass(line)         the first releases; the next one holds, and the others sleep again
//	z.Settle(line...)           each has seen all that has happened so far, and sleeps again
//
//	chapter.Says(t, …)          prints a measured line that README.md quotes
//	chapter.Size(t, 50)         50, or the value of WAITERS

func TestMain(m *testing.M) { zktest.Main(m) }

// The two kinds of this step's lock.
var (
	plain     = property.Over("New", New)
	ephemeral = property.Over("NewEphemeral", NewEphemeral)
)

func init() {
	for _, kind := range []*property.Subject{&plain, &ephemeral} {
		kind.Znode, kind.NotHeld = true, zk.ErrNoNode
	}
}

// It is not parallel, so it runs before most other tests. When a line of
// lock.go is broken, the properties say what that line is for.
func TestProperties(t *testing.T) {
	property.Holds(t, plain, property.Has(1)...)
	property.Holds(t, plain, property.UnlockTooMany, property.GivesUpCutOff) // a waiter has no znode here
	none := []*property.Property{
		property.WaiterCrash, property.NotBeside, // here a waiter has no znode
		property.WakesOne, property.ArrivalWakesNobody, // here no waiter sleeps
	}
	property.DoesNotArise(t, plain, none...)
	property.Lacks(t, plain, property.Lacking(1, append(none, property.GivesUpCutOff)...)...)
}

// It differs from New in the kind of the znode, and in nothing else.
func TestPropertiesOfNewEphemeral(t *testing.T) {
	property.Holds(t, ephemeral,
		property.OneHolder,
		property.CrashFrees, // which New lacks
	)
}

func TestLockIsOneCreateAndUnlockOneDelete(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a := kind.Join(z, "A")
		held := a.Acquire()
		_, there := z.Owner(a.Path)
		assert.True(t, there, "%s: the znode exists while A holds the lock", kind.Name)
		held.Release()
		_, there = z.Owner(a.Path)
		assert.False(t, there, "%s: the znode exists after Unlock", kind.Name)
		assert.Equal(t, []string{"create", "delete"}, a.Asked(0), "%s: A's requests", kind.Name)
	}
}

// B pauses for an hour between two tries.
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
	waiting.Queued() // its first try is answered
	z.Barrier(b.Client)
	assert.EqualError(t, waiting.Cancel(), "zklock: lock "+b.Path+": context canceled", "B's Lock, its context over")
	assert.Equal(t, []string{"create"}, b.Asked(0), "B's requests within the hour")
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

func TestAClosedConnectionOrNoPermission(t *testing.T) {
	property.BadInput(t, plain)
	property.BadInput(t, ephemeral)
}
