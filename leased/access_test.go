package leased

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Giving each client its own password does not protect the clients of a queue from one another. A client that
// may delete in the directory can delete another client's znode, whatever the ACL of that znode says. The
// holder learns of it only when it calls Unlock.
func TestWhoMayDeleteCanTakeAnotherOut(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const members = zk.PermRead | zk.PermCreate | zk.PermDelete
		acl := append(zk.DigestACL(members, "till", "one"), zk.DigestACL(members, "web", "two")...)
		a := w.with(WithACL(acl), WithAuth("digest", []byte("till:one"))).join(z, "A")
		b := w.with(WithACL(acl), WithAuth("digest", []byte("web:two"))).join(z, "B")
		_, err := z.Observer().Create(a.Path, nil, 0, acl)
		require.NoError(t, err)
		held := a.Acquire()
		_, err = b.SetACL(held.Znode(), zk.WorldACL(zk.PermAll), -1)
		require.ErrorIs(t, err, zk.ErrNoAuth, "nobody may change it")
		_, err = w.join(z, "another client").Lock(z.Ctx)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, b.Delete(held.Znode(), -1))
		next := b.Acquire()
		require.NoError(t, held.Context().Err(), "A's hold goes on")
		require.Greater(t, token(next), token(held))
		requireReason(t, held.Unlock(), ReasonDeleted)
		next.Release()
	})
}

// A client that may only create can stand first in the queue: it makes a znode whose number it chooses itself. So
// whoever shares a directory has to be trusted.
func TestWhoMayCreateCanJumpTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := mutexes.Join(z, "A"), mutexes.Join(z, "B")
	a.Acquire().Release() // takes number 0
	held := a.Acquire()
	waiting := b.Start()
	waiting.MustWait("A holds the lock")
	mallory := z.Client("Mallory")
	numberZero := a.Path + "/_c_00000000000000ff-lock-0000000000"
	first, err := mallory.Create(numberZero, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	held.Release()
	waiting.MustWait("Mallory has the number 0")
	require.NoError(t, mallory.Delete(first, -1))
	waiting.Acquired()
	waiting.Release()
}

// Without WithACL the znodes of the queue are open to everybody. A client that knows a znode's name can set
// an ACL that forbids reading it. Clients that already watch the znode are then no longer notified when it is
// deleted. So the names must not be published, for example by the command dump.
func TestAShutZnodeIsNotSeenToGo(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, another := mutexes.Join(z, "A"), mutexes.Join(z, "B"), z.Client("another client")
	held := a.Acquire()
	waiting := b.Start()
	waiting.MustWait("A holds the lock")
	_, err := another.SetACL(held.Znode(), zk.DigestACL(zk.PermAll, "another", "pw"), -1)
	require.NoError(t, err)
	mark := b.Tap.Mark()
	held.Release()
	z.Barrier(b.Client) // the notification would arrive before the answer to this
	t.Logf("notifications to B: %d", wiretap.Count(b.Tap.Since(mark)).Notifications)
	if waiting.Waits() == zktest.Returned { // servers before 3.8.4 and 3.9.2 notify B, except Debian's 3.8.0
		return
	}
	require.Error(t, waiting.Cancel())
	b.Acquire().Release()
}

// Two services have an ACL each, and their locks share a parent directory, which the first service creates.
// The second service can use that parent.
func TestAnACLIsNotForTheCommonParent(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		service := func(name string) *zktest.Member {
			acl := zk.DigestACL(zk.PermAll, name, "secret")
			w := w.with(WithACL(acl), WithAuth("digest", []byte(name+":secret")))
			return w.joinAs(z, name, property.Seat{Path: z.Root + "/apps/locks/" + name})
		}
		a, b := service("a"), service("b")
		a.Acquire().Release()
		b.Acquire().Release()
		for _, open := range []string{"/apps", "/apps/locks"} {
			acl, _, err := z.Observer().GetACL(z.Root + open)
			require.NoError(t, err)
			require.Equal(t, zk.WorldACL(zk.PermAll), acl, open)
		}
		_, err := w.at(z, b, a.Path).Lock(z.Ctx)
		require.ErrorIs(t, err, zk.ErrNoAuth, "the lock of a")
	})
}
