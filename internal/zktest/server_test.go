package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestMain(m *testing.M) {
	Child("launcher", launcher)
	Child("ensemble launcher", ensembleLauncher)
	if os.Getenv("ZKTEST_LEAK") != "" {
		patience = 0
		go forgotten()
	}
	Main(m)
}

func TestServerServesAndStops(t *testing.T) {
	tmp := ownServer(t)
	begin := time.Now()
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, after %v", s.Origin, time.Since(begin).Round(time.Millisecond))
	conn := session(t, s)
	if _, err := conn.Create("/it-serves", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Error(err)
	}
	conn.Close()

	for range 2 {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if left := remains(s.Addr, s.pid, s.container, tmp); left != "" {
		t.Errorf("after Stop %s", left)
	}
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
		t.Run(name, func(t *testing.T) {
			tmp := ownServer(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "ZKTEST_CHILD=launcher")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job, as a terminal makes it
			stdin, err1 := cmd.StdinPipe()
			stdout, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()

			var addr, container string
			var pid int
			if _, err := fmt.Fscanf(stdout, "%q %d %q\n", &addr, &pid, &container); err != nil {
				cmd.Process.Kill()
				t.Fatalf("the child process has started no server: %v", err)
			}
			if left := remains(addr, pid, container, tmp); left == "" {
				t.Error("the child process has a server, but this test cannot see it")
			}
			syscall.Kill(-cmd.Process.Pid, end) // the whole job, as Ctrl-C does
			if err := cmd.Wait(); err == nil {
				t.Error("the child process has come to a good end")
			}
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				left := remains(addr, pid, container, tmp)
				if left == "" {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("20 s after its process has ended %s", left)
				}
			}
		})
	}
}

// launcher is the child process: it starts a server and ends as it is told.
func launcher(_, _ []string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGUSR2)
	s, err := Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Say("%q %d %q", s.Addr, s.pid, s.container)
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

// remains tells what is left of a server that was started with ownServer.
func remains(addr string, pid int, container, tmp string) string {
	var left []string
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		conn.Close()
		left = append(left, addr+" is open")
	}
	// A process that has ended may stay a zombie (Z) for a while.
	if state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output(); pid != 0 && len(state) > 0 && state[0] != 'Z' {
		left = append(left, fmt.Sprintf("process %d runs", pid))
	}
	if container != "" && exec.Command("docker", "inspect", container).Run() == nil {
		left = append(left, "container "+container+" is there")
	}
	if files, _ := filepath.Glob(tmp + "/*"); len(files) > 0 {
		left = append(left, strings.Join(files, " ")+" is there")
	}
	return strings.Join(left, ", ")
}

