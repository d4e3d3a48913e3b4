package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/changed"
)

// A storm that finds nothing proves nothing, unless it finds a lock that is broken.
var brokenLocks = []struct {
	name    string
	file    string // of step 5
	changes []changed.Change
}{
	{"no check that the first znode is ours", "lock.go", []changed.Change{
		{Was: "if sessionEnded || directoryGone {", Is: "if directoryGone {"},
		{Was: "\t\tsessionEnded := conn.SessionID() != mine.owner\n"},
		{Was: "\tif !present {", Is: "\tif false && !present {"},
	}},
	{"no lease", "lease.go", []changed.Change{
		{Was: "\tif s.lease.isOver() {\n\t\ts.endLease()\n\t}\n}", Is: "}"},
	}},
	{"a release that is tried once", "lock.go", []changed.Change{{
		Was: "if !l.s.canRetry(err) {\n\t\t\treturn err\n\t\t}\n\t\tif !errors.Is(err, zk.ErrNoServer)",
		Is:  "if true {\n\t\t\treturn err\n\t\t}\n\t\tif !errors.Is(err, zk.ErrNoServer)",
	}}},
	{"a sync instead of a write", "lease.go", []changed.Change{{
		Was: "return s.conn.Delete(s.nobody, -1)",
		Is:  `_, err := s.conn.Sync("/"); return err`,
	}}},
	{"a loss that deletes", "hold.go", []changed.Change{{
		Was: "lock.s.useLease(mine.lease, h.lose)",
		Is:  "lock.s.useLease(mine.lease, func() { h.lose(); go func() { _ = lock.leave(mine) }() })",
	}}},
}

// Each is found within two minutes. That takes minutes: .ci/night asks for it.
func TestTheStormFindsABrokenLock(t *testing.T) {
	if os.Getenv("ZKLOCK_STORM") != "broken" {
		t.Skip("it takes minutes, and .ci/night asks for it with ZKLOCK_STORM=broken")
	}
	const root = "../../.."
	for _, b := range brokenLocks {
		t.Run(b.name, func(t *testing.T) {
			overlay := changed.Overlay(t, filepath.Join(root, "step05_reentrant", b.file), b.changes...)
			program := filepath.Join(t.TempDir(), "storm")
			said, err := exec.Command("go", "build", "-overlay", overlay, "-o", program, ".").CombinedOutput()
			require.NoError(t, err, "%s", said)
			storm := exec.Command(program)
			storm.Dir = root
			storm.Env = append(os.Environ(), "TIME=2m", "SEED=43", "FIRST=1")
			report, err := storm.CombinedOutput()
			require.Error(t, err, "the storm has not found it:\n%s", report)
			require.Regexp(t, `(?m)^step 5: `, string(report), "the storm failed, but not because of step 5")
			t.Logf("%s", report)
		})
	}
}
