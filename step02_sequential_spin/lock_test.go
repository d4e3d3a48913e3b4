package sequentialspin

import (
	"context"
	"errors"
	"io"
	"log"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

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

// join gives a client the lock of its test.
func join(z *zktest.Zoo) func(*zktest.Client) zktest.Locker {
	return polling(z.Root+"/lock", pollInterval)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	spin := lockcheck.Over("sequentialspin", New)
	lockcheck.Holds(t, spin, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.NoWatchLeft,
		lockcheck.LongHold)
	lockcheck.Empty(t, spin, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody)
	lockcheck.Fails(t, spin, lockcheck.SilentWait, lockcheck.LostCreateReply, lockcheck.LostDeleteReply,
		lockcheck.LocksAgain, lockcheck.ToldOfLoss, lockcheck.Fenced, lockcheck.Shared)
}

func TestLockIsOneCreateAndOneList(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("A")
	path := z.Root + "/lock"
	lock := New(c.Conn, path)
	if err := errors.Join(lock.Lock(z.Ctx), lock.Unlock()); err != nil { // makes the directory
		t.Fatal(err)
	}
	before := c.Tap.Mark()
	if err := lock.Lock(z.Ctx); err != nil {
		t.Fatal(err)
	}
	node := path + "/lock-0000000001"
	if owner, _ := z.Owner(node); owner != c.ID {
		t.Errorf("A holds the lock with %v, which belongs to session %#x, A's being %#x", z.Names(path), owner, c.ID)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if left := z.Names(path); len(left) > 0 {
		t.Errorf("the lock is released, and %v is left", left)
	}
	sent := wiretap.Count(c.Tap.Since(before))
	if r := sent.Requests; r[wiretap.Create] != 1 || r[wiretap.GetChildren] != 1 || r[wiretap.Delete] != 1 || sent.All() != 3 {
		t.Errorf("want one create, one list and one delete, sent %v", sent.Requests)
	}
}

func TestMissingParentsAreMade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock := New(z.Client("A").Conn, z.Root+"/shop/locks/orders")
	if err := errors.Join(lock.Lock(z.Ctx), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	if names := z.Names(z.Root + "/shop/locks"); len(names) != 1 || names[0] != "orders" {
		t.Errorf("below /shop/locks stands %v, want the directory of the lock", names)
	}
}

// What cannot work is refused before anything is sent.
func TestLockRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, dir := z.Client("A"), z.Root+"/lock"
	over, cancel := context.WithCancel(z.Ctx)
	cancel()
	assert.ErrorContains(t, New(nil, dir).Lock(z.Ctx), "the connection is nil")
	assert.EqualError(t, New(c.Conn, dir).Lock(over), "zklock: lock "+dir+": context canceled")
	assert.Zero(t, wiretap.Count(c.Tap.Frames()).All(), "requests that were sent all the same")
}

// A parent is ephemeral: it can have no children.
func TestLockSaysWhyItsDirectoryCannotBeMade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, parent := z.Client("A"), z.Root+"/shop"
	_, err := c.Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, dir := range []string{parent, parent + "/locks"} {
		err := z.Go(c, New(c.Conn, dir).Lock).Err()
		assert.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
		assert.ErrorContains(t, err, "zklock: lock "+dir+": ")
	}
}

// A finds the directory missing; before A can make it, B has done so.
func TestTwoMakeTheDirectoryAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := z.Client("A"), z.Client("B")
	slow := a.Tap.HoldRequest(wiretap.Create, 2)
	second := z.Go(a, join(z)(a).Lock)
	zktest.AwaitChan(z, "A to make the directory", slow.Sprung())
	first := join(z)(b)
	z.Go(b, first.Lock).Acquired()
	slow.Let()
	assert.Equal(t, zktest.Polling, second.Waits(), "how A waits behind B")
	require.NoError(t, first.Unlock())
	second.Acquired()
}

// Unlock says whether the lock was never held, is held no more, or was lost.
func TestUnlockWithoutTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := z.Root + "/lock"
	lock := New(z.Client("A").Conn, dir)
	assert.EqualError(t, lock.Unlock(), "zklock: unlock "+dir+": "+ErrNotHeld.Error())

	require.NoError(t, errors.Join(lock.Lock(z.Ctx), lock.Unlock()))
	assert.ErrorIs(t, lock.Unlock(), ErrNotHeld, "a second Unlock")

	require.NoError(t, lock.Lock(z.Ctx))
	node := dir + "/lock-0000000001"
	require.NoError(t, z.Observer().Delete(node, -1))
	err := lock.Unlock()
	assert.ErrorIs(t, err, zk.ErrNoNode, "somebody has deleted the znode")
	assert.ErrorContains(t, err, "zklock: unlock "+node+": ")
	assert.ErrorIs(t, lock.Unlock(), ErrNotHeld, "a second Unlock")
}

