package zkserver

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDump reads answers to dump that no server gives, and those that one does
// with a session and a path in them.
func FuzzDump(f *testing.F) {
	f.Add("", int64(0), "/")
	f.Add("SessionTracker dump:\n1 expire at Sat Nov 21 02:14:51 UTC 2026:\n\t0x10000191fa70000\nephemeral nodes dump:\n"+
		"Sessions with Ephemerals (1):\n0x10000191fa70000:\n\t/lock/lock-0000000000\nConnections dump:\n", int64(-1), "/orders/lock-0000000001")
	f.Add("ephemeral nodes dump:/a\n0xfffffffffffffffff:\n\t/b\n0x:\n/c 0x1\n", int64(1), "/a b")
	f.Fuzz(func(t *testing.T, text string, id int64, path string) {
		sessions, ephemerals, err := parseDump(text)
		if (err == nil) != strings.Contains(text, "ephemeral nodes dump:") {
			t.Errorf("%q is a dump: %v", text, err)
		}
		for id := range sessions {
			if !strings.Contains(strings.ToLower(text), strconv.FormatUint(uint64(id), 16)) {
				t.Errorf("%q has no session %#x", text, uint64(id))
			}
		}
		for _, path := range slices.Concat(slices.Collect(maps.Values(ephemerals))...) {
			if !strings.HasPrefix(path, "/") || !strings.Contains(text, path) || strings.Contains(path, "\n") {
				t.Errorf("%q has no path %q", text, path)
			}
		}

		path = "/" + strings.TrimSpace(path)
		if strings.Contains(path, "\n") || strings.Contains(path, "dump:") {
			return
		}
		session := fmt.Sprintf("0x%x", uint64(id))
		sessions, ephemerals, err = parseDump("SessionTracker dump:\n1 expire at Sat Nov 21 02:14:51 UTC 2026:\n\t" + session +
			"\nephemeral nodes dump:\nSessions with Ephemerals (1):\n" + session + ":\n\t" + path + "\nConnections dump:\n")
		if err != nil || len(sessions) != 1 || !sessions[id] || len(ephemerals) != 1 || !slices.Equal(ephemerals[id], []string{path}) {
			t.Errorf("session %s with %q was read as %v, %v, %v", session, path, sessions, ephemerals, err)
		}
	})
}

// A member of an ensemble that follows lists sessions in another form; and a
// session's number begins with that of the server that made it.
func TestDumpOfAFollower(t *testing.T) {
	sessions, ephemerals, err := parseDump("SessionTracker dump:\nGlobal Sessions(2):\n" +
		"0x10000191fa70000\t10000ms\n0xff0000191fa70001\t10000ms\n" +
		"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0xff0000191fa70001:\n\t/a\n\t/b c\n" +
		"Connections dump:\nConnections Sets (1)/(1):\n1 expire at Sat Nov 21 02:15:00 UTC 2026:\n\tip: /127.0.0.1:40094 sessionId: 0x0\n")
	require.NoError(t, err)
	const first, second = 0x10000191fa70000, -0xffffe6e058ffff
	require.Equal(t, map[int64]bool{first: true, second: true}, sessions)
	require.Equal(t, map[int64][]string{second: {"/a", "/b c"}}, ephemerals)
}

func TestWordErrors(t *testing.T) {
	answers := map[string]string{
		// As ZooKeeper 3.8 puts it.
		"mntr": "mntr is not executed because it is not in the whitelist.\n",
		"dump": "This ZooKeeper instance is not currently serving requests\n",
	}
	s := &Server{Addr: answering(t, func(conn net.Conn) {
		word := make([]byte, 4)
		_, _ = conn.Read(word)
		fmt.Fprint(conn, answers[string(word)])
	})}
	_, mntr := s.Mntr()
	require.ErrorContains(t, mntr, "mntr to "+s.Addr)
	require.ErrorIs(t, mntr, errNotWhitelisted)
	_, dump := s.Sessions()
	require.ErrorContains(t, dump, "not currently serving requests")
	_, unknown := s.Word("what")
	require.ErrorContains(t, unknown, "an empty answer")
}

// answering is the address of somebody who answers each connection, and closes it.
func answering(t *testing.T, answer func(net.Conn)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn)
			conn.Close()
		}
	}()
	return listener.Addr().String()
}
