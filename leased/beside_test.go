package leased

import (
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// The locks that can be used on one path. Locks of one family exclude one another; locks of different
// families ignore one another.
var families = map[string][]property.Subject{
	"lock-": {
		mutexes, cohorts, clientLocks,
		property.OverHolds("step 5", func(
			servers []string, timeout time.Duration, dial zk.Dialer,
		) (*reentrant.Session, error) {
			return reentrant.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
		}, reentrant.New),
	},
	"__READ__ and __WRIT__": {
		rwmutexes,
		property.OverHolds("step 6", func(
			servers []string, timeout time.Duration, dial zk.Dialer,
		) (*sharedlock.Session, error) {
			return sharedlock.Open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
		}, sharedlock.New),
	},
	"lock- without a guid": {
		property.Over("step 2", sequentialspin.New),
		property.Over("step 3", childrenwatch.New),
		property.Over("step 4", predecessorwatch.New),
	},
}

// A user who changes from one lock to another must know which of them exclude one another: those of one
// family. An exception is zk.Lock, which waits for every name that has a number right after lock- or __.
// Where both locks have tokens, the tokens grow.
func TestWhoExcludesWhomOnOnePath(t *testing.T) {
	t.Parallel()
	for ofHolder, holders := range families {
		for ofNewcomer, newcomers := range families {
			for _, holder := range holders {
				for _, newcomer := range newcomers {
					z := zktest.New(t)
					held := holder.Join(z, "the holder").Acquire()
					next := newcomer.Join(z, "the newcomer").Start()
					isIn := next.Waits() == zktest.Returned
					isZkLock := newcomer.Name == clientLocks.Name
					waits := ofHolder == ofNewcomer || isZkLock
					assert.Equal(t, !waits, isIn, "%s holds the lock; whether %s is let in beside it", holder.Name, newcomer.Name)
					held.Release()
					next.Release()
					if waits && token(held) != 0 && token(next) != 0 {
						assert.Greater(t, token(next), token(held), "the tokens of %s and, after it, of %s", holder.Name, newcomer.Name)
					}
				}
			}
		}
	}
}

// The locks of leased ignore a name that has no such number. Lock of zk.Lock fails there, and leaves its
// znode in the queue.
func TestANameWithoutANumberFailsZkLockAlone(t *testing.T) {
	t.Parallel()
	for _, lock := range []property.Subject{clientLocks, mutexes, cohorts, rwmutexes} {
		for _, name := range []string{"config", "config-0000000001", "my-lock-2-copy"} {
			z := zktest.New(t)
			m := lock.Join(z, "a client")
			m.Acquire().Release() // makes the directory
			_, err := z.Observer().Create(m.Path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			if lock.Name != clientLocks.Name {
				m.Acquire().Release()
				continue
			}
			require.ErrorIs(t, m.Start().Err(), strconv.ErrSyntax, name)
			require.Len(t, z.Names(m.Path), 2, "its znode beside %s", name)
		}
	}
}
