package zktest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// slowness is how much longer than on an idle machine the tests wait: 1 to 8.
var slowness = slownessAt(loadAverage(), runtime.NumCPU())

// Busy tells whether others want the machine as well: then a failure may be theirs.
func Busy() bool { return slowness > 1 }

// slownessAt allows each core two processes that want to run: a test is one, and the
// server that it asks is another.
func slownessAt(load float64, cores int) float64 {
	const perCore, most = 2, 8
	return min(max(load/float64(cores*perCore), 1), most)
}

// loadAverage is how many processes wanted to run in the last minute. Only Linux has the
// file; elsewhere it is 0.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// Slower is d, or longer on a busy machine. Whole tenths of a second are easier to read.
func Slower(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slowness).Round(100 * time.Millisecond)
}
