// How to read these tests: the head of lock_test.go explains their words.

package plainnode

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A persistent znode outlives the client that created it, and then no client deletes it.
func TestStillBrokenACrashLocksForever(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := plain.JoinMortal(z, "Ada"), plain.Join(z, "Ben")
	a.Acquire()
	waiting := b.Start()
	require.Equal(t, zktest.Polling, waiting.Waits(), "what Ben does while Ada holds the lock")

	a.Crash()
	z.AwaitExpiry(a.Client)

	assert.Equal(t, zktest.Polling, waiting.StillWaits(), "what Ben does after the end of Ada's session")
	owner, there := z.Owner(a.Path)
	assert.True(t, there, "Ada's znode exists after the end of the session")
	assert.Zero(t, owner, "the session that Ada's znode belongs to: none")

	require.NoError(t, z.Observer().Delete(a.Path, -1), "somebody deletes the znode by hand")
	waiting.Acquired()
}

func TestAnEphemeralZnodeIsDeletedAfterACrash(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := ephemeral.JoinMortal(z, "Ada"), ephemeral.Join(z, "Ben")
	a.Acquire()
	owner, _ := z.Owner(a.Path)
	assert.Equal(t, a.ID, owner, "the session that Ada's znode belongs to: its own")
	waiting := b.Start()
	require.Equal(t, zktest.Polling, waiting.Waits(), "what Ben does while Ada holds the lock")

	a.Crash()
	z.AwaitExpiry(a.Client)
	waiting.Acquired()
}

// The reply to a transaction has its zxid, and any other reply has the zxid of the last transaction
// before it. If a create that fails were no transaction, many replies would have the same zxid.
func TestStillBrokenEveryTryIsAWrite(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	plain.Join(z, "the holder").Acquire()
	const waiters, tries = 10, 20
	var waiting []*zktest.Turn
	for i := range waiters {
		waiting = append(waiting, plain.Join(z, fmt.Sprintf("waiter %d", i+1)).Start())
	}

	transactions := map[int64]bool{}
	for _, w := range waiting {
		z.Await(w.Name+" to have tried often enough", func() bool { return len(tried(w)) >= tries })
		answers := tried(w)[:tries]
		for _, a := range answers {
			assert.Equal(t, wiretap.NodeExists, a.Err, "what the server answered to %s's create", w.Name)
			transactions[a.Zxid] = true
		}
		lasted := answers[tries-1].At.Sub(answers[0].At)
		assert.GreaterOrEqual(t, lasted, (tries-1)*pollInterval, "how long the tries of %s lasted", w.Name)
	}
	assert.Len(t, transactions, waiters*tries, "transactions, for so many creates that failed")
	chapter.Says(t, "%d waiters try %d times each: %d creates fail, and each is a transaction",
		waiters, tries, len(transactions))
}

// tried lists the replies to a waiter's creates.
func tried(waiter *zktest.Turn) (answers []wiretap.Frame) {
	for _, f := range waiter.Tap.Frames() {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Create {
			answers = append(answers, f)
		}
	}
	return answers
}

// Ben arrives first. His third try is delayed on its way. Meanwhile Ada releases, and Cleo arrives.
func TestStillBrokenTheFirstIsNotServedFirst(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := plain.Join(z, "Ada"), plain.Join(z, "Ben"), plain.Join(z, "Cleo")
	held := a.Acquire()
	thirdTry := b.Tap.HoldRequest(wiretap.Create, 3)
	first := b.Start()
	zktest.AwaitChan(z, "Ben's third try", thirdTry.Sprung())
	held.Release()
	c.Acquire()
	thirdTry.Let()
	assert.Equal(t, zktest.Polling, first.StillWaits(), "what Ben does, while Cleo, who arrived later, holds the lock")
	assert.Equal(t, 1, c.Requests(0)[wiretap.Create], "Cleo's tries")
	chapter.Says(t, "Ben arrived first and has tried 3 times, Cleo arrived last and has tried once: Cleo holds the lock")
}

func TestStillBrokenAnotherClientReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, other := plain.Join(z, "Ada"), plain.Join(z, "Ben"), plain.Join(z, "Cleo")
	a.Acquire()
	require.NoError(t, other.Unlock(), "Unlock by a client that does not hold the lock")
	require.NoError(t, b.Start().Err(), "Ben's Lock, while Ada still holds the lock")
	chapter.Says(t, "Ada holds the lock, Cleo calls Unlock, Ben calls Lock: Ada and Ben both hold the lock")
}

// Nobody makes a mistake: Ada's session expires while she works, and then she calls Unlock.
func TestStillBrokenAnExpiredHolderReleasesTheLockOfTheNext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := ephemeral.Join(z, "Ada"), ephemeral.Join(z, "Ben"), ephemeral.Join(z, "Cleo")
	held := a.Acquire()
	z.Expire(a.Client)
	b.Acquire()
	a.Tap.Restore()
	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	require.NoError(t, held.Unlock(), "Ada's Unlock, while Ben holds the lock")
	require.NoError(t, c.Start().Err(), "Cleo's Lock, while Ben still holds the lock")
	chapter.Says(t,
		"NewEphemeral: Ada's session expires, Ben locks, Ada unlocks, Cleo locks: Ben and Cleo both hold the lock")
}

// Ada's delete is carried out, and its reply is lost. Her session lives, and she deletes again.
func TestStillBrokenARetriedDeleteReleasesTheLockOfTheNext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := ephemeral.Join(z, "Ada"), ephemeral.Join(z, "Ben"), ephemeral.Join(z, "Cleo")
	held := a.Acquire()
	a.Tap.LoseReply(wiretap.Delete, 1)
	require.ErrorIs(t, held.Unlock(), zk.ErrConnectionClosed, "Ada's Unlock, whose delete was not answered")
	b.Acquire()
	owner, _ := z.Owner(a.Path)
	require.Equal(t, b.ID, owner, "the session that the znode belongs to: Ben's")

	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	require.NoError(t, a.Unlock(), "Ada's second Unlock, while Ben holds the lock")
	require.NoError(t, c.Start().Err(), "Cleo's Lock, while Ben still holds the lock")
	for _, client := range []*zktest.Member{a, b, c} {
		assert.Equal(t, client.ID, client.SessionID(), "the session of %s has not expired", client.Name)
	}
}

// The server creates Ada's znode, and the connection breaks before the reply arrives.
func TestStillBrokenALostReplyMakesTheHolderWaitForItself(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a := kind.Join(z, "Ada")
		a.Tap.LoseReply(wiretap.Create, 1)
		require.Error(t, a.Start().Err(), "%s: Ada's Lock, whose create was not answered", kind.Name)
		_, there := z.Owner(a.Path)
		assert.True(t, there, "%s: Ada's znode exists", kind.Name)
		again := a.Start()
		assert.Equal(t, zktest.Polling, again.Waits(), "%s: what Ada does after a second Lock", kind.Name)
		require.Error(t, again.Cancel(), "%s: only giving up ends the wait", kind.Name)
	}
}
