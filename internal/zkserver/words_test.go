package zkserver_test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
)

// FuzzDump reads answers to dump that no server gives, and those that one does
// with a session and a path in them.
func FuzzDump(f *testing.F) {
	f.Add("", int64(0), "/")
	f.Add(
		"SessionTracker dump:\n1 expire at Sat Nov 21 02:14:51 UTC 2026:\n\t0x10000191fa70000\nephemeral nodes dump:\n"+
			"Sessions with Ephemerals (1):\n0x10000191fa70000:\n\t/lock/lock-0000000000\nConnections dump:\n",
		int64(-1),
		"/orders/lock-0000000001",
	)
	f.Add("ephemeral nodes dump:/a\n0xfffffffffffffffff:\n\t/b\n0x:\n/c 0x1\n", int64(1), "/a b")
	f.Fuzz(func(t *testing.T, text string, id int64, path string) {
		sessions := make(map[int64][]string)
		err := zkserver.ReadDump(text, sessions)
		assert.Equal(
			t,
			strings.Contains(text, "ephemeral nodes dump:"),
			err == nil,
			"a dump is known by its list of ephemerals: %v",
			err,
		)
		for id := range sessions {
			assert.Contains(t, strings.ToLower(text), strconv.FormatUint(uint64(id), 16))
		}
		for _, path := range slices.Concat(slices.Collect(maps.Values(sessions))...) {
			assert.Contains(t, text, path)
			assert.True(t, strings.HasPrefix(path, "/"), "a path: %q", path)
			assert.NotContains(t, path, "\n")
		}

		path = "/" + strings.TrimSpace(path)
		if strings.Contains(path, "\n") || strings.Contains(path, "dump:") {
			return
		}
		session := fmt.Sprintf("0x%x", uint64(id))
		clear(sessions)
		require.NoError(
			t,
			zkserver.ReadDump(
				"SessionTracker dump:\n1 expire at Sat Nov 21 02:14:51 UTC 2026:\n\t"+session+
					"\nephemeral nodes dump:\nSessions with Ephemerals (1):\n"+session+":\n\t"+path+"\nConnections dump:\n",
				sessions,
			),
		)
		assert.Equal(t, map[int64][]string{id: {path}}, sessions)
	})
}

// A member of an ensemble that follows lists sessions in another form; and a
// session's number begins with that of the server that made it.
func TestDumpOfAFollower(t *testing.T) {
	const first, second = 0x10000191fa70000, -0xffffe6e058ffff
	sessions := map[int64][]string{second: {"/a"}} // which another member has told
	require.NoError(t, zkserver.ReadDump(
		"SessionTracker dump:\nGlobal Sessions(2):\n"+
			"0x10000191fa70000\t10000ms\n0xff0000191fa70001\t10000ms\n"+
			"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0xff0000191fa70001:\n\t/a\n\t/b c\n"+
			"Connections dump:\nConnections Sets (1)/(1):\n1 expire at Sat Nov 21 02:15:00 UTC 2026:\n\tip: /127.0.0.1:40094 sessionId: 0x0\n",
		sessions,
	))
	assert.Equal(t, map[int64][]string{first: nil, second: {"/a", "/b c"}}, sessions)
}

func TestWordErrors(t *testing.T) {
	answers := map[string]string{
		// As ZooKeeper 3.8 puts it.
		"srvr": "Zookeeper version: 3.8.0-none, built on 2022-02-25 08:49 UTC\n",
		"mntr": "mntr is not executed because it is not in the whitelist.\n",
		"dump": "This ZooKeeper instance is not currently serving requests\n",
	}
	t.Setenv("ZK_BACKEND", "existing")
	t.Setenv("ZK_SERVERS", answering(t, func(conn net.Conn) {
		word := make([]byte, 4)
		_, _ = conn.Read(word)
		fmt.Fprint(conn, answers[string(word)])
	}))
	s, err := zkserver.Start(t.Context())
	require.NoError(t, err)
	_, err = s.Mntr()
	assert.ErrorContains(t, err, "mntr to "+s.Addr+": the server refuses this four-letter word")
	_, err = s.Sessions()
	assert.ErrorContains(t, err, "not currently serving requests")
	_, err = s.Word("what")
	assert.ErrorContains(t, err, "an empty answer")
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
