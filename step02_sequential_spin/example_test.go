package sequentialspin_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	sequentialspin "zklock/step02_sequential_spin"

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

// tidy removes the example's directories and ends the session.
func tidy(conn *zk.Conn) {
	for _, path := range []string{"/zklock-example-02/orders", "/zklock-example-02"} {
		_ = conn.Delete(path, -1)
	}
	conn.Close()
}

func Example() {
	conn := connect()
	defer tidy(conn)

	lock := sequentialspin.New(conn, "/zklock-example-02/orders")
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: one client at a time comes here
}

// A deadline bounds the wait. The error says for which lock, and the place in
// the queue is given up.
func ExampleLock_Lock_deadline() {
	first, second := connect(), connect()
	defer tidy(first)
	defer second.Close()

	held := sequentialspin.New(first, "/zklock-example-02/orders")
	if err := held.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(sequentialspin.New(second, "/zklock-example-02/orders").Lock(ctx))
	queue, _, _ := first.Children("/zklock-example-02/orders")
	fmt.Println("in the queue:", queue)
	fmt.Println("unlock:", held.Unlock())
	// Output:
	// zklock: lock /zklock-example-02/orders: context deadline exceeded
	// in the queue: [lock-0000000000]
	// unlock: <nil>
}
