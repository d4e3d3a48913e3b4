package tour

import (
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"zklock/internal/zktest"
)

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

// The size of the largest crowd: the usual one, and the smallest that is allowed.
const (
	UsualWaiters  = 1000
	FewestWaiters = 10
)

// LimitCrowd makes the largest crowd smaller if it needs more memory than is free, or more open
// files than the limit allows. It returns the reason, or "". If a tour took more memory, the system
// would kill it without a message. If it needed more files, it would wait for clients that cannot
// connect.
func (t *Tour) LimitCrowd() (why string, err error) {
	wanted := t.Largest
	if free, known := availableMemory(); known && takes(wanted) > free {
		t.Largest = fitting(wanted, free)
		why = "would take more memory than is free"
	}
	if most, known := mostFiles(); known && besides+t.Largest > most {
		t.Largest = (most - besides) / 10 * 10
		why = fmt.Sprintf("would take more open files than the %d that ulimit -n allows", most)
		if t.Largest < FewestWaiters {
			return why, fmt.Errorf(
				"ulimit -n allows %d open files, and a tour needs at least %d: run ulimit -n 4096, or ask your administrator",
				most, besides+FewestWaiters)
		}
	}
	zktest.Buffer = bufferFor(t.Largest)
	return why, nil
}

// besides is how many files a tour and its server have open, in addition to one for each waiter. It
// is a little more than the 655 that were counted with all locks.
const besides = 750

// takes returns how many bytes of memory a tour takes with so many waiters, the server's included.
func takes(waiters int) int {
	const (
		withoutCrowd = 200 * megabyte
		each         = 200 * kilobyte // for a waiter, without its buffers
		garbage      = 2              // as much memory again is unused, and not collected yet
	)
	buffers := 2 * bufferFor(waiters)                        // to send and to read
	ofLeased := min(waiters, largestOfLeased) * 3 * megabyte // its buffers are as large as the client library makes them
	return serverGrows + withoutCrowd + ofLeased + waiters*(each+garbage*buffers)
}

// serverGrows is by how many bytes the server, which runs already, grows at most. 90 MB were measured.
const serverGrows = 100 * megabyte

// limitGarbage lets Go collect garbage before this process takes more than LimitCrowd has counted on: on a busy machine
// 1,041 MB were measured without it.
func (t *Tour) limitGarbage() { debug.SetMemoryLimit(int64(takes(t.Largest) - serverGrows)) }

// bufferFor returns the size of a client's buffer, of which it has one to send and one to read. The
// buffer is large enough for so many waiters, and always for the checks of the properties.
func bufferFor(waiters int) int { return zktest.BufferFor(max(waiters, UsualWaiters)) }

// fitting returns how many of the waiters fit into so many bytes of memory, and at least
// FewestWaiters.
func fitting(waiters, bytes int) int {
	for waiters > FewestWaiters && takes(waiters) > bytes {
		waiters = max(waiters-10, FewestWaiters)
	}
	return waiters
}

// system is the root of the files in which Linux reports its memory. Other systems have no such
// files.
var system = os.DirFS("/")

// availableMemory returns how many bytes this process and the server can still get: what is left on
// the machine or, if that is less, in the container. It is known only on Linux.
func availableMemory() (bytes int, known bool) {
	machine, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(machine), "MemAvailable:")
	kilobytes, known := firstNumber(after)
	bytes = kilobytes * kilobyte
	limit, err1 := fs.ReadFile(system, "sys/fs/cgroup/memory.max") // "max": no limit
	used, err2 := fs.ReadFile(system, "sys/fs/cgroup/memory.current")
	most, isLimited := firstNumber(string(limit))
	now, isTold := firstNumber(string(used))
	if err1 == nil && err2 == nil && isLimited && isTold {
		bytes = min(bytes, most-now)
	}
	return bytes, known
}

func firstNumber(text string) (n int, ok bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(words[0])
	return n, err == nil
}
