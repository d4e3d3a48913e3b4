package sequentialspin_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	sequentialspin "zklock/step02_sequential_spin"
)

// connect opens a session with the tests' server. A program of your own names
// its servers here.
func connect() *zk.Conn {
	conn, _, err := zk.Connect(zktest.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// The second client gives up after a while, and leaves nothing in the queue.
func Example() {
	const path = "/zklock-example-02"
	first, second := connect(), connect()
	defer second.Close()
	defer first.Close()

	lock := sequentialspin.New(first, path)
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(sequentialspin.New(second, path).Lock(ctx))
	queue, _, _ := first.Children(path)
	fmt.Println("in the queue:", queue)
	fmt.Println("unlock:", lock.Unlock())
	_ = first.Delete(path, -1) // the directory stays, as a rule
	// Output:
	// one client at a time comes here
	// zklock: lock /zklock-example-02: context deadline exceeded
	// in the queue: [lock-0000000000]
	// unlock: <nil>
}
