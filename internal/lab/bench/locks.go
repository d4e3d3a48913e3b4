package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lab/locks"
	"zklock/internal/lab/peers"
	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/internal/zktest"
)

// A rival is a lock that is compared with zk.Lock.
type rival struct {
	name      string
	bring     bring
	elsewhere bool // it is not on ZooKeeper, so its messages are not counted
}

// A bring lets n contenders join a new lock on a server.
type bring func(s stage, z *zktest.Zoo, server string, n int) runner

// A runner lets the contenders take turns for d, each at least one.
type runner func(d time.Duration) ([]peers.Turn, error)

// ours are the locks in Go on ZooKeeper. All locks are compared with the first one.
var ours = []rival{
	here("zk.Lock", steps.Client),
	here("zk.Lock, once more", steps.Client), // its difference from the first one is noise
	here("step 1", locks.Of("1")),
	here("step 2", locks.Of("2")),
	here("step 3", locks.Of("3")),
	here("step 4", locks.Of("4")),
	here("step 5", locks.Of("5")),
	here("step 6, as a writer", locks.Of("6")),
	here("leased.Mutex", locks.Mutex),
	here("leased.RWMutex, as a writer", locks.RWMutex),
	{name: "leased.Cohort, in one process", bring: inOneProcess(locks.Cohort)},
}

// here returns a lock whose contenders are in this process, each with a session of its own.
func here(name string, lock property.Subject) rival {
	return rival{name: name, bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
		path := newPath(s, z)
		var turns []turn
		for i := range n {
			turns = append(turns, turnOf(join(z, lock, server, path, i).Way))
		}
		return func(d time.Duration) ([]peers.Turn, error) { return takeTurns(turns, d) }
	}}
}

// inOneProcess returns a bring whose contenders share one lock, as goroutines of one process do.
func inOneProcess(lock property.Subject) bring {
	return func(s stage, z *zktest.Zoo, server string, n int) runner {
		shared := turnOf(join(z, lock, server, newPath(s, z), 0).Way)
		var turns []turn
		for range n {
			turns = append(turns, shared)
		}
		return func(d time.Duration) ([]peers.Turn, error) { return takeTurns(turns, d) }
	}
}

// join lets a contender join a lock through the server at this address.
func join(z *zktest.Zoo, lock property.Subject, server, path string, i int) *zktest.Member {
	seat := property.Seat{Path: path, Through: func(dial zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) { return dial(network, server, limit) }
	}}
	return lock.JoinAs(z, fmt.Sprintf("contender %d", i+1), seat)
}

// turnOf returns a turn that calls the Lock of a way, and then the Unlock of the hold.
func turnOf(way zktest.Way) turn {
	return func() error {
		held, err := way.Lock(context.Background())
		if err != nil {
			return err
		}
		return held.Unlock()
	}
}

// newPath returns a path for a new lock, at which nothing exists yet.
func newPath(s stage, z *zktest.Zoo) string {
	parent := fmt.Sprintf("%s/%08x", z.Root, rand.Uint32()) // all of one length, because bytes are counted
	_, err := z.Observer().Create(parent, nil, 0, zk.WorldACL(zk.PermAll))
	s.must(err)
	return parent + "/lock"
}

// others returns the locks of other projects whose programs are on this machine. It also says which
// are missing.
func (s stage) others() (rivals []rival, missing []string) {
	const install = "%s are not installed: %v"
	if err := peers.Missing(); err != nil {
		missing = append(missing, fmt.Sprintf(install, "Curator and kazoo", err))
	} else {
		rivals = append(rivals,
			rival{name: "Curator's mutex", bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
				return peers.Curator(z, s.T, server, "mutex", newPath(s, z), n).Run
			}},
			rival{name: "kazoo's Lock", bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
				return peers.Kazoo(z, s.T, server, peers.OurNames, newPath(s, z), n).Run
			}})
	}
	if err := peers.MissingStores(); err != nil {
		return rivals, append(missing, fmt.Sprintf(install, "Redis and etcd", err))
	}
	dir, err := os.MkdirTemp("", "zklock-kv")
	s.must(err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	program := dir + "/kv"
	if err := peers.BuildKV(s.ctx, program); err != nil {
		return rivals, append(missing, fmt.Sprintf("Redis and etcd: %v", err))
	}
	kv := func(name, kind, address string) rival {
		return rival{name, func(s stage, z *zktest.Zoo, _ string, n int) runner {
			return peers.KV(z, s.T, program, kind, address, strings.TrimPrefix(newPath(s, z), "/"), n).Run
		}, true}
	}
	return append(rivals,
		kv("Redis, `SET NX` every 100 ms, fsync always", "redis", peers.StartRedis(s.ctx, s.T, "always")),
		kv("Redis, the same, fsync once a second", "redis", peers.StartRedis(s.ctx, s.T, "everysec")),
		kv("etcd", "etcd", peers.StartEtcd(s.ctx, s.T))), missing
}
