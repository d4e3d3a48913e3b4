package tour

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestAvailableMemory(t *testing.T) {
	defer func(real fs.FS) { system = real }(system)
	const machine = "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n"
	for _, c := range []struct {
		says  string
		files map[string]string
		want  int // in megabytes; -1: unknown
	}{
		{"no Linux", nil, -1},
		{"no limit", map[string]string{"proc/meminfo": machine}, 7812},
		{"a file of another kind", map[string]string{"proc/meminfo": "MemAvailable: much\n"}, -1},
		{"a container", map[string]string{
			"proc/meminfo":                 machine,
			"sys/fs/cgroup/memory.max":     "1073741824\n",
			"sys/fs/cgroup/memory.current": "536870912\n",
		}, 512},
		{"a container without a limit", map[string]string{
			"proc/meminfo":                 machine,
			"sys/fs/cgroup/memory.max":     "max\n",
			"sys/fs/cgroup/memory.current": "536870912\n",
		}, 7812},
	} {
		files := fstest.MapFS{}
		for name, text := range c.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		system = files
		bytes, known := availableMemory()
		assert.Equal(t, c.want >= 0, known, c.says)
		if known {
			assert.Equal(t, c.want, bytes/megabyte, c.says)
		}
	}
}

// A tour with the usual crowd fits into 1.1 gigabytes, and a smaller machine gets a smaller one.
func TestTheCrowdFits(t *testing.T) {
	assert.Less(t, takes(UsualWaiters), 1100*megabyte)
	for _, free := range []int{400 * megabyte, 600 * megabyte} {
		n := fitting(UsualWaiters, free)
		assert.LessOrEqual(t, takes(n), free, "bytes for %d waiters", n)
		assert.Less(t, n, UsualWaiters)
	}
}
