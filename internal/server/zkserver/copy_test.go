package zkserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/server/zkserver"
)

// A copy of the installation serves where nothing is installed.
func TestACopyOfTheInstallationServes(t *testing.T) {
	zookeeper, java := filepath.Join(t.TempDir(), "zookeeper"), filepath.Join(t.TempDir(), "java")
	require.NoError(t, zkserver.CopyLocal(zookeeper, java))
	jars, err := filepath.Glob(filepath.Join(zookeeper, "*.jar"))
	require.NoError(t, err)
	require.NotEmpty(t, jars)
	for _, jar := range jars {
		named, err := zkserver.NamedIn(jar)
		require.NoError(t, err)
		for _, other := range named {
			if _, notInstalled := os.Stat(other); notInstalled == nil {
				require.FileExists(
					t,
					filepath.Join(zookeeper, filepath.Base(other)),
					"else the one that is installed would serve",
				)
			}
		}
	}
	t.Setenv("ZK_BACKEND", "local")
	t.Setenv("ZOOKEEPER_HOME", zookeeper)
	t.Setenv("JAVA_HOME", java)
	require.FileExists(t, filepath.Join(java, "bin/java"), "else the one that is installed would serve")
	s, err := zkserver.StartWith(t.Context(), zkserver.Config{})
	require.NoError(t, err)
	require.Contains(t, s.Origin, zookeeper)
	require.NoError(t, s.Stop())
}
