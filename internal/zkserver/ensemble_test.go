package zkserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"syscall"
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
	tmp := ownServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	e, err := zkserver.StartEnsemble(ctx, "maxSessionTimeout=50000")
	require.NoError(t, err)
	defer e.Stop()
	t.Logf("%s, after %v", e.Origin, time.Since(begin).Round(time.Millisecond))

	for _, part := range []struct {
		name string
		tell func(*story)
	}{
		{"one of three leads", oneLeads},
		{"the leader is killed", leaderKilled},
		{"a follower is paused", followerPaused},
		{"the first member ends in order", firstQuits},
		{"a follower is cut off", followerCutOff},
		{"the leader is cut off", leaderCutOff},
		{"one direction is held", directionHeld},
		{"all end and start again", allRestart},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			s := &story{T: t, Zoo: zktest.NewOn(t, e.Server), e: e}
			part.tell(s)
			s.must(e.Serving(s.Ctx))
		}) {
			return
		}
	}

	// Stop has to end servers in any state.
	e.Members[2].CutOff()
	for _, err := range []error{e.Members[0].Kill(), e.Members[1].Pause(), e.Stop(), e.Stop()} {
		assert.NoError(t, err)
	}
	for _, m := range e.Members {
		assert.Empty(t, remains(traceOf(m.Server), tmp))
	}
}

// story is a test's share of an ensemble.
type story struct {
	*testing.T
	*zktest.Zoo
	e *zkserver.Ensemble
}

func (s *story) must(err error) {
	s.T.Helper()
	require.NoError(s, err)
}

func (s *story) leader() *zkserver.Peer {
	s.T.Helper()
	m, _, err := s.e.Roles(s.Ctx)
	s.must(err)
	return m
}

func (s *story) follower() *zkserver.Peer {
	s.T.Helper()
	_, followers, err := s.e.Roles(s.Ctx)
	s.must(err)
	return followers[0]
}

// others returns the servers other than m, as one.
func (s *story) others(m *zkserver.Peer) *zkserver.Server {
	var servers []string
	for _, other := range s.e.Members {
		if other != m {
			servers = append(servers, other.Addr)
		}
	}
	return zkserver.NewServer(servers...)
}

