package zktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zklock/internal/zkserver"
)

// running are the servers that this package has started.
var running struct {
	sync.Mutex
	servers []*zkserver.Server
}

// started notes a server for Main to stop, unless the server is nil.
func started(s *zkserver.Server) {
	running.Lock()
	defer running.Unlock()
	if s != nil {
		running.servers = append(running.servers, s)
	}
}

func stopServers() (err error) {
	running.Lock()
	defer running.Unlock()
	for _, s := range running.servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// Shared returns the one server of this process, which the first call starts.
var Shared = sync.OnceValues(func() (*zkserver.Server, error) {
	s, err := zkserver.Start(context.Background())
	started(s)
	return s, err
})

// Servers are the addresses of Shared, for examples, which have no test to fail.
func Servers() []string {
	server, err := Shared()
	if err != nil {
		log.Fatal(err)
	}
	return server.Servers()
}

// Parallel is how many tests of a package run at the same time, unless -parallel says so: many, because
// they mostly wait. A package whose tests need the processor sets fewer before it calls Main.
var Parallel = 12

// Main is for a package's TestMain: it runs the tests, stops the servers that they shared, and
// fails the test binary if a goroutine is still running.
func Main(m *testing.M) {
	_ = flag.Set("test.parallel", strconv.Itoa(Parallel)) // one on the command line is set later
	code := m.Run()
	for _, tell := range afterRun {
		tell(code == 0)
	}
	if err := stopServers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// After a failure, goroutines that are still running are to be expected.
	if code == 0 && !leaves.Load() {
		if err := leaks(); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, but left goroutines running:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// afterRun are the functions to call with whether the tests have passed.
var afterRun []func(passed bool)

// AfterRun calls tell when all tests of the package have run.
func AfterRun(tell func(passed bool)) { afterRun = append(afterRun, tell) }

// A closed session's goroutines need a moment to end, on a busy machine a
// long one.
var patience = 20 * time.Second

// clientStuck is a mistake of the client (go-zookeeper v1.0.4). If a request is queued while the
// connection is closed, and then fails to be written, it is answered three times, into a channel of
// two. Then the client's loop never ends.
var clientStuck = goleak.IgnoreTopFunction("github.com/go-zookeeper/zk.(*Conn).flushRequests")

// leaves says that a test leaves goroutines behind on purpose.
var leaves atomic.Bool

// LeavesGoroutines is for a test of locks that may hang: Main does not wait for their goroutines.
func LeavesGoroutines() { leaves.Store(true) }

// leaks names the goroutines that do not end.
func leaks() error {
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find(clientStuck)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
