package lockcheck

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// BadInput tests that a lock answers what cannot work with an error that names
// the path and says what to do, and that it leaves nothing at the server.
// notHeld is what Unlock has to say to a client that does not hold the lock.
func BadInput[L Locker](t *testing.T, newLock func(*zk.Conn, string) L, notHeld string) {
	bad := func(name string, try func(t *testing.T, z *zktest.Zoo)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			try(t, z)
			if left := z.Names(z.Root); len(left) > 0 {
				t.Errorf("left at the server: %v", left)
			}
		})
	}

	bad("no connection", func(t *testing.T, z *zktest.Zoo) {
		says(t, newLock(nil, z.Root+"/lock").Lock(z.Ctx), nil, "the connection is nil", "zk.Connect")
	})
	bad("a path that is none", func(t *testing.T, z *zktest.Zoo) {
		c := z.Client("A")
		before := c.Tap.Mark()
		for _, path := range []string{"", "/", "locks/orders", "/locks/", "//locks", "/locks//orders", "/locks/../orders"} {
			says(t, newLock(c.Conn, path).Lock(z.Ctx), nil, strconv.Quote(path), "absolute path below the root, such as /")
			says(t, newLock(c.Conn, path).Unlock(), nil)
		}
		sentNothing(t, c, before)
	})
	bad("a context that has ended", func(t *testing.T, z *zktest.Zoo) {
		c := z.Client("A")
		before := c.Tap.Mark()
		cancelled, cancel := context.WithCancel(z.Ctx)
		cancel()
		says(t, newLock(c.Conn, z.Root+"/lock").Lock(cancelled), context.Canceled, z.Root+"/lock")
		late, cancel := context.WithDeadline(z.Ctx, time.Now())
		defer cancel()
		says(t, newLock(c.Conn, z.Root+"/lock").Lock(late), context.DeadlineExceeded, z.Root+"/lock")
		sentNothing(t, c, before)
	})
	bad("an Unlock without a Lock", func(t *testing.T, z *zktest.Zoo) {
		says(t, newLock(z.Client("A").Conn, z.Root+"/lock").Unlock(), nil, z.Root+"/lock", notHeld)
	})
	bad("an Unlock too many", func(t *testing.T, z *zktest.Zoo) {
		lock := newLock(z.Client("A").Conn, z.Root+"/lock")
		if err := errors.Join(lock.Lock(z.Ctx), lock.Unlock()); err != nil {
			t.Fatal(err)
		}
		says(t, lock.Unlock(), nil, z.Root+"/lock", notHeld)
		_ = z.Observer().Delete(z.Root+"/lock", -1) // the queue's directory, which stays
	})
	bad("a closed session", func(t *testing.T, z *zktest.Zoo) {
		c := z.Client("A")
		c.Close()
		says(t, newLock(c.Conn, z.Root+"/lock").Lock(z.Ctx), zk.ErrConnectionClosed, z.Root+"/lock")
	})
	bad("no permission", func(t *testing.T, z *zktest.Zoo) {
		path := z.Root + "/private"
		acl := append(zk.DigestACL(zk.PermAll, "owner", "secret"), zk.WorldACL(zk.PermRead)...)
		if _, err := z.Observer().Create(path, nil, 0, acl); err != nil {
			t.Fatal(err)
		}
		says(t, newLock(z.Client("A").Conn, path+"/lock").Lock(z.Ctx), zk.ErrNoAuth, path, "permission", "AddAuth")
		if left := z.Names(path); len(left) > 0 {
			t.Errorf("left at the server: %v", left)
		}
		_ = z.Observer().Delete(path, -1)
	})
	bad("a parent that can have no children", func(t *testing.T, z *zktest.Zoo) {
		path := z.Root + "/session"
		if _, err := z.Observer().Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		says(t, newLock(z.Client("A").Conn, path+"/lock").Lock(z.Ctx), zk.ErrNoChildrenForEphemerals, path+"/lock", "ephemeral")
		_ = z.Observer().Delete(path, -1)
	})
	bad("a server that is not there", func(t *testing.T, z *zktest.Zoo) {
		port, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port.Close() // nobody listens there now
		conn, _, err := zk.Connect([]string{port.Addr().String()}, time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		says(t, newLock(conn, z.Root+"/lock").Lock(z.Ctx), zk.ErrNoServer, z.Root+"/lock", "is the address right", "does ZooKeeper run")
	})
}

// says fails the test unless err is an error of the kind wanted, if any, and
// holds all the words.
func says(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one that says %q", words)
		return
	}
	if want != nil && !errors.Is(err, want) {
		t.Errorf("%v: want this to be a %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// sentNothing fails the test if the client has asked the server for something.
func sentNothing(t *testing.T, c *zktest.Client, since int) {
	t.Helper()
	if sent := wiretap.Count(c.Tap.Since(since)); sent.All() > 0 {
		t.Errorf("requests were sent: %v", sent.Requests)
	}
}
