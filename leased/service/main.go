// Command service pays invoices. Two or more replicas of it run at the same time. Each one
// takes invoices over HTTP, and one of them, the leader, pays them. When the leader ends, crashes or
// is paused for too long, another one continues. No invoice is left out, and none is paid twice.
//
// README.md explains how to try it, and what to copy.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"zklock/leased"
)

func main() {
	if err := run(); err != nil {
		slog.Error("the service ends", "error", err)
		os.Exit(1)
	}
	slog.Info("the service has ended")
}

func run() error {
	host, _ := os.Hostname()
	name := flag.String("name", host, "the `name` of this replica")
	listen := flag.String("listen", "127.0.0.1:8081", "the `address` for HTTP")
	file := flag.String("store", "payments.db", "the `file` of the SQLite database")
	servers := flag.String("zookeeper", "127.0.0.1:2181", "the ZooKeeper `servers`, as host:port,host:port")
	path := flag.String("lock", "/locks/payments", "the `path` of the lock")
	timeout := flag.Duration("timeout", 12*time.Second, "the session's timeout: a crashed leader is replaced after it")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	store, err := openStore(ctx, *file)
	if err != nil {
		return err
	}
	defer store.close()

	session, err := leased.Open(ctx, strings.Split(*servers, ","), *timeout,
		leased.WithLabel(*name), leased.WithLogger(slog.Default()))
	if err != nil {
		return err
	}
	defer session.Close() // releases the lock, so that the next leader need not wait for the timeout

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	r := &replica{name: *name, session: session, election: leased.NewElection(session, *path), store: store}
	server := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(listener)
	slog.Info("serving", "address", listener.Addr().String(), "name", *name)

	r.compete(ctx)

	slog.Info("told to end")
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(patience) // lets the requests that have begun end
}
