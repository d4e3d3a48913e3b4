// Package docs tests what the pages beside it claim of ZooKeeper, on real servers.
package docs

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const root = ".." // of the repository

var anyone = zk.WorldACL(zk.PermAll)

// create makes a znode and returns its path, with the number if it has one.
func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, nil, mode, anyone)
	require.NoError(t, err)
	return made
}

// open opens a session of step 5 that ends with the test, with a tap on its line.
func open(z *zktest.Zoo, name string) (s *reentrant.Session, c *zktest.Client) {
	c = z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		if s, err = reentrant.Open(z.Servers(), zktest.SessionTimeout, reentrant.WithDialer(dial)); err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

// is says in words whether a znode is there.
func is(z *zktest.Zoo, path string) string {
	if _, there := z.Owner(path); there {
		return "there"
	}
	return "gone"
}

// sameSession says in words whether a client still has the session that it had.
func sameSession(c *zktest.Client) string {
	if c.SessionID() == c.ID {
		return "the same session"
	}
	return "another session"
}

// quiet drops the client's own log.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
