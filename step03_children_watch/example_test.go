package childrenwatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	childrenwatch "zklock/step03_children_watch"
)

// It is used as step 2's lock is.
func Example() {
	// A program of your own names its servers in place of the tests'.
	conn, _, err := zk.Connect(zktest.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	lock := childrenwatch.New(conn, "/zklock-example-03")
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one client at a time comes here")
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	_ = conn.Delete("/zklock-example-03", -1) // the directory stays, as a rule
	// Output: one client at a time comes here
}
