package predecessorwatch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"

	"zklock/internal/zktest"
)

// connect opens a session with the tests' server. A program of your own names
// its servers here.
func connect() *zk.Conn {
	server, err := zktest.Shared()
	if err != nil {
		log.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	conn, _, err := zk.Connect(server.Servers(), 10*time.Second, zk.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// tidy removes the example's directory and ends the session.
func tidy(conn *zk.Conn) {
	for _, path := range []string{"/zklock-example-04/orders", "/zklock-example-04"} {
		_ = conn.Delete(path, -1)
	}
	conn.Close()
}

func Example() {
	conn := connect()
	defer tidy(conn)

	lock := predecessorwatch.New(conn, "/zklock-example-04/orders")
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: one client at a time comes here
}

func ExampleLock_Lock_givingUp() {
	first, second := connect(), connect()
	defer tidy(first)
	defer second.Close()

	holder := predecessorwatch.New(first, "/zklock-example-04/orders")
	if err := holder.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer holder.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := predecessorwatch.New(second, "/zklock-example-04/orders").Lock(ctx)
	fmt.Println("gave up:", errors.Is(err, context.DeadlineExceeded))
	queue, _, _ := first.Children("/zklock-example-04/orders")
	fmt.Println("in the queue:", len(queue), "znode")
	// Output:
	// gave up: true
	// in the queue: 1 znode
}
