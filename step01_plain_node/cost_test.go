package plainnode

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

func TestACrashedHolderLocksForEver(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a, b := kind.JoinMortal(z, "A"), kind.Join(z, "B")
		a.Acquire()
		waiting := b.Start()
		require.Equal(t, zktest.Polling, waiting.Waits(), "how B waits while A holds the lock")
		a.Crash()
		z.AwaitExpiry(a.Client)
		if waiting.StillWaits() == zktest.Returned {
			waiting.Acquired()
			chapter.Says(t, "%s: the holder's session has expired, and B is let in", kind.Name)
			continue
		}
		owner, there := z.Owner(a.Path)
		chapter.Says(
			t,
			"%s: the holder's session has expired, its znode is there: %v (owner %d), and B waits",
			kind.Name,
			there,
			owner,
		)
		require.NoError(t, z.Observer().Delete(a.Path, -1))
		waiting.Acquired()
		chapter.Says(t, "%s: somebody deletes the znode by hand, and B is let in", kind.Name)
	}
}

// The server's transactions are counted, so it is the test's own.
func TestEveryTryIsAWrite(t *testing.T) {
	t.Parallel()
	server, err := zkserver.StartWith(t.Context(), zkserver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	z := zktest.NewOn(t, server)
	zxid := func() int64 { // of one more transaction
		stat, err := z.Observer().Set(z.Root, nil, -1)
		require.NoError(t, err)
		return stat.Mzxid
	}
	plain.Join(z, "the holder").Acquire()
	const waiters = 10
	var members []*zktest.Member
	for i := range waiters {
		members = append(members, plain.Join(z, fmt.Sprintf("waiter %d", i+1)))
	}
	before := zxid()
	var turns []*zktest.Turn
	for _, m := range members {
		turns = append(turns, m.Start())
	}
	time.Sleep(time.Second) // the measure
	var passed [][]wiretap.Frame
	for _, turn := range turns {
		require.ErrorIs(t, turn.Cancel(), context.Canceled)
		passed = append(passed, turn.Tap.Frames())
	}
	sent, grown := wiretap.Count(passed...), int(zxid()-before-1)
	tries := sent.Requests[wiretap.Create]
	require.NotZero(t, tries)
	assert.Equal(t, tries, grown, "transactions of the server, for so many creates in vain")
	chapter.Says(t, "%d waiters, one second: %v creates, all in vain, and the server's zxid grew by %v",
		waiters, chapter.About(tries, 8), chapter.About(grown, 8))
	chapter.Says(t, "a create in vain: %d bytes sent, %d received, %.1f zxids",
		sent.Sent/tries, sent.Received/tries, float64(grown)/float64(tries))
}

// All who watch the znode are told that it has gone, and all try to create it.
func TestAReleaseWakesAllAndEachWrites(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, chapter.Size(t, 50)} {
		z := zktest.New(t)
		line := watched.Line(z, n)
		holder, waiting := line[0], line[1:]
		count := z.Count(waiting...)
		holder.Release()
		z.Await("one of them to be let in", func() bool {
			return slices.ContainsFunc(waiting, (*zktest.Turn).Returned)
		})
		z.Settle(slices.DeleteFunc(slices.Clone(waiting), (*zktest.Turn).Returned)...)
		woken := count()
		creates := woken.Requests[wiretap.Create]
		chapter.Says(t, "NewWatched, %d waiters, one release: %d notifications, %d creates, %d of them in vain",
			n, woken.Notifications, creates, creates-1)
		assert.Equal(t, n, woken.Notifications, "notifications: to each of the waiters")
		assert.Equal(t, n, creates, "creates: each of the waiters tries")
	}
}

// inDirectory is the lock of ZooKeeper 如何实现分布式锁: its waiters watch the directory
// in which the znode is, and not the znode.
type inDirectory struct{ own *Lock }

func newInDirectory(conn *zk.Conn, path string) inDirectory {
	return inDirectory{NewEphemeral(conn, path)}
}

