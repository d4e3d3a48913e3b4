package zktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// The parts of this story are told in order, on one ensemble. Each begins and
// ends with three members that serve.
func TestEnsemble(t *testing.T) {
	tmp := ownServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	e, err := StartEnsemble(ctx, "maxSessionTimeout=50000")
	if err != nil {
		t.Fatal(err)
	}
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
			s := &story{T: t, Zoo: NewOn(t, e.Server), e: e}
			part.tell(s)
			s.must(e.Serving(s.Ctx))
		}) {
			return
		}
	}

	// Stop has to end servers in any state.
	for _, err := range []error{e.Members[0].Kill(), e.Members[1].Pause(), e.Members[2].CutOff(), e.Stop(), e.Stop()} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, m := range e.Members {
		if left := remains(m.Addr, m.pid, m.container, tmp); left != "" {
			t.Errorf("after Stop %s", left)
		}
	}
}

// story is a test's share of an ensemble.
type story struct {
	*testing.T
	*Zoo
	e *Ensemble
}

func (s *story) must(err error) {
	s.T.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *story) leader() *Peer {
	s.T.Helper()
	m, err := s.e.Leader(s.Ctx)
	s.must(err)
	return m
}

func (s *story) follower() *Peer {
	s.T.Helper()
	followers, err := s.e.Followers(s.Ctx)
	s.must(err)
	return followers[0]
}

// others returns the servers other than m, as one.
func (s *story) others(m *Peer) *Server {
	var servers []string
	for _, other := range s.e.Members {
		if other != m {
			servers = append(servers, other.Addr)
		}
	}
	return &Server{Origin: "two of " + s.e.Origin, servers: servers}
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
func (s *story) sees(m *Peer, path string) bool {
	s.T.Helper()
	conn := session(s.T, m.Server)
	defer conn.Close()
	_, err := conn.Sync(path)
	s.must(err)
	there, _, err := conn.Exists(path)
	s.must(err)
	return there
}

func (s *story) stopsServing(m *Peer) {
	s.T.Helper()
	s.Await(fmt.Sprintf("member %d to stop serving", m.ID), func() bool {
		text, err := ask(m.Addr, "srvr", time.Second)
		return err == nil && strings.Contains(text, "not currently serving")
	})
}

func oneLeads(s *story) {
	modes := make(map[string]int)
	for _, m := range s.e.Members {
		text, err := m.Word("srvr")
		s.must(err)
		for mode := range strings.Lines(text) {
			if strings.HasPrefix(mode, "Mode: ") {
				modes[strings.TrimSpace(mode)]++
			}
		}
		if text, err := m.Word("conf"); err != nil || !strings.Contains(text, "maxSessionTimeout=50000\n") {
			s.Errorf("a line was given, and member %d has the configuration %s%v", m.ID, text, err)
		}
	}
	if modes["Mode: leader"] != 1 || modes["Mode: follower"] != 2 {
		s.Errorf("the members say %v", modes)
	}
	counters, err := s.leader().Mntr()
	if err != nil || counters["zk_synced_followers"] != 2 {
		s.Errorf("the leader has %d followers, %v", counters["zk_synced_followers"], err)
	}
	// Servers call each other back: these calls have to take the links, too.
	for pair := range s.e.links {
		if s.e.Passed(s.e.Members[pair[0]-1], s.e.Members[pair[1]-1]) == 0 {
			s.Errorf("nothing has passed from member %d to %d", pair[0], pair[1])
		}
	}
	followers, err := s.e.Followers(s.Ctx)
	if err != nil || len(followers) != 2 || slices.Contains(followers, s.leader()) {
		s.Errorf("Followers returned %d, %v", len(followers), err)
	}
	if servers := s.e.Servers(); len(servers) != 3 {
		s.Errorf("the ensemble is at %v", servers)
	}
}

func leaderKilled(s *story) {
	c := s.Client("a client")
	before := s.write(c.Conn, "before")
	leader := s.leader()
	s.must(leader.Kill())
	if _, err := ask(leader.Addr, "ruok", time.Second); err == nil {
		s.Error("the leader is killed, and answers")
	}
	next := s.leader()
	if next == leader {
		s.Error("the leader is killed, and leads")
	}
	s.write(c.Conn, "after")
	if c.SessionID() != c.ID {
		s.Errorf("the session was %#x and is %#x", c.ID, c.SessionID())
	}
	if !s.sees(next, before) {
		s.Error("what was written before the leader was killed is lost")
	}
	if err := next.Restart(s.Ctx); err == nil {
		s.Error("a server that runs was started")
	}
	s.must(leader.Restart(s.Ctx))
	if !s.sees(leader, s.Root+"/after") {
		s.Error("the killed leader does not know what was written without it")
	}
}

func followerPaused(s *story) {
	follower := s.follower()
	s.must(follower.Pause())
	if answer, err := ask(follower.Addr, "ruok", 300*time.Millisecond); err == nil {
		s.Errorf("a paused server says %q", answer)
	}
	short, cancel := context.WithTimeout(s.Ctx, time.Second)
	defer cancel()
	if err := s.e.Serving(short); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("member %d ", follower.ID)) {
		s.Errorf("Serving says %v, and member %d is paused", err, follower.ID)
	}
	path := s.write(session(s.T, s.others(follower)), "meanwhile")
	s.must(follower.Resume())
	s.must(s.e.Serving(s.Ctx))
	if !s.sees(follower, path) {
		s.Error("the resumed follower does not know what was written meanwhile")
	}
}

