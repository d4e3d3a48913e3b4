package zkserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// One member after the other fails, on one ensemble. The others go on, with the
// sessions that they have; the member comes back, and knows what was written without it.
func TestEnsemble(t *testing.T) {
	ownServer(t)
	e, err := zkserver.StartEnsemble(t.Context(), 3, "maxSessionTimeout=50000")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	assert.Len(t, e.Servers(), 3)
	cutOff := func(_ context.Context, m, _ *zkserver.Peer) func() error {
		m.CutOff()
		return func() error { m.Rejoin(); return nil }
	}
	for _, fault := range []struct {
		name  string
		leads bool // the member that fails
		begin func(ctx context.Context, m, other *zkserver.Peer) (end func() error)
	}{
		{"the leader is killed", true, func(ctx context.Context, m, _ *zkserver.Peer) func() error {
			assert.NoError(t, m.Kill())
			return func() error { return m.Restart(ctx) }
		}},
		{"a follower is paused", false, func(_ context.Context, m, _ *zkserver.Peer) func() error {
			assert.NoError(t, m.Pause())
			return m.Resume
		}},
		{"a follower is partitioned", false, cutOff},
		{"the leader is partitioned", true, cutOff},
		{"one direction is held", false, func(_ context.Context, m, leader *zkserver.Peer) func() error {
			release := e.Hold(leader, m)
			return func() error { release(); release(); return nil }
		}},
	} {
		require.True(t, t.Run(fault.name, func(t *testing.T) {
			leader, followers, err := e.Roles(t.Context())
			require.NoError(t, err)
			m, other := followers[0], leader
			if fault.leads {
				m, other = other, m
			}
			z := zktest.NewOn(t, other.Server)
			c := z.Client("a client")
			before, err := c.Create(z.Root+"/before", nil, zk.FlagEphemeral, acl)
			require.NoError(t, err)

			end := fault.begin(z.Ctx, m, other)
			z.Await("the member to stop serving", func() bool {
				text, err := zkserver.Ask(m.Addr, "srvr", 3*time.Second) // a busy member answers late
				return err != nil || strings.Contains(text, "not currently serving")
			})
			once, cancel := context.WithCancel(z.Ctx)
			cancel()
			assert.ErrorContains(t, e.Serving(once), fmt.Sprintf("member %d ", m.ID))
			next, _, err := e.Roles(z.Ctx)
			require.NoError(t, err)
			assert.NotEqual(t, m.ID, next.ID, "it has failed, and leads")
			after := write(z, c)
			assert.Equal(t, c.ID, c.SessionID())
			sessions, err := e.Sessions()
			require.NoError(t, err)
			assert.Equal(t, []string{before}, sessions[c.ID])

			require.NoError(t, end())
			require.NoError(t, e.Serving(z.Ctx))
			assert.True(t, knows(t, m, after), "what was written without it")
		}))
	}

	z := zktest.NewOn(t, e.Server)
	path := write(z, z.Client("a client"))
	require.NoError(t, zkserver.StartAgain(z.Ctx, e.Members))
	for _, m := range e.Members {
		assert.True(t, knows(t, m, path), "member %d has lost what was written before", m.ID)
		conf, err := m.Word("conf")
		require.NoError(t, err)
		assert.Contains(t, conf, "maxSessionTimeout=50000\n", "a line was given")
	}

	// Stop has to end servers in any state.
	e.Members[2].CutOff()
	assert.NoError(t, e.Members[0].Kill())
	assert.NoError(t, e.Members[1].Pause())
	assert.NoError(t, e.Stop())
	assert.Empty(t, remains(e.Origin))
}

// write makes a znode, as soon as that is possible.
func write(z *zktest.Zoo, c *zktest.Client) (path string) {
	path = z.Root + "/znode"
	z.Await("a write", func() bool {
		_, err := c.Create(path, nil, 0, acl)
		return err == nil || err == zk.ErrNodeExists
	})
	return path
}

// knows tells whether this very member knows a znode, once it knows all that its
// leader does.
func knows(t *testing.T, m *zkserver.Peer, path string) bool {
	t.Helper()
	conn := session(t, m.Server)
	defer conn.Close()
	_, err := conn.Sync(path)
	require.NoError(t, err)
	there, _, err := conn.Exists(path)
	require.NoError(t, err)
	return there
}
