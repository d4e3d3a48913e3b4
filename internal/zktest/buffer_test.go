package zktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// A client can read the longest list that a thousand waiters can cause: the names of zk.Lock, with
// those of a holder and a newcomer.
func TestTheBufferHoldsAThousandNames(t *testing.T) {
	t.Parallel()
	z := New(t)
	var names []string
	for n := range 1002 {
		names = append(names, fmt.Sprintf("_c_%032d-lock-%010d", n, n))
	}
	z.createAll(t, names)
	listed, _, err := z.withBuffer(BufferFor(1000)).Children(z.Root)
	require.NoError(t, err)
	require.Len(t, listed, len(names))
}

// A list that does not fit into the buffer is an error at once, and the client reconnects in the
// session that it had.
func TestAListThatIsLongerThanTheBuffer(t *testing.T) {
	t.Parallel()
	z := New(t)
	const (
		buffer   = 10_000
		longName = 1000
	)
	var names []string
	for n := range buffer/longName + 1 {
		names = append(names, fmt.Sprintf("%0*d", longName, n))
	}
	c := z.withBuffer(buffer)
	z.createAll(t, names[:len(names)/2])
	listed, _, err := c.Children(z.Root)
	require.NoError(t, err)
	require.Len(t, listed, len(names)/2, "they fit")

	z.createAll(t, names[len(names)/2:])
	_, _, err = c.Children(z.Root)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	there, _, err := c.Exists(z.Root)
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, c.ID, c.SessionID(), "the session")
}

func (z *Zoo) withBuffer(bytes int) *Client {
	return z.ConnectWith("a client", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, err := dialWith(bytes, z.Servers(), SessionTimeout, dial)
		return conn, conn.Close, err
	})
}

// createAll makes children of the test's root, some in one request.
func (z *Zoo) createAll(t *testing.T, names []string) {
	t.Helper()
	for some := range slices.Chunk(names, 100) {
		var creates []any
		for _, name := range some {
			creates = append(creates, &zk.CreateRequest{Path: z.Root + "/" + name, Acl: zk.WorldACL(zk.PermAll)})
		}
		_, err := z.Observer().Multi(creates...)
		require.NoError(t, err, strings.Join(some, "\n"))
	}
}