func firstQuits(s *story) {
	c := s.Client("a client")
	path, err := c.Create(s.Root+"/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	s.must(err)
	first := s.e.Members[0]
	s.must(first.Quit())
	if conn, err := net.Dial("tcp", first.Addr); err == nil && first.container == "" {
		conn.Close()
		s.Errorf("%s is open after Quit", first.Addr)
	}
	s.leader()
	sessions, err := s.Sessions()
	if err != nil || !sessions[c.ID] {
		s.Errorf("without the first member the sessions are %v, not %#x; %v", sessions, c.ID, err)
	}
	ephemerals, err := s.Ephemerals()
	if err != nil || !slices.Equal(ephemerals[c.ID], []string{path}) {
		s.Errorf("without the first member the ephemerals are %v, %v", ephemerals, err)
	}
	s.must(first.Restart(s.Ctx))
}

func followerCutOff(s *story) {
	follower := s.follower()
	inside := session(s.T, follower.Server)
	s.must(follower.CutOff())
	path := s.write(session(s.T, s.others(follower)), "meanwhile")
	// It may be that it does not know yet that it is cut off, and answers.
	if there, _, err := inside.Exists(path); err == nil && there {
		s.Error("the follower is cut off, and knows what was written meanwhile")
	}
	s.stopsServing(follower)
	s.must(follower.Rejoin())
	s.must(s.e.Serving(s.Ctx))
	if !s.sees(follower, path) {
		s.Error("the follower that was cut off does not know what was written meanwhile")
	}
}

func leaderCutOff(s *story) {
	c := s.Client("a client")
	leader := s.leader()
	s.must(leader.CutOff())
	s.Await("another leader", func() bool { return s.leader() != leader })
	s.stopsServing(leader)
	path := s.write(c.Conn, "after")
	if c.SessionID() != c.ID {
		s.Errorf("the session was %#x and is %#x", c.ID, c.SessionID())
	}
	s.must(leader.Rejoin())
	s.must(s.e.Serving(s.Ctx))
	if s.leader() == leader {
		s.Error("the leader that was cut off leads again, though there was another one")
	}
	if !s.sees(leader, path) {
		s.Error("the leader that was cut off does not know what was written meanwhile")
	}
}

func directionHeld(s *story) {
	leader, follower := s.leader(), s.follower()
	release, err := s.e.Hold(leader, follower)
	if leader.container != "" {
		if err == nil || !strings.Contains(err.Error(), InstallCommand()) {
			s.Errorf("Hold on containers says: %v", err)
		}
		return
	}
	s.must(err)
	held, back := s.e.Passed(leader, follower), s.e.Passed(follower, leader)
	if held == 0 || back == 0 {
		s.Errorf("%d bytes have passed to the follower, %d back", held, back)
	}
	s.stopsServing(follower)
	s.Await("the follower to send something", func() bool { return s.e.Passed(follower, leader) > back })
	if now := s.e.Passed(leader, follower); now != held {
		s.Errorf("%d bytes have passed while held", now-held)
	}
	release()
	release()
	s.Await("the leader to be heard again", func() bool { return s.e.Passed(leader, follower) > held })
}

func allRestart(s *story) {
	path := s.write(s.Client("a client").Conn, "before")
	for _, m := range s.e.Members {
		s.must(m.Quit())
	}
	var restarts sync.WaitGroup
	for _, m := range s.e.Members {
		restarts.Go(func() {
			if err := m.Restart(s.Ctx); err != nil {
				s.Error(err)
			}
		})
	}
	restarts.Wait()
	for _, m := range s.e.Members {
		if !s.sees(m, path) {
			s.Errorf("member %d has lost what was written before the restart", m.ID)
		}
	}
}

// Whatever state its servers are in, an ensemble ends with its process.
func TestEnsembleEndsWithItsProcess(t *testing.T) {
	tmp := ownServer(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ZKTEST_CHILD=ensemble launcher")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addrs, containers [3]string
	var pids [3]int
	for i := range addrs {
		if _, err := fmt.Fscanf(stdout, "%q %d %q\n", &addrs[i], &pids[i], &containers[i]); err != nil {
			cmd.Process.Kill()
			t.Fatalf("the child process has started no ensemble: %v", err)
		}
	}
	left := func() (left string) {
		for i := range addrs {
			left += remains(addrs[i], pids[i], containers[i], tmp)
		}
		if name, found := strings.CutSuffix(containers[0], "-1"); found && exec.Command("docker", "network", "inspect", name).Run() == nil {
			left += "network " + name + " is there"
		}
		return left
	}
	if left() == "" {
		t.Error("the child process has an ensemble, but this test cannot see it")
	}
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(20 * time.Second); left() != ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("20 s after its process has ended %s", left())
		}
	}
}

