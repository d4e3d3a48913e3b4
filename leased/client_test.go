package leased

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// An address that can never be reached is refused at once, even beside a good one. Otherwise the client
// library would retry it forever, without success. Beside a good address, the session would use that one: a chroot
// in the other would have no effect.
func TestAnAddressThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	good := z.Servers()[0]
	for address, says := range map[string]string{
		good + "/app":         "supports no chroot: put it before the paths of the locks",
		" " + good:            "it has a space",
		good + " ":            "it has a space",
		good + "\n":           "it has a space",
		good + "," + good:     "give each server a string of its own",
		"zk://" + good:        "it has a scheme",
		"127.0.0.1":           "missing port in address",
		"127.0.0.1:":          "its port is invalid",
		"127.0.0.1:0":         "its port is invalid",
		"127.0.0.1:-1":        "its port is invalid",
		"127.0.0.1:70000":     "its port is invalid",
		"127.0.0.1:zookeeper": "its port is invalid",
		"::1":                 "want host:port, such as zk1:2181 or [::1]:2181",
		":2181":               "it has no host",
		"":                    "missing port in address",
	} {
		for _, servers := range [][]string{{address}, {good, address}} {
			dialed := false
			dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
				dialed = true
				return net.DialTimeout(network, address, timeout)
			}
			s, err := Open(z.Ctx, servers, zktest.SessionTimeout, WithDialer(dial))
			if err == nil {
				s.Close()
			}
			assert.ErrorContains(t, err, says, "%q", servers)
			assert.ErrorContains(t, err, "the address ", "%q", servers)
			assert.False(t, dialed, "%q: it was tried", servers)
		}
	}
	require.Empty(t, badAddress("[::1]:2181"))
}

// When two loops end, the second one logs no reason. The reason of the first one must be kept.
func TestTheLastWordsSayWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	c := &newSession(time.Second).client
	c.Printf("recv loop terminated: %v", os.ErrDeadlineExceeded)
	c.Printf("send loop terminated: %v", error(nil))
	c.Printf("connected to %s", "zk1:2181")
	require.Equal(t, "recv loop terminated: i/o timeout", c.lastWords())
	c.Printf("authentication failed: %s", os.ErrDeadlineExceeded)
	require.Equal(t, "i/o timeout", c.lastWords(), "a handshake that has failed: nobody has logged in")
	c.Printf("authenticated: id=%d, timeout=%d", 7, 4000)
	c.Printf("re-submitting `%d` credentials after reconnect", 1)
	const refused = "error in resending auth creds: zk: client authentication failed"
	c.Printf(refused)
	c.Printf("recv loop terminated: failed to read from connection: %v", net.ErrClosed)
	require.Equal(t, refused, c.lastWords(), "the library has closed the connection for this reason")
}

// The texts that this package looks for in the client library's log and errors are in the library's source.
// In a program with another version of the library, Open returns an error that says so. A copy may have patches.
func TestTheLibrarysTextsAreThoseThatAreRead(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", library)
	said, err := list.CombinedOutput()
	require.NoError(t, err, "%s", said)
	version, dir, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	require.Equal(t, libraryVersion, version, "the version in go.mod, and the one whose texts are known")
	conn, err := os.ReadFile(filepath.Join(dir, "conn.go"))
	require.NoError(t, err)
	for _, text := range []string{`"` + connected, `"` + closeGivenUp, `"` + watchesNotSet, `"` + handshakeFailed,
		`"` + authenticated, `"` + resubmitting} {
		require.Contains(t, string(conn), text)
	}
	require.Contains(t, string(conn), strings.Replace(withoutReason, "<nil>", `%v"`, 1))
	constants, err := os.ReadFile(filepath.Join(dir, "constants.go"))
	require.NoError(t, err)
	require.Contains(t, string(constants), `fmt.Errorf("unknown error: %v", e)`)

	require.NoError(t, checkLibrary())
	built := func(m debug.Module) error {
		return checkLibraryIn([]*debug.Module{{Path: "another", Version: "v1.0.0"}, &m})
	}
	require.NoError(t, built(debug.Module{Path: library, Version: libraryVersion}))
	const is = "github.com/go-zookeeper/zk v1.0.5, " +
		"and this version of leased supports only github.com/go-zookeeper/zk v1.0.4"
	require.ErrorContains(t, built(debug.Module{Path: library, Version: "v1.0.5"}), is)
	fork := &debug.Module{Path: "example.com/fork/zk", Version: libraryVersion}
	replaced := debug.Module{Path: library, Version: libraryVersion, Replace: fork}
	require.NoError(t, built(replaced), "a copy of the version that go.mod requires")
	replaced.Version = "v1.0.5"
	require.ErrorContains(t, built(replaced), is)
}

