package plainnode_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	plainnode "zklock/step01_plain_node"

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
	_ = conn.Delete("/zklock-example-01", -1)
	conn.Close()
}

func Example() {
	conn := connect()
	defer tidy(conn)

	lock := plainnode.NewEphemeral(conn, "/zklock-example-01/orders")
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: one client at a time comes here
}

// A deadline bounds the wait. The error says for which lock.
func ExampleLock_Lock_deadline() {
	first, second := connect(), connect()
	defer tidy(first)
	defer second.Close()

	held := plainnode.NewEphemeral(first, "/zklock-example-01/orders")
	if err := held.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(plainnode.NewEphemeral(second, "/zklock-example-01/orders").Lock(ctx))
	fmt.Println("unlock:", held.Unlock())
	// Output:
	// zklock: lock /zklock-example-01/orders: context deadline exceeded
	// unlock: <nil>
}