// The server never hears of A's delete: A still holds the lock, and knows it.
func TestUnlockCanBeCalledAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, dir := z.Client("A"), z.Root+"/lock"
	lock := New(a.Conn, dir)
	require.NoError(t, lock.Lock(z.Ctx))
	a.Tap.LoseRequest(wiretap.Delete, 1)
	assert.Error(t, lock.Unlock(), "the server has not heard of it")
	assert.Len(t, z.Names(dir), 1, "znodes in the queue")
	assert.NoError(t, lock.Unlock(), "the server hears of it")
	assert.Empty(t, z.Names(dir), "the queue")
}

// Somebody has written into the znodes: they are deleted all the same.
func TestAZnodeIsDeletedWhateverIsInIt(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := z.Root + "/lock"
	holder := z.Enter("the holder", join(z))
	holder.Acquired()
	waiter := z.Enter("the waiter", join(z))
	for _, name := range z.Names(dir) {
		_, err := z.Observer().Set(dir+"/"+name, []byte("a note"), -1)
		require.NoError(t, err)
	}
	assert.ErrorIs(t, waiter.Cancel(), context.Canceled)
	assert.NoError(t, holder.Unlock())
	assert.Empty(t, z.Names(dir), "the queue after one gave up and the other released")
}

// The connection is lost at a waiter's list: it leaves the queue, and says why.
func TestAnErrorEndsTheWait(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := z.Client("the holder"), z.Client("the waiter")
	z.Go(holder, join(z)(holder).Lock).Acquired()
	waiter.Tap.LoseReply(wiretap.GetChildren, 1)
	err := z.Go(waiter, join(z)(waiter).Lock).Err()
	assert.ErrorIs(t, err, zk.ErrConnectionClosed, "the reply to the waiter's list was lost")
	assert.Len(t, z.Names(z.Root+"/lock"), 1, "the holder alone is in the queue")
}

// A waiter gives up, and nobody knows what became of its znode.
func TestGivingUpSaysWhatMayBeLeft(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	z.Enter("the holder", join(z)).Acquired()
	waiter := z.Enter("the waiter", join(z))
	waiter.Tap.LoseReply(wiretap.Delete, 1)
	err := waiter.Cancel()
	assert.ErrorContains(t, err, "zklock: lock "+z.Root+"/lock: context canceled\n")
	assert.ErrorContains(t, err, "zklock: leave the queue: delete "+z.Root+"/lock/lock-0000000001: ")
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

// Somebody deletes a waiter's znode: it has no place any more, and must say so.
func TestAWaiterWithoutItsZnodeSaysSo(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	a, b := z.Client("A"), z.Client("B")
	z.Go(a, New(a.Conn, path).Lock).Acquired()
	waiting := z.Go(b, New(b.Conn, path).Lock)
	waiting.Waits()
	if err := z.Observer().Delete(path+"/lock-0000000001", -1); err != nil {
		t.Fatal(err)
	}
	err := waiting.Err()
	assert.ErrorIs(t, err, zk.ErrNoNode, "what B's Lock answers")
	assert.ErrorContains(t, err, "own znode lock-0000000001: ")
	assert.NotContains(t, err.Error(), "leave the queue", "there is nothing left to delete")
}

func TestNumbersAreComparedAndNotNames(t *testing.T) {
	t.Parallel()
	names := []string{"lock-9", "lock-0000000010", "notes", "lock-", "lock-x", "0000000000", "lock-0000000000-old"}
	for mine, want := range map[string]bool{"lock-9": true, "lock-0000000010": false} {
		if first, err := isFirst(names, mine); first != want || err != nil {
			t.Errorf("isFirst(%v, %s) = %v, %v; want %v", names, mine, first, err, want)
		}
	}
	if first, err := isFirst(names, "lock-0000000008"); first || !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("our own znode is not there; isFirst = %v, %v", first, err)
	}
}

// hold is the part of a process that takes the lock and keeps it.
func hold(servers, args []string) {
	conn, _, err := zk.Connect(servers, zktest.MortalTimeout, zk.WithLogger(log.New(io.Discard, "", 0)))
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

func TestKilledHolderFreesTheLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/lock"
	holder := z.Process("holder", path)
	session, err := strconv.ParseInt(holder.Line(), 10, 64)
	if owner, _ := z.Owner(path + "/lock-0000000000"); err != nil || owner != session {
		t.Fatalf("the process does not hold the lock: %v", err)
	}
	b := z.Client("B")
	waiting := z.Go(b, New(b.Conn, path).Lock)
	if how := waiting.Waits(); how != zktest.Polling {
		t.Fatalf("a process holds the lock, and B %v", how)
	}

	holder.Signal(syscall.SIGKILL)
	waiting.Acquired()
	z.Await("the killed process's session to be gone", func() bool {
		sessions, err := z.Sessions()
		return err == nil && !sessions[session]
	})
	if names := z.Names(path); len(names) != 1 || names[0] != "lock-0000000001" {
		t.Errorf("B has the lock, and in the queue stands %v", names)
	}
}

func FuzzNames(f *testing.F) { lockcheck.FuzzFirst(f, number, isFirst) }
