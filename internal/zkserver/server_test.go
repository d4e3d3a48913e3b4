package zkserver_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

var acl = zk.WorldACL(zk.PermAll)

func TestServerServesTellsAndStops(t *testing.T) {
	ownServer(t)
	_, err := zkserver.StartEnsemble(t.Context(), 1, "dynamicConfigFile=/nowhere")
	require.ErrorContains(t, err, "ended before it served", "it lacks a file")
	s, err := zkserver.StartEnsemble(t.Context(), 1, "maxSessionTimeout=7000")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	assert.Equal(t, []string{s.Addr, s.Addr}, s.Servers(), "the client reconnects at once if it knows two")
	text, err := s.Word("conf")
	require.NoError(t, err)
	assert.Contains(t, text, "maxSessionTimeout=7000\n")

	conn := session(t, s.Server)
	path, err := conn.Create("/ephemeral-", nil, zk.FlagEphemeralSequential, acl)
	require.NoError(t, err)
	sessions, err := s.Sessions()
	require.NoError(t, err)
	assert.Equal(t, []string{path}, sessions[conn.SessionID()])
	counters, err := s.Mntr()
	require.NoError(t, err)
	assert.Positive(t, counters["zk_ephemerals_count"])
	conn.Close() // the server has ended the session when this returns
	sessions, err = s.Sessions()
	require.NoError(t, err)
	assert.NotContains(t, sessions, conn.SessionID())

	require.NoError(t, s.Stop())
	assert.Empty(t, remains(s.Origin))
}

// ownServer makes Start start a server, whose files are gone when the test ends.
func ownServer(t *testing.T) {
	t.Helper()
	if os.Getenv("ZK_SERVERS") != "" || os.Getenv("ZK_BACKEND") == "existing" {
		t.Setenv("ZK_SERVERS", "")
		t.Setenv("ZK_BACKEND", "local")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() { // a watchdog needs them until it has killed the servers
		assert.EventuallyWithT(t, func(c *assert.CollectT) {
			files, err := os.ReadDir(tmp)
			assert.NoError(c, err)
			assert.Empty(c, files)
		}, 30*time.Second, 10*time.Millisecond)
	})
}

// session opens a session that ends with the test.
func session(t *testing.T, s *zkserver.Server) *zk.Conn {
	t.Helper()
	return zktest.NewOn(t, s).Client("a client").Conn
}

// remains tells what is left of servers, but for their files.
func remains(origin string) (left []string) {
	_, addrs, _ := strings.Cut(origin, ", on ")
	for addr := range strings.SplitSeq(addrs, ",") {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			conn.Close()
			left = append(left, addr+" is open")
		}
	}
	return left
}

// Of two test binaries that choose the same free port, one gets it. The other
// must not take that one's server for its own.
func TestServerIsNotMistakenForAnother(t *testing.T) {
	found, err := zkserver.FindInstallation()
	require.NoError(t, err)
	ports, err := zkserver.FreePorts(3)
	require.NoError(t, err)
	first, err := zkserver.LaunchLocally(t.Context(), found, ports)
	require.NoError(t, err)
	defer first.Stop()
	_, err = zkserver.LaunchLocally(t.Context(), found, ports)
	require.ErrorContains(t, err, "a port is taken", "so that other ports are tried")
}

func TestExistingServerIsFoundAndLeftRunning(t *testing.T) {
	shared, err := zktest.Shared()
	require.NoError(t, err)
	t.Setenv("ZK_BACKEND", "docker") // for what is started, and nothing is
	t.Setenv("ZK_SERVERS", closed(t)+", "+shared.Addr)
	s, err := zkserver.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, shared.Addr, s.Addr)
	require.Len(t, s.Servers(), 2)
	require.NoError(t, s.Stop())
	session(t, shared)
}

