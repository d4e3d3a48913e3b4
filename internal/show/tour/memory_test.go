package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
)

func TestAvailableMemory(t *testing.T) {
	defer func(real fs.FS) { system = real }(system)
	const (
		meminfo  = "proc/meminfo"
		ours     = "proc/self/cgroup"
		machine  = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
		first    = "sys/fs/cgroup/memory/"
		second   = "sys/fs/cgroup/"
		gigabyte = "1073741824\n"
		half     = "536870912\n"
		noLimit  = "9223372036854771712\n" // as the first version says it
	)
	for _, c := range []struct {
		says  string
		files map[string]string
		want  int // in megabytes; -1: unknown
	}{
		{"no Linux", nil, -1},
		{"no limit", map[string]string{meminfo: machine}, 7812},
		{"a file of another kind", map[string]string{meminfo: "MemAvailable: much\n"}, -1},
		{"a container", map[string]string{
			meminfo: machine, ours: "0::/\n",
			second + "memory.max": gigabyte, second + "memory.current": half,
		}, 512},
		{"a container with files in memory", map[string]string{
			meminfo: machine, ours: "0::/\n",
			second + "memory.max": gigabyte, second + "memory.current": half,
			second + "memory.stat": "anon 1\nfile 300000000\nactive_file 104857600\ninactive_file 209715200\n",
		}, 812},
		{"a container that knows its path outside", map[string]string{
			meminfo: machine, ours: "5:cpu:/docker/abc\n4:memory:/docker/abc\n0::/\n",
			first + "memory.limit_in_bytes": gigabyte, first + "memory.usage_in_bytes": half,
		}, 512},
		{"the first version, with files in memory", map[string]string{
			meminfo: machine, ours: "4:memory:/a\n",
			first + "a/memory.limit_in_bytes": gigabyte, first + "a/memory.usage_in_bytes": half,
			first + "a/memory.stat": "total_inactive_file 209715200\ntotal_active_file 104857600\n",
		}, 812},
		{"the first version without a limit", map[string]string{
			meminfo: machine, ours: "4:memory:/\n",
			first + "memory.limit_in_bytes": noLimit, first + "memory.usage_in_bytes": half,
		}, 7812},
		{"a group without a limit, in one with a limit", map[string]string{
			meminfo: machine, ours: "0::/a/b\n",
			second + "a/b/memory.max": "max\n", second + "a/b/memory.current": "100\n",
			second + "a/memory.max": gigabyte, second + "a/memory.current": half,
		}, 512},
		{"a limit that is more than there is", map[string]string{
			meminfo: "MemAvailable: 102400 kB\n", ours: "0::/\n",
			second + "memory.max": gigabyte, second + "memory.current": half,
		}, 100},
	} {
		files := fstest.MapFS{}
		for name, text := range c.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		system = files
		bytes, known := availableMemory()
		assert.Equal(t, c.want >= 0, known, "%s: known", c.says)
		if known {
			assert.Equal(t, c.want, bytes/megabyte, "%s: megabytes", c.says)
		}
	}
}

func TestFitting(t *testing.T) {
	for _, c := range []struct{ waiters, megabytes, want int }{
		{1000, 8000, 1000},
		{1000, takes(1000)/megabyte + 1, 1000},
		{1000, takes(1000) / megabyte, 990},
		{1000, 400, 220},
		{1000, 100, 10},
		{1000, -5, 10},
		{10, 0, 10},
		{15, 0, 10},
		{3000, 2000, 2350},
	} {
		assert.Equal(t, c.want, fitting(c.waiters, c.megabytes*megabyte), "%d waiters in %d MB", c.waiters, c.megabytes)
	}
}

// With little memory fewer come, and the table says how many they were.
func TestTheTourFitsIntoTheMemory(t *testing.T) {
	t.Parallel()
	server, err := zktest.Shared()
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "proc"), 0o700))
	require.NoError(
		t,
		os.WriteFile(filepath.Join(folder, "proc", "meminfo"), []byte("MemAvailable: 330000 kB\n"), 0o600),
	)
	cmd := tourProcess(
		t,
		[]string{"STEPS=04", "WAITERS=300", "ZK_BACKEND=", "ZK_SERVERS=" + server.Addr, "TOUR_TEST_SYSTEM=" + folder},
	)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	assert.Contains(
		t,
		stderr.String(),
		"300 waiters would take 430 MB of memory, and 322 MB are free: so the largest crowd has 50\n",
	)
	assert.Contains(t, string(stdout), "the holder releases, 50 wait\n")
	assert.NotContains(t, string(stdout), "300 wait")
}
