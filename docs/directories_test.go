package docs

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

// One server, which deletes empty directories at once, and enforces quotas.
func restoredThenFull(t *testing.T) {
	e := servers(t, 1, zkserver.Config{
		Java:  []string{"-Dznode.container.checkIntervalMs=20", "-Dznode.container.maxPerMinute=1000000"},
		Lines: []string{"extendedTypesEnabled=true", "enforceQuota=true"},
	})
	restoredServer(t, e)
	for _, kind := range []struct {
		name string
		make func(z *zktest.Zoo, path string) error
	}{
		{"a container", func(z *zktest.Zoo, path string) error {
			_, err := z.Observer().CreateContainer(path, nil, zk.FlagContainer, anyone)
			return err
		}},
		{"a TTL znode", func(z *zktest.Zoo, path string) error {
			_, err := z.Observer().CreateTTL(path, nil, zk.FlagTTL, anyone, time.Second)
			return err
		}},
	} {
		z := zktest.NewOn(t, e.Server) // a deadline for each
		dir := z.Root + "/" + kind.name
		a, b := step5.JoinAs(z, "A", lockcheck.Seat{Path: dir}), step5.JoinAs(z, "B", lockcheck.Seat{Path: dir})
		require.NoError(t, kind.make(z, dir))
		first, second := a.Acquire(), b.Start()
		second.MustWait("A holds the lock")
		anotherGoes(z, kind.make)
		there := is(z, dir)
		first.Release()
		second.Acquired()
		second.Release()
		z.Await("the server to delete the directory", func() bool { return is(z, dir) == "gone" })
		third := a.Acquire()
		chapter.SaysIn(
			t,
			"operations.md",
			"%s as the directory: while somebody holds or waits it is %s; then the server deletes it; the numbers are %d, %d, and then %d; the third token is %s",
			kind.name,
			there,
			suffix(t, first.Znode()),
			suffix(t, second.Znode()),
			suffix(t, third.Znode()),
			greater(third, second),
		)
		third.Release()
		require.NoError(t, z.Observer().Delete(dir, -1))
		both, fell := again(t, z, dir, kind.make, a, b)
		chapter.SaysIn(
			t,
			"operations.md",
			"%s is deleted again and again between the turns of two clients: two inside at once: %d; tokens that are not greater: %d",
			kind.name,
			both,
			fell,
		)
	}
	quota(t, zktest.NewOn(t, e.Server))
}

// anotherGoes returns when the server has deleted an empty directory that was made
// after all others.
func anotherGoes(z *zktest.Zoo, make func(*zktest.Zoo, string) error) {
	c, path := z.Observer(), z.Root+"/another"
	if make(z, path) == nil { // a container that never had a child stays
		if child, err := c.Create(path+"/child", nil, 0, anyone); err == nil {
			_ = c.Delete(child, -1)
		}
	}
	z.Await("the server to delete another directory", func() bool { return is(z, path) == "gone" })
}

// again lets clients take turns while their directory is deleted whenever it is
// empty, and made again: twenty times at least. It counts the turns in which
// somebody else was inside, and the tokens that were not greater than the last.
func again(
	t *testing.T,
	z *zktest.Zoo,
	dir string,
	make func(*zktest.Zoo, string) error,
	clients ...*zktest.Member,
) (both, fell int32) {
	var inside, together, lower, deleted atomic.Int32
	var last atomic.Int64
	var all sync.WaitGroup
	for _, m := range clients {
		all.Go(func() {
			for deleted.Load() < 20 && z.Ctx.Err() == nil {
				held, err := m.Lock(z.Ctx)
				if !assert.NoError(t, err) {
					return
				}
				if inside.Add(1) > 1 {
					together.Add(1)
				}
				if token, _ := m.Token(held); last.Swap(token) >= token {
					lower.Add(1)
				}
				inside.Add(-1)
				assert.NoError(t, m.Unlock(held))
			}
		})
	}
	for deleted.Load() < 20 && z.Ctx.Err() == nil {
		if z.Observer().Delete(dir, -1) == nil {
			deleted.Add(1)
			_ = make(z, dir)
		}
	}
	all.Wait()
	return together.Load(), lower.Load()
}

func quota(t *testing.T, z *zktest.Zoo) {
	dir, c := z.Root+"/full", z.Observer()
	of := "/zookeeper/quota" + dir
	a, b := step5.JoinAs(z, "A", lockcheck.Seat{Path: dir}), step5.JoinAs(z, "B", lockcheck.Seat{Path: dir})
	for _, path := range []string{dir, "/zookeeper/quota" + z.Root, of} {
		create(t, c, path, 0)
	}
	// The directory itself counts.
	_, err := c.Create(
		of+"/zookeeper_limits",
		[]byte("count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2"),
		0,
		anyone,
	)
	require.NoError(t, err)
	_, err = c.Create(of+"/zookeeper_stats", []byte("count=1,bytes=0"), 0, anyone)
	require.NoError(t, err)
	held, turn := a.Acquire(), b.Start()
	err = turn.Err()
	require.Error(t, err)
	chapter.SaysIn(
		t,
		"operations.md",
		"a quota of two znodes, and A holds the lock: B's Lock: %s; names in the queue: %d; creates of B: %d",
		strings.ReplaceAll(err.Error(), dir, "/locks/orders"),
		len(held.Queue()),
		turn.Requests(0)[wiretap.Create],
	)
	held.Release()
	turn = b.Acquire()
	turn.Release()
	chapter.SaysIn(
		t,
		"operations.md",
		"A has released: B gets the lock; names in the queue afterwards: %d",
		len(turn.Queue()),
	)
}
