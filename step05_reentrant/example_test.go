package reentrant_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	reentrant "zklock/step05_reentrant"

	"zklock/internal/zktest"
)

// open opens a session with the tests' server. A program of your own names its
// servers here.
func open() *reentrant.Session {
	session, err := reentrant.Open(zktest.Servers(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	return session
}

// tidy removes the examples' directories and ends the session.
func tidy(session *reentrant.Session) {
	for _, path := range []string{"/zklock-example-05/orders", "/zklock-example-05"} {
		_ = session.Conn().Delete(path, -1)
	}
	session.Close()
}

func Example() {
	session := open()
	defer tidy(session)
	ctx := context.Background()

	lock := reentrant.New(session, "/zklock-example-05/orders")
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one goroutine of one process at a time comes here")
	// Give hold.Context(ctx) to whatever works under the lock: it ends when the lock is lost.
	if err := hold.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: one goroutine of one process at a time comes here
}

func Example_reentrant() {
	session := open()
	defer tidy(session)
	lock := reentrant.New(session, "/zklock-example-05/orders")

	// audit takes the lock itself, because it is also called without the lock.
	audit := func(ctx context.Context) error {
		hold, err := lock.Lock(ctx) // re-entry, if ctx is of a hold
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

// store keeps one value and refuses a write whose token is smaller than the last
// one.
type store struct {
	newest int64
	value  string
}

func (s *store) write(token int64, value string) error {
	if token < s.newest {
		return errors.New("refused: somebody has had the lock since")
	}
	s.newest, s.value = token, value
	return nil
}

func ExampleHold_Token() {
	session := open()
	defer tidy(session)
	ctx := context.Background()
	lock := reentrant.New(session, "/zklock-example-05/orders")
	var orders store

	first, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first holder writes:", orders.write(first.Token(), "first"))
	_ = first.Unlock()

	second, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second holder writes:", orders.write(second.Token(), "second"))
	_ = second.Unlock()

	fmt.Println("a late write of the first:", orders.write(first.Token(), "late"))
	fmt.Println("the store keeps:", orders.value)
	// Output:
	// the first holder writes: <nil>
	// the second holder writes: <nil>
	// a late write of the first: refused: somebody has had the lock since
	// the store keeps: second
}

func ExampleLock_TryLock() {
	session := open()
	defer tidy(session)
	ctx := context.Background()
	lock := reentrant.New(session, "/zklock-example-05/orders")

	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryLock(ctx)
	fmt.Println("held by another:", errors.Is(err, reentrant.ErrLocked))

	waiting, stop := context.WithTimeout(ctx, 50*time.Millisecond) // to wait, but no longer than this
	defer stop()
	_, err = lock.Lock(waiting)
	fmt.Println("not in time:", errors.Is(err, context.DeadlineExceeded))

	_ = hold.Unlock()
	hold, err = lock.TryLock(ctx)
	fmt.Println("free:", err)
	_ = hold.Unlock()
	// Output:
	// held by another: true
	// not in time: true
	// free: <nil>
}
