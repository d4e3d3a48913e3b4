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

// The parts of this story are told in order, on one ensemble. Each begins and
// ends with three members that serve.
func TestEnsemble(t *testing.T) {
	ownServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, "maxSessionTimeout=50000")
	require.NoError(t, err)
	defer e.Stop()
	assert.Len(t, e.Servers(), 3)

	for _, part := range []struct {
		name string
		tell func(*story)
	}{
		{"one of three leads", oneLeads},
		{"the leader is killed", leaderKilled},
		{"a follower is paused", followerPaused},
		{"a follower is cut off", func(s *story) { s.cutOff(s.follower) }},
		{"the leader is cut off", func(s *story) { s.cutOff(s.leader) }},
		{"one direction is held", directionHeld},
		{"all are killed and start again", allStartAgain},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			leader, followers, err := e.Roles(ctx)
			require.NoError(t, err)
			s := &story{t, zktest.NewOn(t, e.Server), e, leader, followers[0]}
			part.tell(s)
			require.NoError(t, e.Serving(ctx))
		}) {
			return
		}
	}

	// Stop has to end servers in any state.
	e.Members[2].CutOff()
	assert.NoError(t, e.Members[0].Kill())
	assert.NoError(t, e.Members[1].Pause())
	assert.NoError(t, e.Stop())
	assert.Empty(t, remains(e.Origin))
}

// story is a test's share of an ensemble, and the roles at its begin.
type story struct {
	*testing.T
	*zktest.Zoo
	e                *zkserver.Ensemble
	leader, follower *zkserver.Peer
}

// write makes a znode with c, as soon as that is possible.
func (s *story) write(c *zktest.Client, name string) (path string) {
	s.T.Helper()
	path = s.Root + "/" + name
	s.Await("a write", func() bool {
		_, err := c.Create(path, nil, 0, acl)
		return err == nil || err == zk.ErrNodeExists
	})
	return path
}

// sees tells whether this very member knows a znode, once it knows all that
// its leader does.
func (s *story) sees(m *zkserver.Peer, path string) bool {
	s.T.Helper()
	conn := session(s.T, m.Server)
	defer conn.Close()
	_, err := conn.Sync(path)
	require.NoError(s, err)
	there, _, err := conn.Exists(path)
	require.NoError(s, err)
	return there
}

func (s *story) stopsServing(m *zkserver.Peer) {
	s.T.Helper()
	s.Await(fmt.Sprintf("member %d to stop serving", m.ID), func() bool {
		text, err := zkserver.Ask(m.Addr, "srvr", time.Second)
		return err == nil && strings.Contains(text, "not currently serving")
	})
}

// leads awaits the member that leads at present.
func (s *story) leads() *zkserver.Peer {
	s.T.Helper()
	leader, _, err := s.e.Roles(s.Ctx)
	require.NoError(s, err)
	return leader
}

func oneLeads(s *story) {
	for _, m := range s.e.Members {
		conf, err := m.Word("conf")
		require.NoError(s, err)
		assert.Contains(s, conf, "maxSessionTimeout=50000\n", "a line was given")
		mode := "Mode: follower\n"
		if m == s.leader {
			mode = "Mode: leader\n"
		}
		srvr, err := m.Word("srvr")
		require.NoError(s, err)
		assert.Contains(s, srvr, mode)
	}
}

func leaderKilled(s *story) {
	c := s.Client("a client")
	before, err := c.Create(s.Root+"/before", nil, zk.FlagEphemeral, acl)
	require.NoError(s, err)
	require.NoError(s, s.leader.Kill())
	_, err = s.leader.Word("ruok")
	assert.Error(s, err, "the leader is killed, and answers")
	next := s.leads()
	assert.NotEqual(s, s.leader.ID, next.ID, "the leader is killed, and leads")
	after := s.write(c, "after")
	assert.Equal(s, c.ID, c.SessionID())
	assert.True(s, s.sees(next, before), "what was written before the leader was killed is lost")
	sessions, ephemerals := dump(s.T, s.e.Server)
	assert.Contains(s, sessions, c.ID)
	assert.Equal(s, []string{before}, ephemerals[c.ID])
	assert.ErrorContains(s, next.Restart(s.Ctx), "runs already")
	require.NoError(s, s.leader.Restart(s.Ctx))
	assert.True(s, s.sees(s.leader, after), "the killed leader does not know what was written without it")
}

func followerPaused(s *story) {
	at := zktest.NewOn(s, s.leader.Server)
	require.NoError(s, s.follower.Pause())
	_, err := zkserver.Ask(s.follower.Addr, "ruok", 300*time.Millisecond)
	assert.Error(s, err, "a paused server answers")
	short, cancel := context.WithTimeout(s.Ctx, time.Second)
	defer cancel()
	assert.ErrorContains(s, s.e.Serving(short), fmt.Sprintf("member %d ", s.follower.ID))
	path := s.write(at.Observer(), "meanwhile")
	require.NoError(s, s.follower.Resume())
	require.NoError(s, s.e.Serving(s.Ctx))
	assert.True(s, s.sees(s.follower, path), "the resumed follower does not know what was written meanwhile")
}

// cutOff is the part of a member whom the others go on without.
func (s *story) cutOff(m *zkserver.Peer) {
	c := s.Client("a client")
	m.CutOff()
	s.stopsServing(m)
	assert.NotEqual(s, m.ID, s.leads().ID, "the member is cut off, and leads")
	path := s.write(c, "meanwhile")
	assert.Equal(s, c.ID, c.SessionID())
	m.Rejoin()
	require.NoError(s, s.e.Serving(s.Ctx))
	assert.NotEqual(s, m.ID, s.leads().ID, "the member leads, though there was another leader")
	assert.True(s, s.sees(m, path), "the member that was cut off does not know what was written meanwhile")
}

func directionHeld(s *story) {
	release := s.e.Hold(s.leader, s.follower)
	s.stopsServing(s.follower)
	release()
	release()
}

func allStartAgain(s *story) {
	path := s.write(s.Client("a client"), "before")
	require.NoError(s, zkserver.StartAgain(s.Ctx, s.e.Members))
	for _, m := range s.e.Members {
		assert.True(s, s.sees(m, path), "member %d has lost what was written before", m.ID)
	}
}
