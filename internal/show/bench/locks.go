package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/process"
	"zklock/internal/show/peers"
	plainnode "zklock/step01_plain_node"
)

// A rival is somebody's lock beside zk.Lock.
type rival struct {
	name  string
	bring bring
	at    *peers.Store // nil: at ZooKeeper
}

// A bring brings n contenders to a lock of their own on a server.
type bring func(s stage, z *zktest.Zoo, server string, n int) runner

// A runner lets the contenders take turns for a while, each at least one.
type runner func(d time.Duration) ([]peers.Turn, error)

// The locks of this package, and step 1's on a znode in the directory that all get.
var (
	behindMutex = property.Over("zk.Lock behind a mutex", newMutexed)
	noLock      = property.Over("create and delete alone", newBare)
	looksEarly  = property.Over("step 4, looks one release early", newEarly)
	step1       = property.Over(
		"step 1",
		func(c *zk.Conn, dir string) *plainnode.Lock { return plainnode.NewEphemeral(c, dir+"/lock") },
	)
	step1w = property.Over(
		"step 1w",
		func(c *zk.Conn, dir string) *plainnode.Lock { return plainnode.NewWatched(c, dir+"/lock") },
	)
)

// apart have a session for each that wants the lock.
var apart = []rival{
	here("zk.Lock", steps.Client, alone),
	here("create and delete alone", noLock, alone),
	here("step 4", steps.Of("4"), alone),
	here("zk.Lock, once more", steps.Client, alone), // what it differs by is noise
	here("step 4, looks one release early", looksEarly, alone),
	here("step 5", steps.Of("5"), alone),
	here("step 5, able to give up", steps.Of("5"), ableToGiveUp),
	here("step 6, as a writer", steps.Of("6"), alone),
}

// together are the ways in which the goroutines of one process can share one
// session.
var together = []rival{
	here("zk.Lock for each", steps.Client, onOneSession),
	here("zk.Lock behind a mutex", behindMutex, withOneLock),
	here("step 5, a Lock for each", steps.Of("5"), onOneSession),
	here("step 5, a Cohort", steps.Cohort, withOneLock),
}

// ours are the locks that need nothing but ZooKeeper.
var ours = []rival{
	here("zk.Lock", steps.Client, alone),
	here("zk.Lock, once more", steps.Client, alone),
	here("step 1", step1, alone),
	here("step 1, waiters watch", step1w, alone),
	here("step 2", steps.Of("2"), alone),
	here("step 3", steps.Of("3"), alone),
	here("step 4", steps.Of("4"), alone),
	here("step 4, looks one release early", looksEarly, alone),
	here("step 5", steps.Of("5"), alone),
	here("step 5, Cohort in 1 process", steps.Cohort, withOneLock),
	{name: "step 5, Cohorts in 4 processes", bring: cohorts},
	here("step 6, as a writer", steps.Of("6"), alone),
}

// others are the locks whose programs are on this machine. It tells which are missing.
func (s stage) others() (rivals []rival, missing []string) {
	if err := peers.Missing(); err != nil {
		missing = append(missing, fmt.Sprintf("Curator and kazoo: make peers, or %v", err))
	} else {
		rivals = append(rivals,
			rival{name: "Curator's mutex", bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
				return peers.Curator(z, s.T, server, "mutex", newDirectory(s, z), n).Run
			}},
			rival{name: "kazoo's Lock", bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
				return peers.Kazoo(z, s.T, server, newDirectory(s, z), n).Run
			}})
	}
	if err := peers.MissingStores(); err != nil {
		return rivals, append(missing, fmt.Sprintf("Redis and etcd: make peers, or %v", err))
	}
	dir, err := os.MkdirTemp("", "zklock-kv")
	s.must(err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	program := dir + "/kv"
	if err := peers.BuildKV(s.ctx, program); err != nil {
		return rivals, append(missing, fmt.Sprintf("Redis and etcd: %v", err))
	}
	kv := func(name, kind string, store *peers.Store) rival {
		return rival{name, func(s stage, z *zktest.Zoo, _ string, n int) runner {
			return peers.KV(z, s.T, program, kind, store.Address, strings.TrimPrefix(newDirectory(s, z), "/"), n).Run
		}, store}
	}
	always, everysec := peers.StartRedis(s.ctx, s.T, "always"), peers.StartRedis(s.ctx, s.T, "everysec")
	return append(rivals,
		kv("Redis, SET NX, 100 ms, fsync always", "setnx-100ms", always),
		kv("Redis, SET NX, 100 ms, everysec", "setnx-100ms", everysec),
		kv("Redis, SET NX, 1 ms, fsync always", "setnx-1ms", always),
		kv("redsync, fsync always", "redsync", always),
		kv("redsync, everysec", "redsync", everysec),
		kv("etcd", "etcd", peers.StartEtcd(s.ctx, s.T))), missing
}

