package leased

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A password each does not protect clients of a queue from one another: whoever may delete in the
// directory can take another out, whatever the ACL of the znode itself says. The holder learns of it
// when it calls Unlock.
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

// Without WithACL the queue's znodes are open to the world: who knows the name of one can close it to
// those who watch it already. They are not told any more when it goes. So names must not be shown, as by
// dump.
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
	z.Barrier(b.Client) // a notification would come before the answer to this
	t.Logf("notifications to B: %d", wiretap.Count(b.Tap.Since(mark)).Notifications)
	if waiting.Waits() == zktest.Returned { // servers before 3.8.4 and 3.9.2 tell it, except Debian's 3.8.0
		return
	}
	require.Error(t, waiting.Cancel())
	b.Acquire().Release()
}

// Two services have an ACL each, and their locks a common parent, which the first of them makes. It does not
// shut the second one out.
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
