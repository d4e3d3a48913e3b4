package zkserver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
)

// A server starts wherever TMPDIR is, whatever language Java takes the machine to speak, and
// leaves nothing behind or beside it.
func TestAServerRunsInAFolderOfAnyName(t *testing.T) {
	ownServer(t)
	for _, name := range []string{"only a blank", "临时", "unié", `back\slash`} {
		for _, language := range []string{"C", "C.UTF-8"} {
			parent := t.TempDir()
			dir := filepath.Join(parent, name)
			require.NoError(t, os.Mkdir(dir, 0o755))
			t.Setenv("TMPDIR", dir)
			t.Setenv("LC_ALL", language)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			server, err := zkserver.StartEnsemble(ctx, 1)
			cancel()
			require.NoError(t, err, "TMPDIR=%s LC_ALL=%s", name, language)
			require.NoError(t, server.Stop())
			left, err := filepath.Glob(filepath.Join(parent, "*", "*"))
			require.NoError(t, err)
			assert.Empty(t, left, "left in TMPDIR=%s", name)
			beside, err := os.ReadDir(parent)
			require.NoError(t, err)
			assert.Len(t, beside, 1, "folders beside TMPDIR=%s: %v", name, beside)
		}
	}
}

// Only where nothing is installed is the advice to install something.
func TestWhatIsInstalledNeedNotBeInstalled(t *testing.T) {
	ownServer(t)
	t.Setenv("ZK_BACKEND", "local")
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	_, err := zkserver.Start(t.Context())
	require.ErrorContains(t, err, "cannot make a folder for its files")
	assert.ErrorContains(t, err, "to repair it: export TMPDIR=/tmp")
	assert.NotContains(t, err.Error(), "install")
}
