package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("launcher", launcher)
	zktest.Child("ensemble launcher", ensembleLauncher)
	zktest.Main(m)
}

func TestServerServesAndStops(t *testing.T) {
	tmp := ownServer(t)
	begin := time.Now()
	s := started(t)
	t.Logf("%s, after %v", s.Origin, time.Since(begin).Round(time.Millisecond))
	conn := session(t, s)
	_, err := conn.Create("/it-serves", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	conn.Close()

	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop())
	require.Empty(t, remains(traceOf(s), tmp))
}

// A process that has started a server may end in any way, even in one that
// lets it do nothing more: the server ends with it.
func TestServerEndsWithItsProcess(t *testing.T) {
	for name, end := range map[string]syscall.Signal{
		"killed":  syscall.SIGKILL,
		"Ctrl-C":  syscall.SIGINT,
		"panic":   syscall.SIGUSR1, // see launcher
		"os.Exit": syscall.SIGUSR2,
	} {
		t.Run(name, func(t *testing.T) { endsWithItsProcess(t, "launcher", 1, end) })
	}
}

// endsWithItsProcess tests that a child process's servers end as it does.
func endsWithItsProcess(t *testing.T, launcher string, servers int, end syscall.Signal) {
	tmp := ownServer(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ZKTEST_CHILD="+launcher,
		fmt.Sprintf("TESTCONTAINERS_SESSION_ID=%d", time.Now().UnixNano())) // a Ryuk of its own: the last child's is about to go
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job, as a terminal makes it
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	require.NoError(t, errors.Join(err1, err2, cmd.Start()))
	defer stdin.Close()

	traces := make([]trace, servers)
	for i := range traces {
		if _, err := fmt.Fscanf(stdout, "%q %d %q\n", &traces[i].addr, &traces[i].pid, &traces[i].container); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the child process has started no server: %s", said.String())
		}
	}
	left := func() (left string) {
		for _, trace := range traces {
			left += remains(trace, tmp)
		}
		return left
	}
	assert.NotEmpty(t, left(), "the child process has a server, but this test cannot see it")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, end)) // the whole job, as Ctrl-C does
	assert.Error(t, cmd.Wait(), "the child process has come to a good end")
	for deadline := time.Now().Add(30 * time.Second); left() != ""; time.Sleep(5 * time.Millisecond) { // Ryuk waits for ten
		require.True(t, time.Now().Before(deadline), "30 s after its process has ended %s", left())
	}
}

// launcher is the child process: it starts a server and ends as it is told.
func launcher(_, _ []string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGUSR2)
	s, err := zkserver.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say(s)
	if <-told == syscall.SIGUSR1 {
		panic("told to")
	}
	os.Exit(1)
}

// ownServer makes Start start a server, with its files in the folder tmp.
func ownServer(t *testing.T) (tmp string) {
	t.Helper()
	if os.Getenv("ZK_SERVERS") != "" || os.Getenv("ZK_BACKEND") == "existing" {
		t.Setenv("ZK_SERVERS", "")
		t.Setenv("ZK_BACKEND", "local")
	}
	tmp = t.TempDir()
	t.Setenv("TMPDIR", tmp)
	return tmp
}

// started is Start for a server that ends with the test.
func started(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(t.Context())
	require.NoError(t, err)
	testcontainers.CleanupContainer(t, s.Container())
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

// A trace is where to look for a server.
type trace struct {
	addr      string
	pid       int
	container string
}

func traceOf(s *zkserver.Server) trace { return trace{s.Addr, s.Pid(), s.ContainerID()} }

func say(s *zkserver.Server) { zktest.Say("%q %d %q", s.Addr, s.Pid(), s.ContainerID()) }

// remains tells what is left of a server that was started with ownServer.
func remains(s trace, tmp string) string {
	var left []string
	if conn, err := net.DialTimeout("tcp", s.addr, time.Second); err == nil {
		conn.Close()
		left = append(left, s.addr+" is open")
	}
	// A process that has ended may stay a zombie (Z) for a while.
	if state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(s.pid)).Output(); s.pid != 0 && len(state) > 0 && state[0] != 'Z' {
		left = append(left, fmt.Sprintf("process %d runs", s.pid))
	}
	if s.container != "" && exec.Command("docker", "inspect", s.container).Run() == nil {
		left = append(left, "container "+s.container+" is there")
	}
	if files, _ := filepath.Glob(tmp + "/*"); len(files) > 0 {
		left = append(left, strings.Join(files, " ")+" is there")
	}
	return strings.Join(left, ", ")
}

// session opens a session that ends with the test.
func session(t *testing.T, s *zkserver.Server) *zk.Conn {
	t.Helper()
	return zktest.NewOn(t, s).Client("a client").Conn
}

// Of two test binaries that choose the same free port, one gets it. The other
// must not take that one's server for its own.
func TestServerIsNotMistakenForAnother(t *testing.T) {
	ownServer(t)
	t.Setenv("ZK_BACKEND", "local")
	first := started(t)
	_, port, _ := net.SplitHostPort(first.Addr)
	taken, _ := strconv.Atoi(port)
	_, err := zkserver.Launch(t.Context(), taken)
	require.ErrorContains(t, err, "BindException") // what startLocal looks for
}

