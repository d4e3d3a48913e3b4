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

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", hold)
	zktest.Main(m)
}

func TestProperties(t *testing.T) {
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
	if err := waiting.Err(); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("B's znode was deleted, and its Lock said: %v", err)
	}
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
