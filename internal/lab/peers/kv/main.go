// Command kv runs clients of a lock of another store: Redis or etcd. Each line of the input is a
// command, as for the clients of ZooKeeper: see package peers.
//
// Arguments: redis or etcd, the server's address, the lock's name, and the number of clients, each
// with a connection of its own.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// A contender acquires the lock and releases it.
type contender struct{ lock, unlock func(context.Context) error }

const expiry = 30 * time.Second // after this time, Redis or etcd's lease frees the lock of a crashed holder

func main() {
	if err := serve(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, kind, address, name, contenders string) error {
	n, err := strconv.Atoi(contenders)
	if err != nil {
		return err
	}
	all := make([]contender, n)
	for i := range all {
		if all[i], err = join(kind, address, name); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var ms int
		if _, err := fmt.Sscanf(lines.Text(), "run %d", &ms); err != nil {
			return fmt.Errorf("want run MILLISECONDS, not %q", lines.Text())
		}
		if err := run(ctx, all, time.Duration(ms)*time.Millisecond); err != nil {
			return err
		}
		fmt.Println(lines.Text() + ": done")
	}
	return nil
}

func join(kind, address, name string) (contender, error) {
	switch kind {
	case "redis":
		return setnx(address, name), nil
	case "etcd":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
		if err != nil {
			return contender{}, err
		}
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(expiry/time.Second)))
		if err != nil {
			return contender{}, err
		}
		m := concurrency.NewMutex(session, "/"+name)
		return contender{m.Lock, m.Unlock}, nil
	}
	return contender{}, fmt.Errorf("there is no lock %q", kind)
}

// setnx returns a client of the lock with which the course's documents compare ZooKeeper. It sends SET
// with NX and PX, retries every 100 ms, and releases the lock by a script that compares the value.
func setnx(address, name string) contender {
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: 1})
	mine := rand.Text()
	release := redis.NewScript(
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`,
	)
	return contender{
		func(ctx context.Context) error {
			for {
				ok, err := client.SetNX(ctx, name, mine, expiry).Result()
				if ok || err != nil {
					return err
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
		func(ctx context.Context) error { return release.Run(ctx, client, []string{name}, mine).Err() },
	}
}

// run lets each client take turns for the duration d, at least one, and prints each turn: the client,
// its begin and its end, in microseconds.
func run(ctx context.Context, all []contender, d time.Duration) error {
	var running sync.WaitGroup
	turns := make([][]time.Duration, len(all)) // when each turn ended
	errs := make([]error, len(all))
	begin := time.Now()
	for i, c := range all {
		running.Go(func() {
			for turns[i] == nil || time.Since(begin) < d {
				if errs[i] = c.lock(ctx); errs[i] == nil {
					errs[i] = c.unlock(ctx)
				}
				if errs[i] != nil {
					return
				}
				turns[i] = append(turns[i], time.Since(begin))
			}
		})
	}
	running.Wait()
	for i := range turns {
		var asked time.Duration
		for _, done := range turns[i] {
			fmt.Println("turn:", i, asked.Microseconds(), done.Microseconds())
			asked = done
		}
	}
	return errors.Join(errs...)
}
