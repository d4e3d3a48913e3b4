package wronglocks

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var only = flag.String("only", "", "the variants to try: a regular expression for 'step 5: one guid for all calls'")

// The variants are laid as packages of the module, and judged by one test, eight stories at a time.
func TestTheCheckTellsWrongFromRight(t *testing.T) {
	t.Chdir("../../../..")
	folder, err := os.MkdirTemp(".", "_wronglocks-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, Lay(folder, regexp.MustCompile(*only).MatchString))
	args := []string{"test", "-count=1", "-timeout=9m", "-parallel=8", "./" + folder}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	test := exec.CommandContext(t.Context(), "go", args...)
	server, err := zktest.Shared()
	require.NoError(t, err)
	test.Env = append(os.Environ(), "ZK_BACKEND=existing", "ZK_SERVERS="+strings.Join(server.Servers(), ","))
	said, err := test.CombinedOutput()
	t.Logf("%s", said)
	assert.NoError(t, err)
}

func TestTheListIsComplete(t *testing.T) {
	names := map[string]bool{}
	wrong := 0
	for _, v := range All {
		assert.False(t, names[v.String()], "%v stands there twice", v)
		names[v.String()] = true
		assert.True(t, strings.HasSuffix(v.Belief, "."), "%v: a sentence", v)
		if v.Rejects != nil {
			wrong++
			assert.NotEmpty(t, v.Words, "%v", v)
			e, err := v.exercise()
			require.NoError(t, err)
			asked := append(slices.Clone(e.Goals), property.SilentForLong)
			assert.Contains(t, asked, v.Rejects, "%v: the learner's check has to ask for %q", v, v.Rejects.Name)
		}
	}
	assert.GreaterOrEqual(t, wrong, 40, "wrong locks")
	assert.GreaterOrEqual(t, len(All)-wrong, 8, "right ones")
}
