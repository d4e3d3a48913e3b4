package explore_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/changed"
)

// change is one in step 5's lock.go.
type change struct {
	name   string
	was    string
	is     string
	faults int
	breaks string // the invariant
}

var changes = []change{
	{
		name:   "no look after the wake-up",
		was:    "case <-gone: // or the session has ended: the next round finds out\n",
		is:     "case <-gone:\nmine.lease = current\nmine.token = stat.Pzxid\nreturn mine, nil\n",
		breaks: "a token is not greater than the one before",
	},
	{
		name:   "ExistsW for GetW",
		was:    "_, _, gone, err := conn.GetW(",
		is:     "_, _, gone, err := conn.ExistsW(",
		breaks: "nobody is inside, and a client waits for ever",
	},
	{
		name:   "a guid that is not looked for",
		was:    "found, err := l.find(ownName)\n",
		is:     "found, err := place{}, error(nil)\n",
		faults: 1,
		breaks: "nobody is inside, and a client waits for ever",
	},
	{
		name:   "NoNode taken for success at the first delete",
		was:    "sessionEnded := l.s.isClosed() ||",
		is:     "if errors.Is(err, zk.ErrNoNode) {\nreturn nil\n}\nsessionEnded := l.s.isClosed() ||",
		faults: 1,
		breaks: "Unlock does not tell that the session has ended",
	},
	{
		name:   "the own znode is not deleted on giving up",
		was:    "leaveErr := l.leave(mine)\n\tif znodeStays",
		is:     "var leaveErr error\n\tif znodeStays",
		faults: 1,
		breaks: "a znode is left behind",
	},
}

// Each of these changes is found, and no property says where to look.
func TestAChangedStep5IsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			program := c.program(t)
			r, _ := exploredBy(t, program, two(c.faults), "step 5", breaks(c.breaks))
			t.Logf("found after %d orders", r.Orders)
			require.Contains(t, r.Broken(), c.breaks)
			t.Log(strings.Join(r.Findings[c.breaks].Shortest.Tell(), "\n"))
		})
	}
}

// program builds this test with the changed lock.
func (c change) program(t *testing.T) string {
	t.Helper()
	overlay := changed.Overlay(t, "../../../step05_reentrant/lock.go", changed.Change{Was: c.was, Is: c.is})
	program := filepath.Join(t.TempDir(), "program")
	said, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", said)
	return program
}
