package property

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// BadInput tests what a lock of steps 1 to 4 returns when its connection
// is closed, and when the server permits too little. These are plain
// tests and not stories, because they teach nothing about locks.
func BadInput(t *testing.T, subject Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"a closed connection": connectionClosed,
		"no permission":       noPermission,
	} {
		t.Run(strings.ReplaceAll(subject.Name+": "+name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			test(t, subject)
		})
	}
}

func connectionClosed(t *testing.T, subject Subject) {
	z := zktest.New(t)
	a := subject.Join(z, "A")
	held := a.Acquire()
	a.Session.Close()
	err := held.Unlock()
	assert.ErrorIs(t, err, zk.ErrConnectionClosed, "Unlock after Close")
	assert.ErrorContains(t, err, a.Path)
	_, err = a.Lock(z.Ctx)
	assert.ErrorContains(t, err, "closed", "Lock after Close")
	assert.ErrorContains(t, err, a.Path)
}

// noPermission tests a lock whose znode is in dir. The server first permits no delete there, and
// then no create.
func noPermission(t *testing.T, subject Subject) {
	z := zktest.New(t)
	dir := z.Root + "/locks"
	path := dir
	if subject.Znode {
		path = dir + "/orders"
	}
	a := subject.JoinAs(z, "A", Seat{Path: path})
	permit := func(permissions int32) {
		_, err := z.Observer().SetACL(dir, zk.WorldACL(permissions), -1)
		require.NoError(t, err)
	}
	held := a.Acquire() // from now on dir exists
	permit(zk.PermAll &^ zk.PermDelete)
	err := held.Unlock()
	assert.ErrorIs(t, err, zk.ErrNoAuth, "Unlock without the permission to delete")
	assert.ErrorContains(t, err, path)
	permit(zk.PermAll)
	assert.NoError(t, held.Unlock(), "Unlock, called again once it is permitted")
	permit(zk.PermAll &^ zk.PermCreate)
	_, err = a.Lock(z.Ctx)
	assert.ErrorIs(t, err, zk.ErrNoAuth, "Lock without the permission to create")
	assert.ErrorContains(t, err, path)
}
