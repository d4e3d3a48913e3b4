package leased_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"zklock/leased"

	"zklock/internal/check/zktest"
)

// open opens a session with the tests' server. A program of your own names its
// servers here.
func open() *leased.Session {
	session, err := leased.Open(zktest.Servers(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	return session
}

// tidy removes the examples' directories and ends the session.
func tidy(session *leased.Session) {
	for _, path := range []string{"/zklock-example-leased/orders", "/zklock-example-leased"} {
		_ = session.Conn().Delete(path, -1)
	}
	session.Close()
}

func Example() {
	session := open()
	defer tidy(session)

	lock := leased.New(session, "/zklock-example-leased/orders")
	held, err := lock.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one goroutine of one process at a time comes here")
	// Give held to whatever works under the lock: it ends when the lock is lost.
	if err := lock.Unlock(held); err != nil {
		log.Fatal(err)
	}
	// Output: one goroutine of one process at a time comes here
}

func Example_reentrant() {
	session := open()
	defer tidy(session)
	lock := leased.New(session, "/zklock-example-leased/orders")

	// audit locks for itself, for it is also called without the lock.
	audit := func(ctx context.Context) error {
		held, err := lock.Lock(ctx) // re-entry, if ctx holds the lock already
		if err != nil {
			return err
		}
		fmt.Println("audit")
		return lock.Unlock(held)
	}

	held, err := lock.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("order")
	err = audit(held)
	fmt.Println("done:", errors.Join(err, lock.Unlock(held)))
	// Output:
	// order
	// audit
	// done: <nil>
}

// store keeps one value and refuses whoever comes with an older token than the
// last one.
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

func ExampleToken() {
	session := open()
	defer tidy(session)
	lock := leased.New(session, "/zklock-example-leased/orders")
	var orders store

	held, err := lock.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	old, _ := leased.Token(held)
	fmt.Println("the first holder writes:", orders.write(old, "first"))
	_ = lock.Unlock(held)

	held, err = lock.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	token, _ := leased.Token(held)
	fmt.Println("the second holder writes:", orders.write(token, "second"))
	_ = lock.Unlock(held)

	fmt.Println("a late write of the first:", orders.write(old, "late"))
	fmt.Println("the store keeps:", orders.value)
	// Output:
	// the first holder writes: <nil>
	// the second holder writes: <nil>
	// a late write of the first: refused: somebody has had the lock since
	// the store keeps: second
}

func ExampleLock_TryLock() {
	first, second := open(), open()
	defer tidy(first)
	defer second.Close()

	holder := leased.New(first, "/zklock-example-leased/orders")
	held, err := holder.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}

	lock := leased.New(second, "/zklock-example-leased/orders")
	_, err = lock.TryLock(context.Background(), 50*time.Millisecond)
	fmt.Println("locked by somebody else:", errors.Is(err, leased.ErrLocked))

	_ = holder.Unlock(held)
	held, err = lock.TryLock(context.Background(), time.Minute)
	fmt.Println("in time:", err)
	_ = lock.Unlock(held)
	// Output:
	// locked by somebody else: true
	// in time: <nil>
}
