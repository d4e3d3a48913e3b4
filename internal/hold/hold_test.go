package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

// The test binary is also the command that a test types: see typed.
func TestMain(m *testing.M) {
	if os.Getenv("HOLD_TEST") == "" {
		zktest.Main(m)
	}
	if os.Args[1] == "zk" {
		go func() { // it ends with the test, however that ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
	}
	os.Exit(run(os.Args[1:]))
}

// terminal is a command in a terminal of its own.
type terminal struct {
	t     *testing.T
	cmd   *exec.Cmd
	keys  io.WriteCloser
	lines chan string
	said  string
}

// typed starts a command in a folder, with this ZK_SERVERS.
func typed(t *testing.T, dir, servers string, args ...string) *terminal {
	t.Helper()
	c := &terminal{t: t, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 1000)}
	c.cmd.Dir = dir
	c.cmd.Env = append(os.Environ(), "HOLD_TEST=1", "TMPDIR="+dir, "ZK_SERVERS="+servers)
	if os.Getenv("ZK_BACKEND") == "existing" {
		c.cmd.Env = append(c.cmd.Env, "ZK_BACKEND=")
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.cmd.Stderr = c.cmd.Stdout
	c.keys, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
		_ = c.cmd.Wait() // the exit code is looked at by ends
	}()
	t.Cleanup(func() {
		c.signal(syscall.SIGKILL)
		for range c.lines {
		}
	})
	return c
}

// signal is what a key such as Ctrl-C sends: to all processes of the terminal.
func (c *terminal) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

func (c *terminal) enter() {
	c.t.Helper()
	_, err := io.WriteString(c.keys, "\n")
	require.NoError(c.t, err)
}

// next returns the next line, and whether there is one before the command ends.
func (c *terminal) next(what string) (line string, ok bool) {
	c.t.Helper()
	select {
	case line, ok = <-c.lines:
		c.said += line + "\n"
	case <-time.After(zktest.Patience):
		require.Fail(c.t, "waited in vain", "for %v %s; so far:\n%s", c.cmd.Args[1:], what, c.said)
	}
	return line, ok
}

// says returns the next line in which the text stands.
func (c *terminal) says(text string) string {
	c.t.Helper()
	for {
		line, ok := c.next("to say: " + text)
		require.True(c.t, ok, "%v has ended, and not said: %s\n%s", c.cmd.Args[1:], text, c.said)
		if strings.Contains(line, text) {
			return line
		}
	}
}

// ends returns the exit code, -1 after a signal.
func (c *terminal) ends() int {
	c.t.Helper()
	for ok := true; ok; {
		_, ok = c.next("to end")
	}
	return c.cmd.ProcessState.ExitCode()
}

var session = regexp.MustCompile(`my session at \S+ is 0x([0-9a-f]+), time-out 6 s`)

// holder types hold, and returns with the session.
func holder(t *testing.T, dir string, args ...string) (c *terminal, id int64) {
	t.Helper()
	c = typed(t, dir, "", append([]string{"hold"}, args...)...)
	m := session.FindStringSubmatch(c.says("my session"))
	require.NotNil(t, m, c.said)
	n, err := strconv.ParseUint(m[1], 16, 64)
	require.NoError(t, err)
	return c, int64(n)
}

func TestHoldInTerminals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := typed(t, dir, "", "zk")
	server.says("make hold STEP=01 NAME=a")
	addr, err := os.ReadFile(filepath.Join(dir, addressFile))
	require.NoError(t, err)
	require.Contains(t, server.said, string(addr))

	t.Run("while it runs", func(t *testing.T) { holds(t, dir, string(addr)) })

	server.signal(syscall.SIGINT)
	require.Zero(t, server.ends(), server.said)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*")) // out/zk, and the server's own folder
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = (&zkserver.Server{Addr: string(addr)}).Word("srvr")
	require.ErrorContains(t, err, "refused")
}