// write makes a znode with c, as soon as that is possible.
func (s *story) write(c *zk.Conn, name string) (path string) {
	s.T.Helper()
	path = s.Root + "/" + name
	s.Await("a write", func() bool {
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
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
	s.must(err)
	there, _, err := conn.Exists(path)
	s.must(err)
	return there
}

func (s *story) stopsServing(m *zkserver.Peer) {
	s.T.Helper()
	s.Await(fmt.Sprintf("member %d to stop serving", m.ID), func() bool {
		text, err := m.Within(time.Second, "srvr")
		return err == nil && strings.Contains(text, "not currently serving")
	})
}

func oneLeads(s *story) {
	for _, m := range s.e.Members {
		text, err := m.Word("conf")
		s.must(err)
		assert.Contains(s, text, "maxSessionTimeout=50000\n", "a line was given")
	}
	leader, followers, err := s.e.Roles(s.Ctx)
	s.must(err)
	assert.Len(s, followers, 2)
	assert.NotContains(s, followers, leader)
	for _, m := range s.e.Members {
		text, err := m.Word("srvr")
		s.must(err)
		want := "Mode: follower\n"
		if m == leader {
			want = "Mode: leader\n"
		}
		assert.Contains(s, text, want)
	}
	counters, err := leader.Mntr()
	s.must(err)
	assert.EqualValues(s, 2, counters["zk_synced_followers"])
	// Servers call each other back: these calls have to take the links, too.
	for _, from := range s.e.Members {
		for _, to := range s.e.Members {
			if from != to {
				assert.Positive(s, s.e.Passed(from, to), "nothing has passed from member %d to %d", from.ID, to.ID)
			}
		}
	}
	assert.Len(s, s.e.Servers(), 3)
}

func leaderKilled(s *story) {
	c := s.Client("a client")
	before := s.write(c.Conn, "before")
	leader := s.leader()
	s.must(leader.Kill())
	_, err := leader.Within(time.Second, "ruok")
	assert.Error(s, err, "the leader is killed, and answers")
	next := s.leader()
	assert.NotEqual(s, leader.ID, next.ID, "the leader is killed, and leads")
	s.write(c.Conn, "after")
	assert.Equal(s, c.ID, c.SessionID())
	assert.True(s, s.sees(next, before), "what was written before the leader was killed is lost")
	assert.Error(s, next.Restart(s.Ctx), "a server that runs was started")
	s.must(leader.Restart(s.Ctx))
	assert.True(s, s.sees(leader, s.Root+"/after"), "the killed leader does not know what was written without it")
}

func followerPaused(s *story) {
	follower := s.follower()
	s.must(follower.Pause())
	_, err := follower.Within(300*time.Millisecond, "ruok")
	assert.Error(s, err, "a paused server answers")
	short, cancel := context.WithTimeout(s.Ctx, time.Second)
	defer cancel()
	assert.ErrorContains(s, s.e.Serving(short), fmt.Sprintf("member %d ", follower.ID))
	path := s.write(session(s.T, s.others(follower)), "meanwhile")
	s.must(follower.Resume())
	s.must(s.e.Serving(s.Ctx))
	assert.True(s, s.sees(follower, path), "the resumed follower does not know what was written meanwhile")
}

func firstQuits(s *story) {
	c := s.Client("a client")
	path, err := c.Create(s.Root+"/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	s.must(err)
	first := s.e.Members[0]
	s.must(first.Quit())
	_, err = net.Dial("tcp", first.Addr)
	assert.Error(s, err, "%s is open after Quit", first.Addr)
	s.leader()
	sessions, err := s.Sessions()
	s.must(err)
	assert.Contains(s, sessions, c.ID)
	ephemerals, err := s.Ephemerals()
	s.must(err)
	assert.Equal(s, []string{path}, ephemerals[c.ID])
	s.must(first.Restart(s.Ctx))
}

func followerCutOff(s *story) {
	follower := s.follower()
	inside := session(s.T, follower.Server)
	follower.CutOff()
	path := s.write(session(s.T, s.others(follower)), "meanwhile")
	// It may be that it does not know yet that it is cut off, and answers.
	there, _, err := inside.Exists(path)
	assert.False(s, err == nil && there, "the follower is cut off, and knows what was written meanwhile")
	s.stopsServing(follower)
	follower.Rejoin()
	s.must(s.e.Serving(s.Ctx))
	assert.True(s, s.sees(follower, path), "the follower that was cut off does not know what was written meanwhile")
}

func leaderCutOff(s *story) {
	c := s.Client("a client")
	leader := s.leader()
	leader.CutOff()
	s.Await("another leader", func() bool { return s.leader() != leader })
	s.stopsServing(leader)
	path := s.write(c.Conn, "after")
	assert.Equal(s, c.ID, c.SessionID())
	leader.Rejoin()
	s.must(s.e.Serving(s.Ctx))
	assert.NotEqual(s, leader.ID, s.leader().ID, "the leader that was cut off leads again, though there was another one")
	assert.True(s, s.sees(leader, path), "the leader that was cut off does not know what was written meanwhile")
}

func directionHeld(s *story) {
	leader, follower := s.leader(), s.follower()
	release := s.e.Hold(leader, follower)
	held, back := s.e.Passed(leader, follower), s.e.Passed(follower, leader)
	assert.Positive(s, held)
	assert.Positive(s, back)
	s.stopsServing(follower)
	s.Await("the follower to send something", func() bool { return s.e.Passed(follower, leader) > back })
	assert.Equal(s, held, s.e.Passed(leader, follower), "bytes have passed while held")
	release()
	release()
	s.Await("the leader to be heard again", func() bool { return s.e.Passed(leader, follower) > held })
}

func allRestart(s *story) {
	path := s.write(s.Client("a client").Conn, "before")
	for _, m := range s.e.Members {
		s.must(m.Quit())
	}
	s.must(zkserver.StartAgain(s.Ctx, s.e.Members))
	for _, m := range s.e.Members {
		assert.True(s, s.sees(m, path), "member %d has lost what was written before the restart", m.ID)
	}
}

// Whatever state its servers are in, an ensemble ends with its process.
func TestEnsembleEndsWithItsProcess(t *testing.T) {
	endsWithItsProcess(t, "ensemble launcher", 3, syscall.SIGKILL)
}

// ensembleLauncher is the child process: one server has been started again,
// one is paused.
func ensembleLauncher(_, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx)
	if err == nil {
		err = e.Members[0].Kill()
	}
	if err == nil {
		err = e.Members[0].Restart(ctx)
	}
	if err == nil {
		err = e.Members[1].Pause()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, m := range e.Members {
		say(m.Server)
	}
	select {}
}

func TestStartEnsembleSaysWhyItCannot(t *testing.T) {
	t.Setenv("ZK_SERVERS", "127.0.0.1:1") // does not count, nor does this one:
	t.Setenv("ZK_BACKEND", "docker")
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	_, err := zkserver.StartEnsemble(t.Context())
	require.ErrorContains(t, err, "three processes on this machine")
	require.Regexp(t, `local +ZOOKEEPER_HOME=.* holds no zookeeper.*\n +repair it with: unset ZOOKEEPER_HOME$`, err.Error())
}

func TestStartWithSaysWhyItCannot(t *testing.T) {
	t.Setenv("ZK_SERVERS", "127.0.0.1:1") // does not count
	t.Setenv("ZK_BACKEND", "")
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	t.Setenv("ZK_IMAGE", "127.0.0.1:1/none:1")
	_, err := zkserver.StartWith(t.Context(), zkserver.Config{})
	require.ErrorContains(t, err, "local ")
	require.ErrorContains(t, err, "docker ")
	require.NotContains(t, err.Error(), "existing")
}

func TestStartWith(t *testing.T) {
	tmp := ownServer(t)
	config := zkserver.Config{Lines: []string{"maxSessionTimeout=7000", "dynamicConfigFile={dir}/members"}}
	_, err := zkserver.StartWith(t.Context(), config)
	require.Error(t, err, "a server has started without a file that it needs")
	config.Files = map[string]string{"members": "server.1=127.0.0.1:2888:3888\n"}
	s, err := zkserver.StartWith(t.Context(), config)
	require.NoError(t, err)
	text, err := s.Word("conf")
	require.NoError(t, err)
	require.Contains(t, text, "maxSessionTimeout=7000\n")
	require.NoError(t, s.Stop())
	require.Empty(t, remains(traceOf(s), tmp))
}

// For TLS a server needs more of ZooKeeper than is found by itself.
func TestLocalServerSpeaksTLS(t *testing.T) {
	ownServer(t)
	t.Setenv("ZK_BACKEND", "local")
	s, err := zkserver.StartWith(t.Context(), zkserver.Config{
		Lines: []string{
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"client.portUnification=true",
			"ssl.keyStore.location={dir}/server.pem",
			"ssl.trustStore.location={dir}/server.pem",
			"ssl.clientAuth=none",
		},
		Files: map[string]string{"server.pem": certificate(t)},
	})
	require.NoError(t, err)
	defer s.Stop()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", s.Addr, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer conn.Close()
	require.EqualValues(t, 42, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64())
}

// certificate returns a key and a certificate for it, number 42.
func certificate(t *testing.T) string {
	t.Helper()
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	private, err2 := x509.MarshalPKCS8PrivateKey(key)
	template := &x509.Certificate{SerialNumber: big.NewInt(42), Subject: pkix.Name{CommonName: "zklock"}, NotAfter: time.Now().Add(time.Hour)}
	public, err3 := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, errors.Join(err1, err2, err3))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}))
}