// closed is an address that nobody listens on.
func closed(t *testing.T) string {
	ports, err := zkserver.FreePorts(1)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

func TestStartSaysWhyItCannot(t *testing.T) {
	mail := answering(t, func(conn net.Conn) { fmt.Fprint(conn, "220 mail.example.org\r\n") })
	noJar, fakeJar := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(fakeJar+"/zookeeper-3.9.3.jar", nil, 0o600))
	noImage := "ZK_IMAGE=" + closed(t) + "/none:1" // on a registry that is not there
	const noLocal = `local +there is no zookeeper-\*\.jar in ZOOKEEPER_HOME=\S+, nor in its folder lib\n` +
		` +to repair it: unset ZOOKEEPER_HOME`
	const noImageThere = `cannot pull the image \S+/none:1: (.|\n)*to repair it: docker pull`
	const noDaemon = `no Docker daemon answers: (.|\n)*start docker`
	const noDocker = `docker +(` + noImageThere + `|` + noDaemon + `)`

	start := func(ctx context.Context) error { _, err := zkserver.Start(ctx); return err }
	startEnsemble := func(ctx context.Context) error { _, err := zkserver.StartEnsemble(ctx, 3); return err }
	for name, test := range map[string]struct {
		start func(context.Context) error
		env   []string
		want  string // a regular expression
	}{
		"an unknown backend": {
			start,
			[]string{"ZK_BACKEND=podman"},
			`^ZK_BACKEND="podman" is unknown: want existing, local or docker`,
		},
		"nothing listens": {
			start,
			[]string{"ZK_SERVERS=" + closed(t)},
			`existing +ZK_SERVERS=\S+: .*connection refused\n +to repair it: unset ZK_SERVERS`,
		},
		"no ZooKeeper": {
			start,
			[]string{"ZK_SERVERS=" + mail},
			`existing +ZK_SERVERS=\S+: .*(220 mail|connection reset|broken pipe)`,
		},
		"a list of nothing": {start, []string{"ZK_SERVERS= , "}, `ZK_SERVERS=" , " names no server`},
		"a chroot": {
			start,
			[]string{"ZK_SERVERS=127.0.0.1:2181/course"},
			`the Go client does not support a chroot: leave out the path after 127.0.0.1:2181`,
		},
		"no java": {
			start,
			[]string{"ZK_BACKEND=local", "ZOOKEEPER_HOME=" + fakeJar, "JAVA_HOME=/nowhere", "PATH="},
			`local +ZooKeeper is installed.*no java to run it: /nowhere/bin/java, java not found\n` +
				` +to repair it: export ZOOKEEPER_HOME=`,
		},
		"java ends at once": {
			start,
			[]string{"ZK_BACKEND=local", "ZOOKEEPER_HOME=" + fakeJar},
			`it ended before it served(.|\n)*Could not find or load main class`,
		},
		"no way at all": {
			start,
			[]string{"ZOOKEEPER_HOME=" + noJar, noImage},
			`^no ZooKeeper was found:\n` +
				` +existing +ZK_SERVERS is not set\n` +
				` +to repair it: export ZK_SERVERS=host:2181\n +` +
				noLocal + `\n +` +
				noDocker,
		},
		"one way is forced": {start, []string{"ZK_BACKEND=docker", noImage}, `^no ZooKeeper was found:\n +` + noDocker},
		"an ensemble is none that exists": {
			startEnsemble,
			[]string{"ZK_SERVERS=127.0.0.1:1", "ZOOKEEPER_HOME=" + noJar, noImage},
			`^no ZooKeeper was found:\n +` + noLocal + `\n +` + noDocker,
		},
	} {
		t.Run(name, func(t *testing.T) {
			unset := []string{"ZK_SERVERS=", "ZK_BACKEND=", "ZK_IMAGE=", "ZOOKEEPER_HOME="}
			for _, setting := range append(unset, test.env...) {
				key, value, _ := strings.Cut(setting, "=")
				t.Setenv(key, value)
			}
			err := test.start(t.Context())
			require.Error(t, err)
			assert.Regexp(t, test.want, err.Error())
		})
	}
}
