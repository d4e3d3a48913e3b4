package sharedlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"zklock/internal/zktest"
	sharedlock "zklock/step06_shared_lock"
)

// open opens a session with the tests' server. A program of your own names its
// servers here.
func open() *sharedlock.Session {
	session, err := sharedlock.Open(zktest.Servers(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	return session
}

// tidy removes the example's directory and ends the session.
func tidy(session *sharedlock.Session) {
	for _, path := range []string{"/zklock-example-06/prices", "/zklock-example-06"} {
		_ = session.Conn().Delete(path, -1)
	}
	session.Close()
}

func Example() {
	session := open()
	defer tidy(session)
	ctx := context.Background()
	lock := sharedlock.New(session, "/zklock-example-06/prices")

	first, err := lock.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// For the example, one program reads twice. A writer that queued up in between would wait
	// for the first hold, and the second RLock for the writer.
	second, err := lock.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("two readers hold the lock")
	if err := errors.Join(first.Unlock(), second.Unlock()); err != nil {
		log.Fatal(err)
	}

	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one writer holds the lock")
	if err := hold.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// two readers hold the lock
	// one writer holds the lock
}

func ExampleRWLock_TryLock() {
	session := open()
	defer tidy(session)
	ctx := context.Background()
	lock := sharedlock.New(session, "/zklock-example-06/prices")

	reading, err := lock.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer reading.Unlock()

	_, err = lock.TryLock(ctx)
	fmt.Println("a writer:", errors.Is(err, sharedlock.ErrLocked))
	_, err = lock.TryLock(reading.Context(ctx))
	fmt.Println("the reader itself:", errors.Is(err, sharedlock.ErrUpgrade))
	// Output:
	// a writer: true
	// the reader itself: true
}

// A writer may read within its hold. The lock stays exclusive until the last Unlock.
func ExampleRWLock_RLock_insideLock() {
	session := open()
	defer tidy(session)
	ctx := context.Background()
	lock := sharedlock.New(session, "/zklock-example-06/prices")

	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	inside, err := lock.RLock(hold.Context(ctx))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first Unlock:", hold.Unlock())
	_, err = lock.TryRLock(ctx)
	fmt.Println("another reader:", errors.Is(err, sharedlock.ErrLocked))
	fmt.Println("the last Unlock:", inside.Unlock())
	// Output:
	// the first Unlock: <nil>
	// another reader: true
	// the last Unlock: <nil>
}
