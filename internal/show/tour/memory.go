package main

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"zklock/internal/check/zktest"
)

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

// The largest crowd: as many as are usual, and the fewest that make one.
const (
	usualWaiters  = 1000
	fewestWaiters = 10
)

// takes is how much memory a tour takes with so many waiters, in bytes: a little more than
// was measured. That was 140 MB with 10 of them, 450 to 610 MB with 1,000, the more the
// busier the machine was, and 2,540 MB with 3,000; and the server, which runs already, grew
// by 90 MB at most.
func takes(waiters int) int {
	const (
		server       = 100 * megabyte
		withoutCrowd = 200 * megabyte
		each         = 200 * kilobyte // besides its buffers
		garbage      = 2              // for as much again is used no more, and not collected yet
	)
	buffers := 2 * bufferFor(waiters) // to send and to read
	return server + withoutCrowd + waiters*(each+garbage*buffers)
}

// bufferFor is what a client keeps to send and to read: for so many waiters, and always
// enough for what the properties ask.
func bufferFor(waiters int) int { return zktest.BufferFor(max(waiters, usualWaiters)) }

// fitting is how many of the waiters have a place in so much memory.
func fitting(waiters, bytes int) int {
	for waiters > fewestWaiters && takes(waiters) > bytes {
		waiters = max(waiters-10, fewestWaiters)
	}
	return waiters
}

// system is where Linux tells of itself. Other systems have no such files.
var system = os.DirFS("/")

// availableMemory is what this process and the server can still get, in bytes: what the
// machine has left, or what a control group has left, such as a container's, if that is
// less. It is known on Linux only.
func availableMemory() (bytes int, known bool) {
	kilobytes, known := valueOf("MemAvailable:", "proc/meminfo")
	bytes = kilobytes * kilobyte
	for _, version := range []controlGroups{version1, version2} {
		group := version.ofThisProcess()
		for {
			left, limited := version.left(group)
			isTightest := !known || left < bytes
			if limited && isTightest {
				bytes, known = left, true
			}
			if group == "/" {
				break
			}
			group = path.Dir(group) // its limit counts, too
		}
	}
	return bytes, known
}

// controlGroups are Linux's limits of memory. A group is a folder.
type controlGroups struct {
	root       string
	controller string   // as /proc/self/cgroup names it
	limit      string   // a file with a number; or it says "max", which is none
	used       string   // a file with a number
	fileCache  []string // in memory.stat: it is given up when memory is scarce
}

var (
	version1 = controlGroups{
		root:       "sys/fs/cgroup/memory",
		controller: "memory",
		limit:      "memory.limit_in_bytes",
		used:       "memory.usage_in_bytes",
		fileCache:  []string{"total_active_file", "total_inactive_file"},
	}
	version2 = controlGroups{
		root:       "sys/fs/cgroup",
		controller: "",
		limit:      "memory.max",
		used:       "memory.current",
		fileCache:  []string{"active_file", "inactive_file"},
	}
)

// ofThisProcess is the group of this process, as a path below the root. A container may
// see its own group as the root, and yet be told of the path outside: then there is no
// such folder, and no limit but the root's.
func (c controlGroups) ofThisProcess() string {
	for line := range strings.SplitSeq(text("proc/self/cgroup"), "\n") {
		fields := strings.SplitN(line, ":", 3) // a number, the controller, the path
		if len(fields) == 3 && fields[1] == c.controller {
			return path.Clean("/" + fields[2])
		}
	}
	return "/"
}

// left is what a group may still take, if there is a limit.
func (c controlGroups) left(group string) (bytes int, limited bool) {
	folder := path.Join(c.root, group)
	limit, err1 := strconv.Atoi(text(path.Join(folder, c.limit)))
	used, err2 := strconv.Atoi(text(path.Join(folder, c.used)))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	for _, key := range c.fileCache {
		cached, _ := valueOf(key, path.Join(folder, "memory.stat"))
		used -= cached
	}
	return limit - used, true
}

// text is what a file says: nothing, if it cannot be read.
func text(file string) string {
	text, err := fs.ReadFile(system, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// valueOf finds the number that stands behind a key, in a file with a key in each line.
func valueOf(key, file string) (value int, found bool) {
	for line := range strings.SplitSeq(text(file), "\n") {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == key {
			value, err := strconv.Atoi(fields[1])
			return value, err == nil
		}
	}
	return 0, false
}
