package predecessorwatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// orders is the lock's directory. A program of your own has something like /locks/orders.
const orders = "/zklock-example-04"

func nextOrder() int { return 17 }

func ship(order int) { fmt.Println("order", order, "is shipped, by one worker at a time") }

// It is used as step 2's lock is.
func Example() {
	ctx := context.Background()
	// A program of your own names its servers in place of the tests'.
	conn, _, err := zk.Connect(zktest.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	lock := predecessorwatch.New(conn, orders)
	if err := lock.Lock(ctx); err != nil { // waits for its turn
		log.Fatal(err)
	}
	ship(nextOrder()) // asks only now, with the lock, which order is next
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	_ = conn.Delete(orders, -1) // the directory stays, as a rule
	// Output: order 17 is shipped, by one worker at a time
}
