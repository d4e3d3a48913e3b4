package main

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/process"
)

func TestMain(m *testing.M) {
	process.Role("contender", func(process.Call) any { return &Contestant{} })
	zktest.Main(m)
}

// What docs/benchmark.md says of the lock that looks one release early: it is step 4,
// but a release wakes two, and it goes in without having seen that its own znode is
// still there.
func TestTheLockThatLooksOneReleaseEarly(t *testing.T) {
	lock := property.Over("looks one release early", func(c *zk.Conn, path string) early {
		if c != nil { // the bench makes the directory before it begins
			_, _ = c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		}
		return newEarly(c, path)
	})
	property.Holds(t, lock, property.OneHolder, property.CrashFrees, property.FirstCome, property.WaiterCrash,
		property.SilentWait, property.ArrivalWakesNobody, property.NoWatchLeft, property.LongHold)
	property.Lacks(t, lock, property.WakesOne, property.PlaceLost)
}

// The list that an early lock is let in by may be older than the one by which the
// holder before it was: its Pzxid, which is step 5's token, can go back.
func TestAnEarlyListHasNoToken(t *testing.T) {
	z := zktest.New(t)
	create := func(who *zktest.Client) string {
		node, err := who.Create(z.Root+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		return node
	}
	list := func(who *zktest.Client) (queue int, pzxid int64) {
		names, stat, err := who.Children(z.Root)
		require.NoError(t, err)
		return len(names), stat.Pzxid
	}
	a, b, c, d := z.Client("A"), z.Client("B"), z.Client("C"), z.Client("D")
	held := create(a)
	second := create(b) // and is slow to list
	create(c)
	require.NoError(t, a.Delete(held, -1)) // C, two places behind, is notified, and lists
	n, early := list(c)
	require.Equal(t, 2, n, "C is next: it will list no more")
	create(d)
	n, token := list(b)
	require.Equal(t, 3, n, "B is the first, and goes in")
	require.NoError(t, b.Delete(second, -1)) // C goes in
	assert.Less(t, early, token, "the token of C, who holds after B, beside B's")
}
