//go:build race

package zktest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// The client has a data race (go-zookeeper v1.0.4): after a reconnection
// sendSetWatches reads the last zxid, while an answer sets it. It fails
// whatever test runs at that moment. So a process with the race detector in it
// starts itself again, and the detector reads in race.txt that this one race is
// known. All others are reported.
func init() {
	options := os.Getenv("GORACE")
	if strings.Contains(options, "suppressions=") {
		return
	}
	_, here, _, _ := runtime.Caller(0)
	options += fmt.Sprintf(` suppressions="%s"`, filepath.Join(filepath.Dir(here), "race.txt"))
	program, err := os.Executable()
	if err == nil {
		err = os.Setenv("GORACE", options)
	}
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	panic(fmt.Sprintf("start %s again, with GORACE=%s: %v", program, options, err))
}