// session opens a session that ends with the test.
func session(t *testing.T, s *Server) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(s.Servers(), 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for deadline := time.After(10 * time.Second); ; {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			t.Fatalf("no session with %s after 10 s", s.Origin)
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Of two test binaries that choose the same free port, one gets it. The other
// must not take that one's server for its own.
func TestServerIsNotMistakenForAnother(t *testing.T) {
	ownServer(t)
	t.Setenv("ZK_BACKEND", "local")
	first, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	found, err := findLocal()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(first.Addr)
	taken, _ := strconv.Atoi(port)
	second, err := found.launch(t.Context(), taken, taken, Extra{})
	if err == nil {
		second.Stop()
		t.Fatalf("the port of %s was taken, and yet a second server says it is there: %s", first.Origin, second.Origin)
	}
	if !strings.Contains(err.Error(), "BindException") { // what startLocal looks for
		t.Errorf("the error does not tell that the port was taken: %v", err)
	}
}

func TestStartSaysWhyItCannot(t *testing.T) {
	closed := func() string {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	notZooKeeper, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer notZooKeeper.Close()
	go func() {
		for {
			conn, err := notZooKeeper.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "220 mail.example.org\r\n")
			conn.Close()
		}
	}()
	noJar, fakeJar := t.TempDir(), t.TempDir()
	if err := os.WriteFile(fakeJar+"/zookeeper-3.9.3.jar", nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
			map[string]string{"ZK_SERVERS": notZooKeeper.Addr().String()},
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
			s, err := Start(t.Context())
			if err == nil {
				s.Stop()
				t.Fatalf("got a server: %s", s.Origin)
			}
			t.Logf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
			for _, want := range test.want {
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestServersNamesASingleAddressTwice(t *testing.T) {
	for _, test := range []struct{ servers, want []string }{
		{[]string{"a:1"}, []string{"a:1", "a:1"}},
		{[]string{"a:1", "b:2"}, []string{"a:1", "b:2"}},
	} {
		if got := (&Server{servers: test.servers}).Servers(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("Servers of %v: %v, want %v", test.servers, got, test.want)
		}
	}
}

func TestExistingServerIsFoundAndLeftRunning(t *testing.T) {
	shared, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZK_BACKEND", "")
	t.Setenv("ZK_SERVERS", fmt.Sprintf("127.0.0.1:%d, %s", port, shared.Addr)) // the first is down
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr != shared.Addr || len(s.Servers()) != 2 {
		t.Errorf("it is at %s, one of %v; want %s, one of 2", s.Addr, s.Servers(), shared.Addr)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	session(t, shared)
}

func TestWordsTellTheServersOwnTruth(t *testing.T) {
	s, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	conn := session(t, s)
	path, err := conn.Create("/words-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	id := conn.SessionID()

	sessions, err := s.Sessions()
	if err != nil || !sessions[id] {
		t.Errorf("Sessions: %#x is not in %v, %v", id, sessions, err)
	}
	ephemerals, err := s.Ephemerals()
	if err != nil || !reflect.DeepEqual(ephemerals[id], []string{path}) {
		t.Errorf("Ephemerals: %#x has %v, want %s; %v", id, ephemerals[id], path, err)
	}
	counters, err := s.Mntr()
	if err != nil || counters["zk_ephemerals_count"] < 1 || counters["zk_znode_count"] < 2 {
		t.Errorf("Mntr: %d ephemerals, %d znodes, %v", counters["zk_ephemerals_count"], counters["zk_znode_count"], err)
	}

	conn.Close() // the server has ended the session when this returns
	if sessions, err = s.Sessions(); err != nil || sessions[id] {
		t.Errorf("Sessions: %#x is closed and yet in %v, %v", id, sessions, err)
	}
	if ephemerals, err = s.Ephemerals(); err != nil || ephemerals[id] != nil {
		t.Errorf("Ephemerals: %#x is closed and yet has %v, %v", id, ephemerals[id], err)
	}
}

// A member of an ensemble that follows lists sessions in another form; and a
// session's number begins with that of the server that made it.
func TestDumpOfAFollower(t *testing.T) {
	sessions, ephemerals, err := parseDump("SessionTracker dump:\nGlobal Sessions(2):\n" +
		"0x10000191fa70000\t10000ms\n0xff0000191fa70001\t10000ms\n" +
		"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0xff0000191fa70001:\n\t/a\n\t/b c\n" +
		"Connections dump:\nConnections Sets (1)/(1):\n1 expire at Sat Nov 21 02:15:00 UTC 2026:\n\tip: /127.0.0.1:40094 sessionId: 0x0\n")
	const first, second = 0x10000191fa70000, -0xffffe6e058ffff
	if want := map[int64]bool{first: true, second: true}; err != nil || !reflect.DeepEqual(sessions, want) {
		t.Errorf("sessions %v, want %v; %v", sessions, want, err)
	}
	if want := map[int64][]string{second: {"/a", "/b c"}}; !reflect.DeepEqual(ephemerals, want) {
		t.Errorf("ephemerals %v, want %v", ephemerals, want)
	}
}

func TestWordErrors(t *testing.T) {
	answers := map[string]string{
		// As ZooKeeper 3.8 puts it.
		"mntr": "mntr is not executed because it is not in the whitelist.\n",
		"dump": "This ZooKeeper instance is not currently serving requests\n",
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			conn.Read(word)
			fmt.Fprint(conn, answers[string(word)])
			conn.Close()
		}
	}()
	s := &Server{Addr: listener.Addr().String()}
	_, mntr := s.Mntr()
	_, dump := s.Sessions()
	_, unknown := s.Word("what")
	for want, err := range map[string]error{
		"mntr to 127.0.0.1:.*refuses.*4lw.commands.whitelist": mntr,
		"dump to 127.0.0.1:.*not currently serving requests":  dump,
		"what to 127.0.0.1:.*empty answer":                    unknown,
	} {
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMainNamesALeftGoroutine(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "ZKTEST_LEAK=yes")
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "zktest.forgotten") {
		t.Errorf("a goroutine was left, in zktest.forgotten; the test binary ended with %v and said:\n%s", err, output)
	}
}

func forgotten() { select {} }
