package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/process"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	if process.Plays("tour") {
		go process.EndWithParent()
		os.Exit(run(os.Args[1:]))
	}
	zktest.Main(m)
}

// tourProcess is this test binary in the role of the tour.
func tourProcess(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"-page", t.TempDir() + "/tour.html"}, args...)
	cmd := process.InRole("tour", exec.CommandContext(t.Context(), os.Args[0], args...))
	cmd.Env = append(cmd.Env, env...)
	stdin, err := cmd.StdinPipe() // a child ends when this does
	require.NoError(t, err)
	t.Cleanup(func() { stdin.Close() })
	return cmd
}

func TestTheTableIsAloneOnStdout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{
			nil,
			`(?s)^zklock, .*step 4 +zk\.Lock\n.*the holder releases while 10 wait\n` +
				`  notifications +1 +1\n.*The Go client's own lock`,
		},
		{
			[]string{"matrix"},
			`(?s)^Which lock .*one holder at a time +✓ +✓\n.*step 4, chain: what was seen\n` +
				`.*✗ the holder may lock again: A holds the lock and waits for it`,
		},
	} {
		t.Run(strings.Join(append(test.args, "tour"), " "), func(t *testing.T) {
			t.Parallel()
			server, err := zktest.Shared()
			require.NoError(t, err)
			cmd := tourProcess(
				t,
				[]string{"ZK_BACKEND=", "ZK_SERVERS=" + server.Addr},
				append([]string{"-steps", "04", "-waiters", "10"}, test.args...)...,
			)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			require.NoError(t, err, "%s", &stderr)
			assert.Regexp(t, test.want, string(stdout))
			assert.Contains(t, stderr.String(), "looking for a ZooKeeper\n", "progress goes to stderr")
		})
	}
}

func TestTourSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env, args []string
		want      string
	}{
		{
			[]string{"ZK_BACKEND=", "ZK_SERVERS=127.0.0.1:1"},
			nil,
			`no ZooKeeper was found:\n +existing .*refused\n +to repair it: `,
		},
		{nil, []string{"-steps", "3,9"}, `STEPS=3,9: there is no step "9"`},
		{nil, []string{"-waiters", "many"}, `invalid value "many" for flag -waiters: parse error \(see make help\)\n$`},
		{nil, []string{"-waiters", "9"}, `WAITERS=9: .* from 10 to`},
		{nil, []string{"matrxi"}, `usage: tour \[matrix \| runs \| herd\], and not matrxi`},
	} {
		cmd := tourProcess(t, test.env, test.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, _ := cmd.Output()
		assert.Equal(t, 1, cmd.ProcessState.ExitCode(), "the exit code of %v %v", test.env, test.args)
		assert.Empty(t, string(stdout), "%v %v", test.env, test.args)
		assert.Regexp(t, test.want, stderr.String(), "%v %v", test.env, test.args)
	}
}

// Ctrl-C ends the tour, and its own server with it.
func TestCtrlCEndsTheServer(t *testing.T) {
	t.Parallel()
	address := interrupted(t, "ZK_SERVERS=", "ZK_BACKEND=")
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		conn.Close()
	}
	assert.Error(t, err, "the server on %s has ended", address)
}

// On somebody else's server, Ctrl-C leaves nothing behind.
func TestCtrlCLeavesNothingOnTheServer(t *testing.T) {
	if os.Getenv("ZK_SERVERS") == "" {
		t.Parallel()
	} else { // not on this one: others are on it
		t.Setenv("ZK_SERVERS", "")
		t.Setenv("ZK_BACKEND", "")
	}
	server, err := zkserver.Start(t.Context())
	require.NoError(t, err)
	defer server.Stop()
	z := zktest.NewOn(t, server)
	before := z.Names("/")
	interrupted(t, "ZK_SERVERS="+server.Addr, "ZK_BACKEND=")
	assert.ElementsMatch(t, before, z.Names("/"), "the znodes before and after")
}

// interrupted starts the tour, presses Ctrl-C while a crowd waits, and returns
// the address of the tour's server.
func interrupted(t *testing.T, env ...string) (address string) {
	t.Helper()
	cmd := tourProcess(t, env, "-waiters", "10")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(stderr); lines.Scan() && !strings.Contains(lines.Text(), "10 clients"); {
		if found := regexp.MustCompile(`\S+:\d+$`).FindString(lines.Text()); found != "" {
			address = found
		}
	}
	assert.NotEmpty(t, address, "the tour tells its server's address")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	rest, _ := io.ReadAll(stderr)
	_ = cmd.Wait()
	assert.Equal(t, 130, cmd.ProcessState.ExitCode(), "the exit code")
	assert.True(t, strings.HasSuffix(string(rest), "stopped\n"), "its last words: %q", rest)
	return address
}
