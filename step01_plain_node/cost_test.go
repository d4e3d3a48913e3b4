package plainnode

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestACrashedHolderLocksForEver(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		z := zktest.New(t)
		path := z.Root + "/lock"
		a, b := z.Mortal("A"), z.Client("B")
		mustLock(t, z, kind.new(a.Conn, path))
		waiting := z.Go(b, kind.new(b.Conn, path).Lock)
		if how := waiting.Waits(); how != zktest.Polling {
			t.Fatalf("%s: A holds the lock, and B %v", kind.name, how)
		}
		a.Crash()
		z.AwaitExpiry(a)
		if waiting.StillWaits() == zktest.Returned {
			waiting.Acquired()
			chapter.Says(t, "%s: the holder's session has expired, and B is let in", kind.name)
			continue
		}
		owner, there := z.Owner(path)
		chapter.Says(t, "%s: the holder's session has expired, its znode is there: %v (owner %d), and B waits", kind.name, there, owner)
		if err := z.Observer().Delete(path, -1); err != nil {
			t.Fatal(err)
		}
		waiting.Acquired()
		chapter.Says(t, "%s: somebody deletes the znode by hand, and B is let in", kind.name)
	}
}

// Not parallel: the server's transactions are counted.
func TestEveryTryIsAWrite(t *testing.T) {
	z := zktest.New(t)
	path := z.Root + "/lock"
	mustLock(t, z, New(z.Client("the holder").Conn, path))
	const waiters = 10
	var clients []*zktest.Client
	for i := range waiters {
		clients = append(clients, z.Client(fmt.Sprintf("waiter %d", i+1)))
	}
	strangers := sessions(t, z) - waiters - 2 // of earlier tests: the end of one is a write, too

	first := lastZxid(t, z)
	var attempts []*zktest.Attempt
	for _, c := range clients {
		attempts = append(attempts, z.Go(c, New(c.Conn, path).Lock))
	}
	time.Sleep(time.Second) // the measure
	var all [][]wiretap.Frame
	for i, c := range clients {
		if err := attempts[i].Cancel(); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: Lock: %v", c.Name, err)
		}
		all = append(all, c.Tap.Frames())
	}
	grown := int(lastZxid(t, z) - first)

	sent := wiretap.Count(all...)
	tries := sent.Requests[wiretap.Create]
	if tries == 0 || grown < tries || grown > tries+strangers {
		t.Fatalf("%d failed creates, and the server's zxid grew by %d", tries, grown)
	}
	chapter.Says(t, "%d waiters, one second: %v creates, all in vain, and the server's zxid grew by %v",
		waiters, chapter.About(tries, 8), chapter.About(grown, 8))
	chapter.Says(t, "a create in vain: %d bytes sent, %d received, %.1f zxids",
		sent.Sent/tries, sent.Received/tries, float64(grown)/float64(tries))
}

// By construction: B's third try is held up on the wire, and A releases.
func TestTheFirstIsNotTheOneServed(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	a, b, c := z.Client("A"), z.Client("B"), z.Client("C")
	holder := New(a.Conn, path)
	mustLock(t, z, holder)
	slow := b.Tap.HoldRequest(wiretap.Create, 3)
	first := z.Go(b, New(b.Conn, path).Lock)
	zktest.AwaitChan(z, "B's third try", slow.Sprung())
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	last := z.Go(c, New(c.Conn, path).Lock)
	last.Acquired()
	tries := func(c *zktest.Client) int { return wiretap.Count(c.Tap.Frames()).Requests[wiretap.Create] }
	chapter.Says(t, "B came first and has tried %d times, C came last and has tried %d time: C holds the lock", tries(b), tries(c))
	slow.Let()
	if how := first.StillWaits(); how != zktest.Polling {
		t.Fatalf("C holds the lock, and B %v", how)
	}
}

func TestAStrangerReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	mustLock(t, z, New(z.Client("A").Conn, path))
	if err := New(z.Client("the stranger").Conn, path).Unlock(); err != nil {
		t.Fatal(err)
	}
	b := z.Client("B")
	beside := z.Go(b, New(b.Conn, path).Lock)
	inside := 1 // A, who has not released
	if beside.Waits() == zktest.Returned {
		beside.Acquired()
		inside++
	}
	chapter.Says(t, "A is inside, a stranger calls Unlock, B calls Lock: %d clients are inside", inside)
}

func TestALostReplyMakesTheHolderWaitForItself(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		z := zktest.New(t)
		path := z.Root + "/lock"
		a := z.Client("A")
		lock := kind.new(a.Conn, path)
		a.Tap.LoseReply(wiretap.Create, 1)
		err := lock.Lock(z.Ctx)
		_, there := z.Owner(path)
		again := z.Go(a, lock.Lock)
		chapter.Says(t, "%s: the reply to A's create is lost; its znode is there: %v; A locks again and %v", kind.name, there, again.Waits())
		if err == nil {
			t.Error("the reply was lost, and Lock said that all was well")
		}
		if err := again.Cancel(); !errors.Is(err, context.Canceled) {
			t.Errorf("A's second Lock: %v", err)
		}
	}
}

// mustLock takes a lock that is free.
func mustLock(t *testing.T, z *zktest.Zoo, lock *Lock) {
	t.Helper()
	if err := lock.Lock(z.Ctx); err != nil {
		t.Fatal(err)
	}
}

// lastZxid is the last transaction that the server has applied: any reply
// bears it.
func lastZxid(t *testing.T, z *zktest.Zoo) int64 {
	t.Helper()
	z.Barrier(z.Observer())
	frames := z.Observer().Tap.Frames()
	for i := len(frames) - 1; ; i-- {
		if f := frames[i]; f.Kind == wiretap.Reply && f.Op == wiretap.Exists {
			return f.Zxid
		}
	}
}

// sessions counts all sessions that the server has.
func sessions(t *testing.T, z *zktest.Zoo) int {
	t.Helper()
	all, err := z.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
