package tour

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"zklock/internal/zktest"
)

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

// The largest crowd: as many as are usual, and the fewest that make one.
const (
	UsualWaiters  = 1000
	FewestWaiters = 10
)

// LimitCrowd makes the largest crowd smaller if the free memory, or the limit of open files, does
// not suffice for it. It returns why, or "". If a tour took more memory, the system would kill it
// without a message. If it needed more files, it would wait for clients that cannot connect.
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

// besides is how many files a tour has open, and its server, besides one for each waiter: a
// little more than was counted with all locks, 655.
const besides = 750

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
func bufferFor(waiters int) int { return zktest.BufferFor(max(waiters, UsualWaiters)) }

// fitting is how many of the waiters have a place in so much memory.
func fitting(waiters, bytes int) int {
	for waiters > FewestWaiters && takes(waiters) > bytes {
		waiters = max(waiters-10, FewestWaiters)
	}
	return waiters
}

// system is where Linux tells of itself. Other systems have no such files.
var system = os.DirFS("/")

// availableMemory is what this process and the server can still get, in bytes: what the
// machine has left, or the container, if that is less. It is known on Linux only.
func availableMemory() (bytes int, known bool) {
	machine, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(machine), "MemAvailable:")
	kilobytes, known := firstNumber(after)
	bytes = kilobytes * kilobyte
	limit, err1 := fs.ReadFile(system, "sys/fs/cgroup/memory.max") // "max" is no limit
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
