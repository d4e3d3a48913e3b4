package leasedtest_test

import (
	"context"
	"errors"
	"fmt"

	"zklock/leased"
	"zklock/leased/leasedtest"
)

// locker is what ship needs of a lock. The program gives it a *leased.Mutex, and its unit tests a
// *leasedtest.Mutex.
type locker interface {
	Do(context.Context, func(ctx context.Context, hold *leased.Hold) error) error
}

var (
	_ locker = (*leased.Mutex)(nil)
	_ locker = (*leasedtest.Mutex)(nil)
)

// ship is the code under test: two writes, which only one process may make at a time.
func ship(ctx context.Context, lock locker, write func(order string, token int64)) error {
	return lock.Do(ctx, func(ctx context.Context, hold *leased.Hold) error {
		for _, order := range []string{"first", "second"} {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			write(order, hold.Token())
		}
		return nil
	})
}

func Example() {
	var servers leasedtest.Servers
	session := servers.Open("orders")
	lock := leasedtest.NewMutex(session, "/locks/orders")

	// The lock is lost after the first write: the second one must not be made.
	err := ship(context.Background(), lock, func(order string, _ int64) {
		fmt.Println("wrote the", order)
		session.Lose(leased.ReasonLeaseOver)
	})
	var lost *leased.LostError
	fmt.Println("lost:", errors.As(err, &lost) && lost.Reason == leased.ReasonLeaseOver)

	// In any case ship has called Unlock.
	_, err = lock.TryLock(context.Background())
	fmt.Println("the lock is free:", err == nil)
	// Output:
	// wrote the first
	// lost: true
	// the lock is free: true
}

// Another process is another session of the same Servers.
func ExampleServers_Open() {
	var servers leasedtest.Servers
	here, there := servers.Open("here"), servers.Open("there")

	ctx := context.Background()
	if _, err := leasedtest.NewMutex(there, "/locks/orders").Lock(ctx); err != nil {
		fmt.Println(err)
	}
	_, err := leasedtest.NewMutex(here, "/locks/orders").TryLock(ctx)
	fmt.Println(err)

	there.Lose(leased.ReasonExpired)
	_, err = leasedtest.NewMutex(here, "/locks/orders").TryLock(ctx)
	fmt.Println(err)
	// Output:
	// leased: lock /locks/orders: another caller holds the lock, or is queued before this one: _c_0000000000000001-lock-0000000001, whose label is "there"
	// <nil>
}