func TestStartSaysWhyItCannot(t *testing.T) {
	closed := func() string {
		port, err := zkserver.FreePort()
		require.NoError(t, err)
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	notZooKeeper := zkserver.Answering(t, func(conn net.Conn) { fmt.Fprint(conn, "220 mail.example.org\r\n") })
	noJar, fakeJar := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(fakeJar+"/zookeeper-3.9.3.jar", nil, 0o600))
	noImage := closed() + "/none:1" // on a registry that is not there

	for name, test := range map[string]struct {
		env  map[string]string
		want []string // regular expressions
	}{
		"an unknown backend": {
			map[string]string{"ZK_BACKEND": "podman"},
			[]string{`ZK_BACKEND="podman" is unknown`, `existing, local or docker`},
		},
		"existing, but none is named": {
			map[string]string{"ZK_BACKEND": "existing"},
			[]string{`existing +ZK_SERVERS is not set`, `repair it with: export ZK_SERVERS=host:2181`},
		},
		"nothing listens": {
			map[string]string{"ZK_SERVERS": closed()},
			[]string{`existing +ZK_SERVERS=127.0.0.1:\d+: .*connection refused`, `repair it with: unset ZK_SERVERS`},
		},
		"no ZooKeeper listens": {
			map[string]string{"ZK_SERVERS": notZooKeeper},
			[]string{`existing +ZK_SERVERS=127.0.0.1:\d+: `, `220 mail|connection reset|broken pipe`},
		},
		"a list of nothing": {
			map[string]string{"ZK_SERVERS": " , "},
			[]string{`ZK_SERVERS=" , " names no server`},
		},
		"a chroot": {
			map[string]string{"ZK_SERVERS": "127.0.0.1:2181/course"},
			[]string{`the Go client knows no chroot`},
		},
		"ZOOKEEPER_HOME without a jar": {
			map[string]string{"ZK_BACKEND": "local", "ZOOKEEPER_HOME": noJar},
			[]string{`local +ZOOKEEPER_HOME=` + noJar + ` holds no zookeeper-\*\.jar`, `repair it with: unset ZOOKEEPER_HOME`},
		},
		"no java": {
			map[string]string{"ZK_BACKEND": "local", "ZOOKEEPER_HOME": fakeJar, "JAVA_HOME": "/nowhere", "PATH": ""},
			[]string{`local +ZooKeeper is there.*no java`, `/nowhere/bin/java, java not found`},
		},
		"java ends at once": {
			map[string]string{"ZK_BACKEND": "local", "ZOOKEEPER_HOME": fakeJar},
			[]string{`java ended before it served`, `Could not find or load main class`},
		},
		"an image that cannot be had": {
			map[string]string{"ZK_BACKEND": "docker", "ZK_IMAGE": noImage},
			[]string{`docker +(the image ` + noImage + ` is not there and cannot be pulled|no Docker daemon answers)`},
		},
		"no way at all": {
			map[string]string{"ZOOKEEPER_HOME": noJar, "ZK_IMAGE": noImage},
			[]string{`no ZooKeeper was found:\n +existing .*\n.*repair it with: .*\n +local .*\n.*repair it with: .*\n +docker .*\n(.*\n)*.*repair it with: (docker pull|.*start docker)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"ZK_SERVERS", "ZK_BACKEND", "ZK_IMAGE", "ZOOKEEPER_HOME"} {
				t.Setenv(key, test.env[key])
			}
			for _, key := range []string{"JAVA_HOME", "PATH"} {
				if value, ok := test.env[key]; ok {
					t.Setenv(key, value)
				}
			}
			begin := time.Now()
			_, err := zkserver.Start(t.Context())
			require.Error(t, err)
			t.Logf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
			for _, want := range test.want {
				assert.Regexp(t, want, err.Error())
			}
		})
	}
}

func TestServersNamesASingleAddressTwice(t *testing.T) {
	require.Equal(t, []string{"a:1", "a:1"}, zkserver.NewServer("a:1").Servers())
	require.Equal(t, []string{"a:1", "b:2"}, zkserver.NewServer("a:1", "b:2").Servers())
}

func TestExistingServerIsFoundAndLeftRunning(t *testing.T) {
	shared, err := zktest.Shared()
	require.NoError(t, err)
	port, err := zkserver.FreePort()
	require.NoError(t, err)
	t.Setenv("ZK_BACKEND", "")
	t.Setenv("ZK_SERVERS", fmt.Sprintf("127.0.0.1:%d, %s", port, shared.Addr)) // the first is down
	s, err := zkserver.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, shared.Addr, s.Addr)
	require.Len(t, s.Servers(), 2)
	require.NoError(t, s.Stop())
	session(t, shared)
}

func TestWordsTellTheServersOwnTruth(t *testing.T) {
	s, err := zktest.Shared()
	require.NoError(t, err)
	conn := session(t, s)
	path, err := conn.Create("/words-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	id := conn.SessionID()

	sessions, err := s.Sessions()
	require.NoError(t, err)
	require.Contains(t, sessions, id)
	ephemerals, err := s.Ephemerals()
	require.NoError(t, err)
	require.Equal(t, []string{path}, ephemerals[id])
	counters, err := s.Mntr()
	require.NoError(t, err)
	require.Positive(t, counters["zk_ephemerals_count"])
	require.Greater(t, counters["zk_znode_count"], int64(1))

	conn.Close() // the server has ended the session when this returns
	sessions, err = s.Sessions()
	require.NoError(t, err)
	require.NotContains(t, sessions, id)
	ephemerals, err = s.Ephemerals()
	require.NoError(t, err)
	require.NotContains(t, ephemerals, id)
}
