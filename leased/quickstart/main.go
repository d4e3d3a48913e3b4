// Command quickstart uses leased in three ways: pack works under a lock (Do), ship answers 409 while somebody else holds
// it (TryLock), and lead is for one process at a time (Campaign).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"zklock/leased"
)

func main() {
	servers := flag.String("zookeeper", "127.0.0.1:2181", "the ZooKeeper `servers`, as host:port,host:port")
	listen := flag.String("listen", "127.0.0.1:8080", "the `address` for HTTP")
	flag.Parse()
	if err := run(strings.Split(*servers, ","), *listen); err != nil {
		log.Fatal(err)
	}
}

// run returns after SIGTERM or an interrupt. Either ends ctx: then the work stops, the locks are released, and Close
// ends the session.
func run(servers []string, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	session, err := leased.Open(ctx, servers, 12*time.Second, leased.WithLogger(slog.Default()))
	if err != nil {
		return err
	}
	defer session.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}

	lock, orders := leased.NewMutex(session, "/locks/orders"), &store{}
	http.Handle("POST /ship", ship(lock, orders))
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(listener)
	fmt.Println("serving", listener.Addr())

	err = pack(ctx, lock, orders, tenSeconds)
	fmt.Println("packing has ended:", err)
	lead(ctx, session)

	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(patience) // lets the requests that have begun end
}

// locker is what pack and ship need of a lock: a *leased.Mutex has it, and a *leasedtest.Mutex.
type locker interface {
	Do(ctx context.Context, work func(ctx context.Context, hold *leased.Hold) error) error
	TryLock(ctx context.Context) (*leased.Hold, error)
}

// pack waits for the lock, and works under it.
func pack(ctx context.Context, lock locker, orders *store, work func(context.Context) error) error {
	return lock.Do(ctx, func(ctx context.Context, hold *leased.Hold) error {
		if err := work(ctx); err != nil {
			return err
		}
		return orders.write(ctx, hold.Token(), "packed")
	})
}

// tenSeconds stands for work. It returns early if ctx ends: at a signal, or when the lock is lost.
func tenSeconds(ctx context.Context) error {
	fmt.Println("packing for ten seconds")
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(10 * time.Second):
		return nil
	}
}

// ship answers 409 while somebody else, here or in another process, holds the lock.
func ship(lock locker, orders *store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second) // for TryLock and the work together
		defer cancel()
		hold, err := lock.TryLock(ctx)
		if errors.Is(err, leased.ErrLocked) {
			http.Error(w, "somebody else works on the orders", http.StatusConflict)
			return
		}
		if err == nil {
			defer unlock(hold)
			err = orders.write(hold.Context(ctx), hold.Token(), "shipped")
		}
		if err != nil {
			log.Print(err) // for you alone: it may name hosts, processes and paths
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		}
	}
}

// unlock waits for Unlock for a second at most. Then Unlock continues without it.
func unlock(hold *leased.Hold) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		if err := hold.Unlock(); err != nil {
			log.Print(err) // the answer to the request does not depend on it
		}
	}()
	select {
	case <-returned:
	case <-time.After(time.Second):
	}
}

// lead leads whenever it is this process's turn, until ctx ends or the session is closed.
func lead(ctx context.Context, session *leased.Session) {
	election := leased.NewElection(session, "/locks/payments")
	for ctx.Err() == nil {
		err := election.Campaign(ctx, func(ctx context.Context, token int64) error {
			fmt.Println("leading, with token", token)
			<-ctx.Done() // a signal, or the lead is lost
			return nil   // Campaign says whether it was lost
		})
		fmt.Println("Campaign has returned:", err)
		select {
		case <-ctx.Done():
		case <-session.Done():
			return
		case <-time.After(time.Second): // let another process lead before this one tries again
		}
	}
}

// store stands for your database: it refuses a token that is smaller than one that it has seen.
type store struct {
	mu    sync.Mutex
	token int64
	state string
}

func (s *store) write(ctx context.Context, token int64, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case token < s.token:
		return errors.New("refused: the store has seen a greater token")
	}
	s.token, s.state = token, state
	fmt.Printf("stored %q\n", state)
	return nil
}