func (l inDirectory) Lock(ctx context.Context) error {
	for {
		err := create(l.own.conn, l.own.path, l.own.mode)
		if !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		names, _, changed, err := l.own.conn.ChildrenW(pathpkg.Dir(l.own.path))
		if err != nil {
			return err
		}
		if !slices.Contains(names, pathpkg.Base(l.own.path)) { // it has gone meanwhile
			continue
		}
		select {
		case event := <-changed:
			if event.Err != nil {
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l inDirectory) Unlock() error { return l.own.Unlock() }

// Whom a release wakes, and whom somebody else's lock in the same directory wakes.
func TestTheDocumentsWaitersWatchTheDirectory(t *testing.T) {
	t.Parallel()
	documents := property.Over("the document's lock", newInDirectory)
	documents.Znode, documents.NotHeld = true, zk.ErrNoNode
	property.Holds(t, documents, property.OneHolder, property.CrashFrees, property.GivingUp)

	const waiters = 10
	for _, kind := range []property.Subject{watched, documents} {
		z := zktest.New(t)
		line := kind.Line(z, waiters)
		holder, waiting := line[0], line[1:]
		neighbour := ephemeral.JoinAs(z, "the neighbour", property.Seat{Path: holder.Path + "-too"})
		count := z.Count(waiting...)
		held := neighbour.Acquire()
		z.Settle(waiting...)
		held.Release()
		z.Settle(waiting...)
		woken := count()
		chapter.SaysIn(t, "../docs/course.md",
			"%s, %d waiters, another lock in the directory is taken and released: %d notifications, %d creates in vain",
			kind.Name, waiters, woken.Notifications, woken.Requests[wiretap.Create])

		count = z.Count(waiting...)
		holder.Release()
		z.Await("one of them to be let in", func() bool {
			return slices.ContainsFunc(waiting, (*zktest.Turn).Returned)
		})
		z.Settle(slices.DeleteFunc(slices.Clone(waiting), (*zktest.Turn).Returned)...)
		woken = count()
		chapter.SaysIn(t, "../docs/course.md",
			"%s, %d waiters, one release: %d notifications, %d creates, %d of them in vain",
			kind.Name, waiters, woken.Notifications, woken.Requests[wiretap.Create], woken.Requests[wiretap.Create]-1)
	}
}

// By construction: B's third try is held up on the wire, and A releases.
func TestTheFirstIsNotTheOneServed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := plain.Join(z, "A"), plain.Join(z, "B"), plain.Join(z, "C")
	holder := a.Acquire()
	slow := b.Tap.HoldRequest(wiretap.Create, 3)
	first := b.Start()
	zktest.AwaitChan(z, "B's third try", slow.Sprung())
	holder.Release()
	c.Acquire()
	chapter.Says(t, "B came first and has tried %d times, C came last and has tried %d time: C holds the lock",
		b.Requests(0)[wiretap.Create], c.Requests(0)[wiretap.Create])
	slow.Let()
	assert.Equal(t, zktest.Polling, first.StillWaits(), "how B waits while C holds the lock")
}

func TestAStrangerReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	plain.Join(z, "A").Acquire()
	stranger := plain.Join(z, "the stranger")
	require.NoError(t, stranger.Unlock(z.Ctx))
	inside := 1 // A, who has not released
	beside := plain.Join(z, "B").Start()
	if beside.Waits() == zktest.Returned {
		beside.Acquired()
		inside++
	}
	chapter.Says(t, "A is inside, a stranger calls Unlock, B calls Lock: %d clients are inside", inside)
}

func TestALostReplyMakesTheHolderWaitForItself(t *testing.T) {
	t.Parallel()
	for _, kind := range []property.Subject{plain, ephemeral} {
		z := zktest.New(t)
		a := kind.Join(z, "A")
		a.Tap.LoseReply(wiretap.Create, 1)
		assert.Error(t, a.Start().Err(), "Lock, whose create was not answered")
		_, there := z.Owner(a.Path)
		again := a.Start()
		chapter.Says(
			t,
			"%s: the reply to A's create is lost; its znode is there: %v; A locks again and %v",
			kind.Name,
			there,
			again.Waits(),
		)
		assert.ErrorIs(t, again.Cancel(), context.Canceled, "A's second Lock")
	}
}
