//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	if os.Getenv("ZK_TEST") == "" {
		zktest.Main(m)
	}
	if len(os.Args) == 1 { // it keeps a server
		go func() { // it ends with the test, however that ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
	}
	os.Exit(run(os.Args[1:]))
}

// terminal is a command in a terminal of its own.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys io.WriteCloser
	out  string // the file with what it says
	seen int    // what stands before it was waited for
}

// typed starts a command in a folder, with this ZK_SERVERS.
func typed(t *testing.T, dir, servers string, args ...string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*zktest.Patience)
	out, err := os.CreateTemp(t.TempDir(), "said")
	require.NoError(t, err)
	defer out.Close()
	c := &terminal{t: t, cmd: exec.CommandContext(ctx, os.Args[0], args...), out: out.Name()}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, out, out
	c.cmd.Env = append(os.Environ(), "ZK_TEST=1", "TMPDIR="+dir, "ZK_SERVERS="+servers)
	if os.Getenv("ZK_BACKEND") == "existing" {
		c.cmd.Env = append(c.cmd.Env, "ZK_BACKEND=")
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.keys, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		c.signal(syscall.SIGKILL)
		_ = c.cmd.Wait()
		cancel()
	})
	return c
}

// signal is what a key such as Ctrl-C sends: to all processes of the terminal.
func (c *terminal) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

func (c *terminal) enter() { _, _ = io.WriteString(c.keys, "\n") }

// String is what the command has said.
func (c *terminal) String() string {
	said, _ := os.ReadFile(c.out)
	return string(said)
}

// says waits for a text, behind the last that was waited for.
func (c *terminal) says(text string) {
	c.t.Helper()
	require.Eventually(
		c.t,
		func() bool {
			said := c.String()
			i := strings.Index(said[c.seen:], text)
			if i >= 0 {
				c.seen += i + len(text)
			}
			return i >= 0
		},
		zktest.Patience,
		10*time.Millisecond,
		"%v did not say %q. It has said:\n%v",
		c.cmd.Args[1:],
		text,
		c,
	)
}

// ends waits for the end of the command, with an exit code: -1 after a signal.
func (c *terminal) ends(code int) {
	c.t.Helper()
	_ = c.cmd.Wait()
	require.Equal(
		c.t,
		code,
		c.cmd.ProcessState.ExitCode(),
		"the exit code of %v, which has said:\n%v",
		c.cmd.Args[1:],
		c,
	)
}

// A chapter is what a learner does with a step, on the server that make zk keeps in dir.
type chapter struct {
	*testing.T
	step, dir, addr string
	conn            *zk.Conn
	typed           []*terminal
}

// client types make zk STEP=, and waits until it says something.
func (c *chapter) client(says, name string, more ...string) *terminal {
	c.Helper()
	args := []string{"-step", c.step, "-name", name}
	a := typed(c.T, c.dir, "", append(args, more...)...)
	c.typed = append(c.typed, a)
	a.says(", with a timeout of 6s")
	require.NotContains(c, a.String(), "its connection", "it has just come")
	a.says(says)
	return a
}

func (c *chapter) queue() []string {
	names, _, err := c.conn.Children("/locks/step" + c.step)
	require.NoError(c, err)
	return names
}

// The chapters' part "Try it by hand", in all steps at the same time, on the server that make zk
// keeps. What a chapter quotes is what the clients say, in that order.
func TestTheChaptersInTerminals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := typed(t, dir, "")
	server.says("make zk STEP=1 NAME=ada")
	text, err := os.ReadFile(filepath.Join(dir, addressFile))
	require.NoError(t, err)
	addr := string(text)
	require.Contains(t, server.String(), addr)
	conn, _, err := zk.Connect([]string{addr, addr}, zktest.SessionTimeout, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer conn.Close()

	t.Run("while it runs", func(t *testing.T) {
		for step, play := range map[string]func(*chapter){
			"01": crashLocksAllOut,
			"02": crashLetsTheNextIn,
			"03": allAreTold,
			"04": oneIsTold,
			"05": pausedHolderIsTold,
			"06": readersShare,
		} {
			t.Run("step "+step, func(t *testing.T) {
				t.Parallel()
				c := &chapter{T: t, step: step, dir: dir, addr: addr, conn: conn}
				play(c)
				c.saysWhatIsQuoted()
			})
		}
		t.Run("a second server", func(t *testing.T) {
			t.Parallel()
			refused(t, dir, "", "make zk is already running in another terminal: its server is at "+addr)
		})
	})

	server.signal(syscall.SIGINT)
	server.ends(0)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*")) // out/zk, and the server's own folder
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = (&zkserver.Server{Addr: addr}).Word("srvr")
	require.ErrorContains(t, err, "refused")
}

