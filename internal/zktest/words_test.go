package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
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
