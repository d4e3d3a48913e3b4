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

	"zklock/internal/lockcheck"
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
	if err := attempt.Err(); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("the waiter's session has expired, and its Lock answered %v", err)
	}
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