var (
	quoted  = regexp.MustCompile(`(?m)^(\w+) [\d:.]{12}  (.*)$`)
	varying = regexp.MustCompile(`_c_[0-9a-f]{16}-lock-\d{10}|0x[0-9a-f]+|[0-9a-f]{16}|\d+ times|token is \d+`)
)

// saysWhatIsQuoted tests that the chapter's quotes have been said.
func (c *chapter) saysWhatIsQuoted() {
	pages, err := filepath.Glob("../../../step" + c.step + "_*/*.md")
	require.NoError(c, err)
	var quotes [][]string
	for _, page := range pages {
		if strings.HasSuffix(page, ".zh-CN.md") {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(c, err)
		quotes = append(quotes, quoted.FindAllStringSubmatch(string(text), -1)...)
	}
	require.NotEmpty(c, quotes, "%v", pages)
	said := map[string][]string{}
	for _, a := range c.typed {
		for _, m := range quoted.FindAllStringSubmatch(a.String(), -1) {
			said[m[1]] = append(said[m[1]], varying.ReplaceAllString(m[2], "…"))
		}
	}
	for _, m := range quotes {
		i := slices.Index(said[m[1]], varying.ReplaceAllString(m[2], "…"))
		require.GreaterOrEqual(
			c,
			i,
			0,
			"step %s quotes %q; %s says, after what is quoted before:\n%s",
			c.step,
			m[0],
			m[1],
			strings.Join(said[m[1]], "\n"),
		)
		said[m[1]] = said[m[1]][i+1:]
	}
}

func crashLocksAllOut(c *chapter) {
	a := c.client("holds the lock", "ada")
	b := c.client("tried to create /locks/step01: it already exists", "ben")
	a.signal(syscall.SIGQUIT)
	a.ends(-1)
	require.NotContains(c, a.String(), "goroutine")
	_, stat, err := c.conn.Exists("/locks/step01")
	require.NoError(c, err)
	require.Zero(c, stat.EphemeralOwner, "as get -s in zkCli.sh shows it")
	b.seen = len(b.String())
	b.says("it already exists (") // it polls each 20 ms
	b.says("it already exists (")
	require.NotContains(c, b.String(), "holds the lock")
	require.NoError(c, c.conn.Delete("/locks/step01", -1), "as in zkCli.sh")
	b.says("holds the lock")
	b.enter()
	b.ends(0)
}

func crashLetsTheNextIn(c *chapter) {
	a := c.client("holds the lock", "ada")
	b := c.client("listed /locks/step02: 2 names (", "ben")
	a.signal(syscall.SIGKILL)
	b.says("holds the lock")
	require.Equal(c, []string{"lock-0000000001"}, c.queue())
	b.enter()
	b.says("deleted lock-0000000001")
	b.says("released the lock")
	b.ends(0)
	require.Empty(c, c.queue())
}

func allAreTold(c *chapter) {
	elsewhere := c.TempDir() // where no make zk runs: ZK_SERVERS names the server
	other := typed(c.T, elsewhere, c.addr)
	other.says("ZK_SERVERS is set, so there are servers already: " + c.addr)
	other.ends(0)
	a := typed(c.T, elsewhere, c.addr, "-step", "3", "-name", "ada")
	a.says("holds the lock")
	b := c.client("2 names, and set a watch", "ben")
	waiter := c.client("3 names, and set a watch", "cleo")
	a.signal(syscall.SIGQUIT)
	b.says("holds the lock")
	waiter.says("2 names, and set a watch")
	waiter.signal(syscall.SIGINT)
	waiter.says("gave up")
	waiter.ends(0)
	b.signal(syscall.SIGINT)
	b.says("released the lock")
	b.ends(0)
	require.Empty(c, c.queue())
}

func oneIsTold(c *chapter) {
	a := c.client("holds the lock", "ada")
	b := c.client("is not the first: it watches lock-0000000000", "ben")
	last := c.client("is not the first: it watches lock-0000000001", "cleo")
	b.enter() // before it holds: that counts for nothing
	b.signal(syscall.SIGQUIT)
	last.says("got a notification: lock-0000000001 was deleted")
	last.says("is not the first: it watches lock-0000000000")
	require.NotContains(c, a.String(), "got a notification")
	a.keys.Close()
	a.says("released the lock")
	a.ends(0)
	last.says("holds the lock")
	last.enter()
	last.ends(0)
	pausedHolderLearnsByUnlock(c)
}

func pausedHolderLearnsByUnlock(c *chapter) {
	a := c.client("holds the lock", "ada")
	b := c.client("is not the first: it watches lock-0000000003", "ben")
	a.signal(syscall.SIGSTOP)
	b.says("holds the lock")
	a.signal(syscall.SIGCONT)
	a.says("has expired; it has a new one")
	a.enter()
	a.says("Unlock has failed")
	a.says(zk.ErrNoNode.Error())
	a.ends(1)
	b.enter()
	b.ends(0)
}

func pausedHolderIsTold(c *chapter) {
	a := c.client("holds the lock, its token is ", "ada")
	b := c.client("is not the first", "ben")
	a.signal(syscall.SIGSTOP)
	b.says("holds the lock, its token is ")
	a.signal(syscall.SIGCONT)
	a.says("stopped, and called Unlock")
	a.ends(0)
	b.enter()
	b.ends(0)
}

func readersShare(c *chapter) {
	refused(c.T, c.dir, "", "READ=1 with STEP=5: only step 6 has readers", "-step", "5", "-read")
	first := c.client("holds the lock", "ada")
	a := c.client("is not the first", "ben", "-read")
	b := c.client("is not the first", "cleo", "-read")
	writer := c.client("is not the first", "")
	require.Contains(c, writer.String(), fmt.Sprintf("\np%d ", writer.cmd.Process.Pid), "a client without a name")
	first.enter()
	first.ends(0)
	a.says("holds the lock")
	b.says("holds the lock")
	require.NotContains(c, writer.String(), "holds the lock")
	a.enter()
	b.enter()
	writer.says("holds the lock")
	writer.enter()
	writer.ends(0)
}

func TestAClientWithoutAServer(t *testing.T) {
	t.Parallel()
	const noServer = "there is no server: type make zk in another terminal first"
	dir := t.TempDir()
	refused(t, dir, "", noServer, "-step", "1", "-name", "a")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, addressFile), []byte("127.0.0.1:1"), 0o644))
	refused(t, dir, "", noServer, "-step", "1", "-name", "a") // zk was killed
	refused(t, dir, "127.0.0.1:1", "ZK_SERVERS=127.0.0.1:1: ", "-step", "1", "-name", "a")
}

// refused tests that a command says why it cannot be.
func refused(t *testing.T, dir, servers, why string, args ...string) {
	t.Helper()
	c := typed(t, dir, servers, args...)
	c.says(why)
	c.ends(1)
}

func TestWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"zk hold: there are only zk install": {"hold"},
		"STEP=7: want a step from 1 to 6":    {"-step", "7"},
		"STEP=-1: want a step from 1 to 6":   {"-step", "-1"},
		"STEP=foo: want a step from 1 to 6":  {"-step", "foo"},
	} {
		assert.ErrorContains(t, do(context.Background(), nil, args), want)
	}
}
