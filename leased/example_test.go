package leased_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"zklock/leased"

	"zklock/internal/zktest"
)

// run is the body of a service's main function. SIGTERM or an interrupt ends ctx: then ship unlocks and
// returns, and Close ends the session.
func run(servers []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	session, err := leased.Open(ctx, servers, 12*time.Second)
	if err != nil {
		return err
	}
	defer session.Close()
	return ship(ctx, leased.NewMutex(session, "/locks/orders"), &store{})
}

// ship does the work that only one process may do at a time.
func ship(ctx context.Context, lock *leased.Mutex, orders *store) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	return orders.write(hold.Context(ctx), hold.Token(), "shipped")
}

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

func Example() {
	if err := run(zktest.Servers()); err != nil {
		log.Fatal(err)
	}
	// Output: stored "shipped"
}

// open opens a session with the tests' server. In your own program, name your servers here.
func open() *leased.Session {
	session, err := leased.Open(context.Background(), zktest.Servers(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	return session
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

// leadPayments leads whenever it is this process's turn, until ctx ends or the session is closed.
func leadPayments(ctx context.Context, session *leased.Session, payAll func(context.Context, int64) error) {
	election := leased.NewElection(session, "/locks/payments")
	for ctx.Err() == nil {
		err := election.Campaign(ctx, payAll) // payAll returns when its context ends
		fmt.Println("Campaign has returned:", err)
		select {
		case <-ctx.Done():
		case <-session.Done():
			return
		case <-time.After(time.Second): // let another process lead before this one tries again
		}
	}
}

func ExampleElection() {
	session := open()
	defer session.Close()
	ctx, stop := context.WithCancel(context.Background()) // SIGTERM in a service
	leadPayments(ctx, session, func(ctx context.Context, token int64) error {
		fmt.Println("leads, with a token:", token > 0)
		stop()
		<-ctx.Done() // it is asked to end, or the leadership is lost
		return nil
	})
	// Output:
	// leads, with a token: true
	// Campaign has returned: <nil>
}

// publish writes a plan. Then it reads the plan as a reader. No writer can change the plan in between.
func publish(
	ctx context.Context, lock *leased.RWMutex, write, read func(ctx context.Context, token int64) error,
) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }() // after Downgrade, this unlocks the reader's hold
	if err := write(hold.Context(ctx), hold.Token()); err != nil {
		return err
	}
	reader, err := lock.Downgrade(ctx, hold)
	if err != nil {
		return err // if Downgrade has released the lock, the deferred Unlock adds ErrNotHeld
	}
	hold = reader
	return read(hold.Context(ctx), hold.Token()) // a new context, because the contexts of the writer's hold have ended
}

func ExampleRWMutex_Downgrade() {
	session := open()
	defer session.Close()
	var tokenOfWriter int64
	write := func(_ context.Context, token int64) error {
		fmt.Println("writes")
		tokenOfWriter = token
		return nil
	}
	read := func(ctx context.Context, token int64) error {
		fmt.Println("reads, with the same token:", token == tokenOfWriter)
		return ctx.Err()
	}
	fmt.Println("done:", publish(context.Background(), leased.NewRWMutex(session, "/locks/plan"), write, read))
	// Output:
	// writes
	// reads, with the same token: true
	// done: <nil>
}
