// Package docs tests what the pages beside it claim of ZooKeeper, on real servers.
package docs

import (
	"io"
	"log"
	"os"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const root = ".." // of the repository

var (
	anyone = zk.WorldACL(zk.PermAll)
	quiet  = log.New(io.Discard, "", 0) // in place of the client's own log
	step5  = steps.All[4]
)

// create makes a znode and returns its path, with the number if it has one.
func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, nil, mode, anyone)
	require.NoError(t, err)
	return made
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

// text is what a file says.
func text(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