// holds runs what a learner does, in all steps at the same time.
func holds(t *testing.T, dir, addr string) {
	conn, _, err := zk.Connect([]string{addr, addr}, zktest.SessionTimeout, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	names := func(t *testing.T, path string) []string {
		t.Helper()
		names, _, err := conn.Children(path)
		require.NoError(t, err)
		return names
	}
	lives := func(id int64) (bool, error) {
		all, err := (&zkserver.Server{Addr: addr}).Sessions()
		return all[id], err
	}
	expired := func(t *testing.T, id int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			alive, err := lives(id)
			return err == nil && !alive
		}, zktest.Patience, 20*time.Millisecond, "waited in vain for the session %#x to end", id)
	}

	t.Run("step 1: a crash locks all out", func(t *testing.T) {
		t.Parallel()
		a, id := holder(t, dir, "01", "a")
		a.says("I hold the lock")
		b, _ := holder(t, dir, "01", "b")
		b.says("I try to create /locks/step01: it is there already")
		a.signal(syscall.SIGQUIT)
		require.Equal(t, -1, a.ends())
		require.NotContains(t, a.said, "goroutine")
		expired(t, id)
		for range len(b.lines) + 2 { // what it says later, and polls each 20 ms
			b.says("it is there already (")
		}
		require.Contains(t, names(t, "/locks"), "step01")
		b.signal(syscall.SIGINT)
		b.says("I have given up")
		require.Zero(t, b.ends())
		require.NotContains(t, b.said, "I hold the lock")
	})

	t.Run("step 2: after a crash the next one is let in", func(t *testing.T) {
		t.Parallel()
		a, id := holder(t, dir, "02", "a")
		a.says("I create lock-0000000000")
		a.says("I list /locks/step02: 1 name")
		a.says("I hold the lock")
		b, _ := holder(t, dir, "2", "b")
		b.says("I create lock-0000000001")
		b.says("I list /locks/step02: 2 names")
		alive, err := lives(id)
		require.NoError(t, err)
		require.True(t, alive)
		a.signal(syscall.SIGKILL)
		b.says("I list /locks/step02: 1 name")
		b.says("I hold the lock")
		expired(t, id)
		require.Equal(t, []string{"lock-0000000001"}, names(t, "/locks/step02"))
		b.enter()
		b.says("I delete lock-0000000001")
		b.says("I have released the lock")
		require.Zero(t, b.ends())
		require.Empty(t, names(t, "/locks/step02"))
	})

	t.Run("step 3: on servers that ZK_SERVERS names", func(t *testing.T) {
		t.Parallel()
		elsewhere := t.TempDir()
		other := typed(t, elsewhere, addr, "zk")
		other.says("ZK_SERVERS is set, so there are servers already: " + addr)
		require.Zero(t, other.ends())
		a := typed(t, elsewhere, addr, "hold", "03", "a")
		a.says("I hold the lock")
		b, _ := holder(t, dir, "03", "b")
		b.says("2 names; I watch the list")
		a.says("I am told that the children of /locks/step03 have changed")
		a.enter()
		b.says("I am told that the children of /locks/step03 have changed")
		b.says("I hold the lock")
		b.signal(syscall.SIGINT)
		b.says("I have released the lock")
		require.Zero(t, b.ends())
		require.Empty(t, names(t, "/locks/step03"))
	})

	t.Run("step 4: told by the one before", func(t *testing.T) {
		t.Parallel()
		a, _ := holder(t, dir, "04", "a")
		a.says("I hold the lock")
		b, _ := holder(t, dir, "04", "b")
		b.enter() // before it holds: that counts for nothing
		b.says("I am not the first: I watch lock-0000000000")
		a.enter()
		b.says("I am told that lock-0000000000 is gone")
		b.says("I hold the lock")
		b.keys.Close()
		b.says("I have released the lock")
		require.Zero(t, b.ends())
	})

	t.Run("step 5: a paused holder is told", func(t *testing.T) {
		t.Parallel()
		a, _ := holder(t, dir, "05", "a")
		a.says("I hold the lock, my token is ")
		a.says("I renew my lease")
		b, _ := holder(t, dir, "05", "b")
		b.says("I am not the first")
		a.signal(syscall.SIGSTOP)
		b.says("I hold the lock, my token is ")
		a.signal(syscall.SIGCONT)
		a.says("I am told: the lock was lost")
		a.says("I have stopped, and called Unlock")
		require.Zero(t, a.ends())
		b.enter()
		require.Zero(t, b.ends())
	})

	t.Run("step 6: readers", func(t *testing.T) {
		t.Parallel()
		a, _ := holder(t, dir, "06", "a", "read")
		b, _ := holder(t, dir, "06", "b", "read")
		a.says("I hold the lock")
		b.says("I hold the lock")
		writer, _ := holder(t, dir, "06")
		require.True(t, strings.HasPrefix(writer.says("I am not the first"), fmt.Sprintf("p%d ", writer.cmd.Process.Pid)), writer.said)
		a.enter()
		b.enter()
		writer.says("I hold the lock")
		writer.enter()
		require.Zero(t, writer.ends())
	})

	t.Run("a second server", func(t *testing.T) {
		t.Parallel()
		second := typed(t, dir, "", "zk")
		second.says("make zk runs already, in another terminal: its server is at " + addr)
		require.Equal(t, 1, second.ends())
		text, err := os.ReadFile(filepath.Join(dir, addressFile))
		require.NoError(t, err)
		require.Equal(t, addr, string(text))
	})
}

func TestHoldWithoutAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, prepare := range []func(){
		func() {},
		func() { // zk was killed
			require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, addressFile), []byte("127.0.0.1:1"), 0o644))
		},
	} {
		prepare()
		a := typed(t, dir, "", "hold", "01", "a")
		a.says("there is no server: type make zk in another terminal first")
		require.Equal(t, 1, a.ends())
	}
	a := typed(t, dir, "127.0.0.1:1", "hold", "01", "a")
	a.says("ZK_SERVERS=127.0.0.1:1: it does not serve")
	require.Equal(t, 1, a.ends())
}

func TestWhatCannotBeHeld(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"usage":                      {},
		"STEP=7: there are":          {"hold", "7", "a"},
		"STEP=x: there are":          {"hold", "x"},
		"only step 6 has readers":    {"hold", "05", "a", "read"},
		"go run ./internal/hold zk ": {"hold", "06", "a", "write"},
	} {
		assert.ErrorContains(t, do(context.Background(), nil, args), want)
	}
}
