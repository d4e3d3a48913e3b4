package plainnode_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
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

// A deadline bounds the second client's wait. The error says for which lock.
func Example() {
	const path = "/zklock-example-01"
	first, second := connect(), connect()
	defer second.Close()
	defer first.Close()

	lock := plainnode.NewEphemeral(first, path)
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(plainnode.NewEphemeral(second, path).Lock(ctx))
	fmt.Println("unlock:", lock.Unlock())
	// Output:
	// one client at a time comes here
	// zklock: lock /zklock-example-01: context deadline exceeded
	// unlock: <nil>
}
