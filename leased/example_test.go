package leased_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"zklock/leased"

	"zklock/internal/zktest"
)

// store stands for your database: it refuses a token that is smaller than one that it has seen.
type store struct {
	token int64
	state string
}

func (s *store) write(ctx context.Context, token int64, state string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case token < s.token:
		return errors.New("refused: the store has seen a greater token")
	}
	s.token, s.state = token, state
	fmt.Printf("stored %q\n", state)
	return nil
}

// open opens a session with the tests' server. In your own program, name your servers here.
func open(options ...leased.Option) *leased.Session {
	session, err := leased.Open(context.Background(), zktest.Servers(), 10*time.Second, options...)
	if err != nil {
		log.Fatal(err)
	}
	return session
}

func Example() {
	session := open()
	defer session.Close()
	lock := leased.NewMutex(session, "/locks/orders")
	var orders store

	err := lock.Do(context.Background(), func(ctx context.Context, hold *leased.Hold) error {
		return orders.write(ctx, hold.Token(), "shipped")
	})
	fmt.Println("done:", err)
	// Output:
	// stored "shipped"
	// done: <nil>
}

// ship waits for the lock for five seconds at most, and then works as long as ctx and the hold last.
func ship(ctx context.Context, lock *leased.Mutex, orders *store) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second) // bounds only the wait
	defer cancel()
	hold, err := lock.Lock(wait)
	if err != nil {
		return err
	}
	defer hold.Unlock()       // a real program logs its error
	work := hold.Context(ctx) // ctx, not wait: otherwise the work ends at wait's deadline
	return orders.write(work, hold.Token(), "shipped")
}

func ExampleMutex_Lock() {
	session := open()
	defer session.Close()
	lock := leased.NewMutex(session, "/locks/orders")
	var orders store

	fmt.Println("done:", ship(context.Background(), lock, &orders))
	// Output:
	// stored "shipped"
	// done: <nil>
}

func ExampleHold_Context() {
	session := open()
	defer session.Close()
	lock := leased.NewMutex(session, "/locks/orders")

	// audit locks by itself, because it is also called without the lock.
	audit := func(ctx context.Context) error {
		hold, err := lock.Lock(ctx) // re-entry, if ctx is a hold's
		if err != nil {
			return err
		}
		fmt.Println("audit")
		return hold.Unlock()
	}

	ctx := context.Background()
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("order")
	err = audit(hold.Context(ctx))
	fmt.Println("done:", errors.Join(err, hold.Unlock()))
	// Output:
	// order
	// audit
	// done: <nil>
}

func ExampleHold_Token() {
	session := open()
	defer session.Close()
	lock := leased.NewMutex(session, "/locks/orders")
	var orders store

	ctx := context.Background()
	first, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_ = orders.write(ctx, first.Token(), "first")
	_ = first.Unlock()

	second, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_ = orders.write(ctx, second.Token(), "second")
	_ = second.Unlock()

	fmt.Println("a late write of the first:", orders.write(ctx, first.Token(), "late"))
	fmt.Println("the store keeps:", orders.state)
	// Output:
	// stored "first"
	// stored "second"
	// a late write of the first: refused: the store has seen a greater token
	// the store keeps: second
}

func ExampleMutex_TryLock() {
	one, other := open(), open()
	defer one.Close()
	defer other.Close()

	ctx := context.Background()
	hold, err := leased.NewMutex(one, "/locks/orders").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	lock := leased.NewMutex(other, "/locks/orders")
	_, err = lock.TryLock(ctx)
	fmt.Println("somebody holds it:", errors.Is(err, leased.ErrLocked))

	_ = hold.Unlock()
	hold, err = lock.TryLock(ctx)
	fmt.Println("nobody holds it:", err)
	_ = hold.Unlock()
	// Output:
	// somebody holds it: true
	// nobody holds it: <nil>
}

func ExampleLockedError() {
	one, other := open(leased.WithLabel("packer")), open()
	defer one.Close()
	defer other.Close()

	ctx := context.Background()
	hold, err := leased.NewMutex(one, "/locks/orders").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}

	_, err = leased.NewMutex(other, "/locks/orders").TryLock(ctx)
	var locked *leased.LockedError
	if errors.As(err, &locked) {
		fmt.Printf("locked by %q, in this process: %t\n", locked.Label, locked.SameProcess)
	}
	_ = hold.Unlock()
	// Output:
	// locked by "packer", in this process: false
}

func ExampleElection() {
	session := open()
	defer session.Close()
	election := leased.NewElection(session, "/locks/payments")

	ctx, stop := context.WithCancel(context.Background()) // SIGTERM in a service
	err := election.Campaign(ctx, func(ctx context.Context, token int64) error {
		fmt.Println("leads, with a token:", token > 0)
		stop()
		<-ctx.Done() // it is asked to end, or the leadership is lost
		return nil
	})
	fmt.Println("Campaign has returned:", err)
	// Output:
	// leads, with a token: true
	// Campaign has returned: <nil>
}
