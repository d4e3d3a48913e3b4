package predecessorwatch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) {
	t.Parallel()
	lock := lockcheck.Over("step 4", New)
	lockcheck.Holds(t, lock, lockcheck.OneHolder, lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger,
		lockcheck.GivingUp, lockcheck.Unrelated, lockcheck.WaiterCrash, lockcheck.SilentWait, lockcheck.NoWatchLeft,
		lockcheck.LongHold,
		lockcheck.WakesOne, lockcheck.ArrivalWakesNobody) // new in this step
	lockcheck.Fails(t, lock,
		lockcheck.LostCreateReply, lockcheck.LostDeleteReply, lockcheck.LocksAgain, lockcheck.ToldOfLoss,
		lockcheck.Fenced, lockcheck.Shared)
}

func TestMissingParentsAreMade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lock := New(z.Client("A").Conn, z.Root+"/shop/locks/orders")
	if err := errors.Join(lock.Lock(z.Ctx), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	if names := z.Names(z.Root + "/shop/locks"); len(names) != 1 || names[0] != "orders" {
		t.Errorf("below /shop/locks stands %v, want the lock's directory", names)
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
	assert.Equal(t, zktest.Silently, second.Waits(), "how A waits behind B")
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
	line := z.Line(1, join(z))
	for _, name := range z.Names(dir) {
		_, err := z.Observer().Set(dir+"/"+name, []byte("a note"), -1)
		require.NoError(t, err)
	}
	z.Settle(line[1]) // the waiter has looked again
	assert.ErrorIs(t, line[1].Cancel(), context.Canceled)
	assert.NoError(t, line[0].Unlock())
	assert.Empty(t, z.Names(dir), "the queue after one gave up and the other released")
}

// The connection is lost at a request of a waiter's: it leaves the queue, and
// says why.
func TestAnErrorEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, op := range []wiretap.Op{wiretap.GetChildren, wiretap.GetData} {
		z := zktest.New(t)
		holder, waiter := z.Client("the holder"), z.Client("the waiter")
		z.Go(holder, join(z)(holder).Lock).Acquired()
		waiter.Tap.LoseReply(op, 1)
		err := z.Go(waiter, join(z)(waiter).Lock).Err()
		assert.ErrorIs(t, err, zk.ErrConnectionClosed, "the reply to the waiter's %v was lost", op)
		assert.Len(t, z.Names(z.Root+"/lock"), 1, "the holder alone is in the queue")
	}
}

// A waiter gives up, and nobody knows what became of its znode.
func TestGivingUpSaysWhatMayBeLeft(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	waiter := z.Line(1, join(z))[1]
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

// A waiter sleeps on a channel. When its session ends, its znode and its watch
// are gone: no change of the queue would wake it any more, so the end must.
func TestSessionLostWhileWaiting(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := z.Client("the holder"), z.Mortal("the waiter")
	z.Go(holder, join(z)(holder).Lock).Acquired()
	attempt := z.Go(waiter, join(z)(waiter).Lock)
	if how := attempt.Waits(); how != zktest.Silently {
		t.Fatalf("the holder is inside, and the waiter %v", how)
	}

	waiter.Crash()
	z.AwaitExpiry(waiter)
	waiter.Tap.Restore()
	assert.EqualError(t, attempt.Err(), fmt.Sprintf("zklock: lock %s/lock: %v", z.Root, zk.ErrSessionExpired), "what Lock answers when the session has expired")
	if left := z.Names(z.Root + "/lock"); len(left) != 1 {
		t.Errorf("the waiter's session has expired: want the holder's znode alone, not %v", left)
	}
}

// A connection breaks, the session lives on. What happened meanwhile is told
// when the client is back: it sends its watches to the server again.
func TestReleaseWhileDisconnected(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := z.Line(1, join(z))
	holder, waiter := line[0], line[1]
	waiter.Tap.Cut()
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	waiter.Tap.Restore()
	waiter.Acquired()
	if id := waiter.SessionID(); id != waiter.ID {
		t.Errorf("the waiter was let in with session %#x instead of %#x", id, waiter.ID)
	}
}

// FuzzNames puts a znode with a number among names of anybody's.
func FuzzNames(f *testing.F) {
	f.Add("", int32(0))
	f.Add("lock-0000000001/lock-0000000003/lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add("lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(-1))
	f.Add("lock-/lock-x/lock-+1/_c_0-lock-0000000000/lock-٣", int32(7))
	ofTheQueue := regexp.MustCompile(`^lock-[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, names string, own int32) {
		mine, others := fmt.Sprintf("lock-%010d", own), strings.Split(names, "/")
		if n, ok := number(mine); n != int(own) || !ok {
			t.Errorf("the number of %s is %d, %v", mine, n, ok)
		}
		for _, name := range others {
			if n, ok := number(name); ok != ofTheQueue.MatchString(name) && len(name) < len("lock-+")+18 {
				t.Errorf("the number of %q is %d, %v", name, n, ok)
			}
		}
		if before, err := predecessor(others, mine); !slices.Contains(others, mine) && (before != "" || !errors.Is(err, zk.ErrNoNode)) {
			t.Errorf("%s is not among %q: %q, %v", mine, others, before, err)
		}
		for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
			if before, err := predecessor(list, mine); err != nil || !lockcheck.IsBefore(number, before, others, int(own)) {
				t.Errorf("before %s in %q stands %q, %v", mine, list, before, err)
			}
		}
	})
}
