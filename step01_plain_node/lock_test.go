package plainnode

import (
	"context"
	"errors"
	"io"
	"log"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", hold)
	zktest.Main(m)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	plain := lockcheck.Over("plainnode", New)
	lockcheck.Holds(t, plain, lockcheck.OneHolder, lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.NoWatchLeft,
		lockcheck.LongHold)
	lockcheck.Empty(t, plain, lockcheck.WaiterCrash, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody)
	lockcheck.Fails(t, plain, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger, lockcheck.SilentWait,
		lockcheck.LostCreateReply, lockcheck.LostDeleteReply, lockcheck.LocksAgain, lockcheck.ToldOfLoss,
		lockcheck.Fenced, lockcheck.Shared)

	lockcheck.Holds(t, lockcheck.Over("ephemeral", NewEphemeral), lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.LongHold)
}

// Both kinds of the lock: what New promises, NewEphemeral does too.
var kinds = []struct {
	name string
	new  func(*zk.Conn, string) *Lock
}{
	{"New", New},
	{"NewEphemeral", NewEphemeral},
}

func TestLockIsOneCreateAndUnlockOneDelete(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			c := z.Client("A")
			path := z.Root + "/lock"
			lock := kind.new(c.Conn, path)
			before := c.Tap.Mark()
			if err := lock.Lock(z.Ctx); err != nil {
				t.Fatal(err)
			}
			owner, there := z.Owner(path)
			if !there || (owner == c.ID) != (kind.name == "NewEphemeral") {
				t.Errorf("the lock is held; its znode is there: %v, and belongs to session %#x, A's being %#x", there, owner, c.ID)
			}
			if err := lock.Unlock(); err != nil {
				t.Fatal(err)
			}
			if left := z.Names(z.Root); len(left) > 0 {
				t.Errorf("the lock is released, and %v is left", left)
			}
			sent := wiretap.Count(c.Tap.Since(before))
			if sent.Requests[wiretap.Create] != 1 || sent.Requests[wiretap.Delete] != 1 || sent.All() != 2 {
				t.Errorf("want one create and one delete, sent %v", sent.Requests)
			}
		})
	}
}

func TestMissingParentsAreMade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock := New(z.Client("A").Conn, z.Root+"/shop/locks/orders")
	if err := errors.Join(lock.Lock(z.Ctx), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	if names := z.Names(z.Root + "/shop"); len(names) != 1 || names[0] != "locks" {
		t.Errorf("below /shop stands %v, want the directory of the lock", names)
	}
}

// What cannot work is refused before anything is sent.
func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, path := z.Client("A"), z.Root+"/lock"
	over, cancel := context.WithCancel(z.Ctx)
	cancel()
	assert.ErrorContains(t, New(nil, path).Lock(z.Ctx), "the connection is nil")
	assert.ErrorContains(t, New(nil, path).Unlock(), "the connection is nil")
	assert.EqualError(t, New(c.Conn, path).Lock(over), "zklock: lock "+path+": context canceled")
	assert.Zero(t, wiretap.Count(c.Tap.Frames()).All(), "requests that were sent all the same")
}

// A parent is ephemeral: it can have no children.
func TestLockSaysWhyItsZnodeCannotBeMade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, parent := z.Client("A"), z.Root+"/shop"
	_, err := c.Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, path := range []string{parent + "/lock", parent + "/locks/lock"} {
		err := z.Go(c, New(c.Conn, path).Lock).Err()
		assert.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
		assert.ErrorContains(t, err, "zklock: lock "+path+": ")
	}
}

// A finds its lock's parent missing; before A can make it, B has done so.
func TestTwoMakeTheParentAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := z.Client("A"), z.Client("B")
	slow := a.Tap.HoldRequest(wiretap.Create, 2)
	second := z.Go(a, New(a.Conn, z.Root+"/shop/lock").Lock)
	zktest.AwaitChan(z, "A to make the parent", slow.Sprung())
	first := New(b.Conn, z.Root+"/shop/lock")
	z.Go(b, first.Lock).Acquired()
	slow.Let()
	assert.Equal(t, zktest.Polling, second.Waits(), "how A waits for B")
	require.NoError(t, first.Unlock())
	second.Acquired()
}

// Somebody has written into the znode: it is deleted all the same.
func TestTheZnodeIsDeletedWhateverIsInIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	lock := New(z.Client("A").Conn, path)
	require.NoError(t, lock.Lock(z.Ctx))
	_, err := z.Observer().Set(path, []byte("a note"), -1)
	require.NoError(t, err)
	assert.NoError(t, lock.Unlock())
	assert.ErrorContains(t, lock.Unlock(), "zklock: unlock "+path+": ", "there is nothing left to delete")
}

// A waiter that rests for an hour is told at once that its context has ended.
func TestGivingUpDoesNotWaitForTheNextTry(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, path := z.Client("A"), z.Client("B"), z.Root+"/lock"
	require.NoError(t, New(a.Conn, path).Lock(z.Ctx))
	lock := New(b.Conn, path)
	lock.poll = time.Hour
	waiting := z.Go(b, lock.Lock)
	waiting.Queued()
	assert.ErrorIs(t, waiting.Cancel(), context.Canceled)
}

func TestManyGoroutinesShareOneLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("A")
	lock := New(c.Conn, z.Root+"/lock")
	var inside atomic.Int32
	var attempts []*zktest.Attempt
	for range 8 {
		attempts = append(attempts, z.Go(c, func(ctx context.Context) error {
			for range 5 {
				if err := lock.Lock(ctx); err != nil {
					return err
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d goroutines are inside", n)
				}
				inside.Add(-1)
				if err := lock.Unlock(); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, a := range attempts {
		a.Acquired()
	}
}

// Whoever puts a znode below the lock's keeps it from being deleted.
func TestUnlockSaysWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	lock := New(z.Client("A").Conn, path)
	if err := lock.Lock(z.Ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Observer().Create(path+"/note", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	err := lock.Unlock()
	if !errors.Is(err, zk.ErrNotEmpty) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete that first") {
		t.Errorf("Unlock said: %v", err)
	}
	if err := errors.Join(z.Observer().Delete(path+"/note", -1), lock.Unlock()); err != nil {
		t.Error(err)
	}
}

// hold is the part of a process that takes the lock and keeps it.
func hold(servers, args []string) {
	conn, _, err := zk.Connect(servers, zktest.MortalTimeout, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err == nil {
		err = NewEphemeral(conn, args[0]).Lock(context.Background())
	}
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	zktest.Say("%d", conn.SessionID())
	select {}
}

func TestKilledHolderFreesTheEphemeralLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	holder := z.Process("holder", path)
	session, err := strconv.ParseInt(holder.Line(), 10, 64)
	if owner, _ := z.Owner(path); err != nil || owner != session {
		t.Fatalf("the process does not hold the lock: %v", err)
	}
	b := z.Client("B")
	waiting := z.Go(b, NewEphemeral(b.Conn, path).Lock)
	if how := waiting.Waits(); how != zktest.Polling {
		t.Fatalf("a process holds the lock, and B %v", how)
	}

	holder.Signal(syscall.SIGKILL)
	waiting.Acquired()
	z.Await("the killed process's session to be gone", func() bool {
		sessions, err := z.Sessions()
		return err == nil && !sessions[session]
	})
	if owner, _ := z.Owner(path); owner != b.ID {
		t.Errorf("B has the lock, and its znode belongs to session %#x, B's being %#x", owner, b.ID)
	}
}