// manner is how contenders of this process come to a lock.
type manner int

const (
	alone        manner = iota // each with a session of its own
	ableToGiveUp               // and with a context that can be cancelled
	onOneSession               // all on one, each with a lock of its own
	withOneLock                // all share that, too
)

// here is a lock for contenders of this process.
func here(name string, lock property.Subject, how manner) rival {
	return rival{name: name, bring: func(s stage, z *zktest.Zoo, server string, n int) runner {
		dir, ctx := newDirectory(s, z), context.Background()
		if how == ableToGiveUp {
			ctx = z.Ctx
		}
		toServer := func(dial zk.Dialer) zk.Dialer {
			return func(network, _ string, limit time.Duration) (net.Conn, error) {
				return dial(network, server, limit)
			}
		}
		var m *zktest.Member
		var way zktest.Way
		turns := make([]turn, n)
		for i := range turns {
			if i == 0 || how <= ableToGiveUp {
				m = lock.JoinAs(z, fmt.Sprintf("client %d", i+1), property.Seat{Path: dir, Through: toServer})
			}
			if i == 0 || how <= onOneSession {
				way, _ = lock.Ways(m.Session, dir)
			}
			turns[i] = turnOf(ctx, way)
		}
		return func(d time.Duration) ([]peers.Turn, error) { return takeTurns(turns, d) }
	}}
}

// turnOf is one Lock and one Unlock.
func turnOf(ctx context.Context, way zktest.Way) turn {
	return func() error {
		held, err := way.Lock(ctx)
		if err != nil {
			return err
		}
		return way.Unlock(held)
	}
}

// cohorts brings n goroutines, as many in each of some processes as in the others, or
// one more. Those of a process share a Cohort.
func cohorts(s stage, z *zktest.Zoo, server string, n int) runner {
	children := s.contestants(min(n, processes), Address{Servers: []string{server}, Path: newDirectory(s, z)})
	return func(d time.Duration) ([]peers.Turn, error) {
		return process.CallAll[peers.Turn](children, "Turns", func(i int) any {
			return Load{First: i * n, Goroutines: (n + i) / len(children), For: d}
		})
	}
}

// newDirectory makes the directory of a lock.
func newDirectory(s stage, z *zktest.Zoo) string {
	dir := fmt.Sprintf("%s/lock-%08x", z.Root, rand.Uint32()) // all of one length: bytes are counted
	_, err := z.Observer().Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	s.must(err)
	return dir
}

// bare is no lock: it creates and deletes what one would.
type bare struct {
	conn      *zk.Conn
	dir, node string
}

func newBare(conn *zk.Conn, dir string) *bare { return &bare{conn: conn, dir: dir} }

func (b *bare) Lock(context.Context) (err error) {
	b.node, err = b.conn.CreateProtectedEphemeralSequential(b.dir+"/lock-", nil, zk.WorldACL(zk.PermAll))
	return err
}

func (b *bare) Unlock() error { return b.conn.Delete(b.node, -1) }

// A mutexed lock is zk.Lock for many goroutines, of which one asks at a time.
type mutexed struct {
	mu sync.Mutex
	zktest.Locker
}

func newMutexed(conn *zk.Conn, dir string) *mutexed {
	return &mutexed{Locker: property.ClientLock(conn, dir)}
}

func (m *mutexed) Lock(ctx context.Context) error {
	m.mu.Lock()
	return m.Locker.Lock(ctx) // an error ends the measurement
}

func (m *mutexed) Unlock() error {
	defer m.mu.Unlock()
	return m.Locker.Unlock()
}