// ensembleLauncher is the child process: one server has been started again,
// one is paused.
func ensembleLauncher(_, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	e, err := StartEnsemble(ctx)
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
		Say("%q %d %q", m.Addr, m.pid, m.container)
	}
	select {}
}

func TestStartEnsembleSaysWhyItCannot(t *testing.T) {
	t.Setenv("ZK_SERVERS", "127.0.0.1:1") // does not count
	t.Setenv("ZK_BACKEND", "")
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	t.Setenv("ZK_IMAGE", "127.0.0.1:1/none:1")
	for name, start := range map[string]func() error{
		"StartEnsemble": func() error { _, err := StartEnsemble(t.Context()); return err },
		"StartWith":     func() error { _, err := StartWith(t.Context(), Extra{}); return err },
	} {
		err := start()
		if err == nil {
			t.Fatalf("%s has found a server", name)
		}
		for _, want := range []string{"local ", "docker ", "repair it with: unset ZOOKEEPER_HOME"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s does not say %q: %v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "existing") {
			t.Errorf("%s has tried a server that exists: %v", name, err)
		}
	}
}

func TestStartWith(t *testing.T) {
	tmp := ownServer(t)
	extra := Extra{Lines: []string{"maxSessionTimeout=7000", "dynamicConfigFile={dir}/members"}}
	if s, err := StartWith(t.Context(), extra); err == nil {
		s.Stop()
		t.Fatal("a server has started without a file that it needs")
	}
	extra.Files = map[string]string{"members": "server.1=127.0.0.1:2888:3888\n"}
	s, err := StartWith(t.Context(), extra)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Word("conf")
	if err != nil || !strings.Contains(text, "maxSessionTimeout=7000\n") {
		t.Errorf("the configuration is %s%v", text, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if left := remains(s.Addr, s.pid, s.container, tmp); left != "" {
		t.Errorf("after Stop %s", left)
	}
}

// For TLS a server needs more of ZooKeeper than is found by itself.
func TestLocalServerSpeaksTLS(t *testing.T) {
	ownServer(t)
	t.Setenv("ZK_BACKEND", "local")
	s, err := StartWith(t.Context(), Extra{
		Lines: []string{
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"client.portUnification=true",
			"ssl.keyStore.location={dir}/server.pem",
			"ssl.trustStore.location={dir}/server.pem",
			"ssl.clientAuth=none",
		},
		Files: map[string]string{"server.pem": certificate(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", s.Addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if number := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); number != 42 {
		t.Errorf("the server's certificate has the number %d", number)
	}
}

// certificate returns a key and a certificate for it, number 42.
func certificate(t *testing.T) string {
	t.Helper()
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	private, err2 := x509.MarshalPKCS8PrivateKey(key)
	template := &x509.Certificate{SerialNumber: big.NewInt(42), Subject: pkix.Name{CommonName: "zklock"}, NotAfter: time.Now().Add(time.Hour)}
	public, err3 := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}))
}