// Each server is tried twice, and then the library rests for a second. A connection that has ended within a second is
// a try like one that has failed: a server that accepts the session and hangs up gets no more of them.
func TestAConnectionThatEndsAtOnceIsATry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{servers: []string{"zk1:2181", "zk2:2181"}}
		var rests []int
		tries := func(n int, lasts time.Duration) {
			rests = nil
			for i := range n {
				if _, rest := h.Next(); rest {
					rests = append(rests, i)
				}
				h.Connected()
				time.Sleep(lasts)
			}
		}
		tries(12, lasting-1)
		require.Equal(t, []int{4, 8}, rests, "tries before which the library rests")
		tries(12, lasting)
		require.Equal(t, []int{0}, rests, "when connections last: the one before had not")
	})
}

// A server accepts the session and hangs up, again and again. The log says so once. The outage is over when a
// connection has lasted.
func TestAnOutageWithShortConnectionsIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 8 * time.Second
		h := &heard{}
		s := dummy(t, timeout)
		h.logger()(s)
		go s.log.keep(s.done)
		s.client.Printf("recv loop terminated: %v", io.ErrUnexpectedEOF)
		_, end := s.newTry(t.Context(), "/lock", true)
		line := &wire{}
		s.granted(line, time.Now(), 7, timeout)
		for range 50 {
			s.disconnected(line)
			time.Sleep(lasting / 10)
			line = &wire{}
			s.granted(line, time.Now(), 7, timeout)
			time.Sleep(lasting / 10)
		}
		require.Len(t, h.all(), 1, "%q", h.all())
		warned := h.has("level=WARN", "there is no connection, and calls to Lock wait", "unexpected EOF")
		require.True(t, warned, "%q", h.all())
		require.Contains(t, s.whyNoConnection(), "the connection was lost a moment ago: recv loop terminated: unexpected EOF")
		time.Sleep(lasting)
		synctest.Wait()
		require.Len(t, h.all(), 2, "%q", h.all())
		require.True(t, h.has("level=INFO", "there is a connection again"), "%q", h.all())
		require.Empty(t, s.whyNoConnection())
		s.disconnected(line)
		time.Sleep(timeout/2 + lasting)
		synctest.Wait()
		require.Len(t, h.all(), 3, "another outage: %q", h.all())
		end()
		s.markClosed(byClose)
	})
}

// The patches in upstream.md apply to the library, one after the other, and the library builds after each.
// Both editions of the page have the same patches.
func TestThePatchesForTheLibraryApply(t *testing.T) {
	t.Parallel()
	patches := diffsIn(t, "upstream.md")
	require.NotEmpty(t, patches)
	require.Equal(t, patches, diffsIn(t, "upstream.zh-CN.md"))
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", library).Output()
	require.NoError(t, err)
	patched := filepath.Join(t.TempDir(), "zk")
	require.NoError(t, os.CopyFS(patched, os.DirFS(strings.TrimSpace(string(dir)))))
	for _, patch := range patches {
		for _, command := range [][]string{{"git", "apply", "-"}, {"go", "build", "."}} {
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Dir, cmd.Stdin = patched, strings.NewReader(patch)
			cmd.Env = append(os.Environ(), "GOWORK=off", "GIT_CEILING_DIRECTORIES="+filepath.Dir(patched))
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%v: %s, with\n%s", command, said, patch)
		}
	}
}

// diffsIn returns the blocks of a page that are diffs.
func diffsIn(t *testing.T, page string) (diffs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, block := range strings.Split(string(text), "```diff\n")[1:] {
		diff, _, _ := strings.Cut(block, "```")
		diffs = append(diffs, diff)
	}
	return diffs
}
