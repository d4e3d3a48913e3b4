// Package peers starts clients of other people's locks, in processes of their own: of Curator, in
// Java, and of kazoo, in Python, on a real ZooKeeper; and of Redis and etcd, on servers of their own.
// Debian has packages of all these, except for the clients of Redis and etcd.
package peers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"zklock/internal/zktest"
)

// jars are the jars of Curator, by the names that Debian gives them.
var jars = []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
	"zookeeper-recipes-lock", "guava", "slf4j-api", "slf4j-nop", "netty-all"}

const python = "/usr/bin/python3" // Debian's own, because Debian's kazoo is installed for it

// Missing returns an error with the command that installs what is missing for Curator and kazoo, or
// nil.
func Missing() error {
	return missing(map[string]*exec.Cmd{
		"libcurator-recipes-java": exec.Command("test", "-e", "/usr/share/java/curator-recipes.jar"),
		"default-jdk-headless":    exec.Command("javac", "-version"),
		"python3-kazoo":           exec.Command(python, "-c", "import kazoo"),
	})
}

// MissingStores returns an error with the command that installs what is missing for Redis and etcd, or
// nil.
func MissingStores() error {
	return missing(map[string]*exec.Cmd{
		"redis-server": exec.Command("redis-server", "--version"),
		"etcd-server":  exec.Command("etcd", "--version"),
	})
}

// missing runs a command for each package. It returns an error that names the packages whose command
// failed, or nil.
func missing(packages map[string]*exec.Cmd) error {
	maps.DeleteFunc(packages, func(_ string, try *exec.Cmd) bool { return try.Run() == nil })
	if len(packages) == 0 {
		return nil
	}
	return errors.New(
		"apt-get install -y --no-install-recommends " + strings.Join(slices.Sorted(maps.Keys(packages)), " "),
	)
}

// A Peer is a process whose clients contend for one lock.
type Peer struct{ *zktest.Process }

// Curator starts n clients of the lock at path, each with a session of its own. By kind, the lock is
// an InterProcessMutex ("mutex"; "impatient" if its client soon gives up without a connection), the "read" or "write"
// side of an InterProcessReadWriteLock, an InterProcessSemaphoreMutex ("semaphore"), or an InterProcessMultiLock
// ("multi") of two mutexes, at path and at path-2; "multi, backwards" takes them in the other order. Their turns check
// the lock's Room.
func Curator(z *zktest.Zoo, t zktest.T, servers, kind, path string, n int) Peer {
	return begin(z, t, java("Curator.java", servers, path, kind, Room(path), strconv.Itoa(n)))
}

// java returns a command that runs a program in this file's folder, with Curator's jars.
func java(program string, args ...string) *exec.Cmd {
	var all []string
	for _, jar := range jars {
		all = append(all, "/usr/share/java/"+jar+".jar")
	}
	options := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(all, ":"), here(program)}
	return exec.Command("java", append(options, args...)...)
}

// The kinds of kazoo's Lock: how its znodes are named, and for whose znodes it waits.
const (
	OwnNames        = "own names"
	OwnNamesForBoth = "own names, waits for both"
	OurNames        = "our names, waits for both"
)

// Kazoo starts n clients of the lock at path, of one of these kinds.
func Kazoo(z *zktest.Zoo, t zktest.T, servers, kind, path string, n int) Peer {
	return begin(z, t, exec.Command(python, here("kazoo_lock.py"), servers, path, Room(path), strconv.Itoa(n), kind))
}

// Room returns the path of a znode with which turns check that the lock excludes other clients: only
// one client at a time can create it.
func Room(path string) string { return path + "-room" }

// KV starts n clients of a lock of "redis" or "etcd". BuildKV has built the program.
func KV(z *zktest.Zoo, t zktest.T, program, kind, address, name string, n int) Peer {
	return begin(z, t, exec.Command(program, kind, address, name, strconv.Itoa(n)))
}

// BuildKV builds the clients of Redis and etcd. They are a module of their own, so that a learner who
// does not need them does not have to download their libraries.
func BuildKV(ctx context.Context, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = here("kv")
	build.Env = append(os.Environ(), "GOWORK=off") // a learner's workspace does not list this module
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w: %s", build, build.Dir, err, said)
	}
	return nil
}

func here(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), name)
}

func begin(z *zktest.Zoo, t zktest.T, cmd *exec.Cmd) Peer {
	p := Peer{z.Command(cmd)}
	if line := p.Line(); line != "ready" {
		t.Fatalf("%s says %q", cmd, line)
	}
	return p
}

// Begin sends the process a command for its first client: lock, unlock, or turns with a number. A turn
// locks, checks the Room, and unlocks. A client of Curator has more commands:
//
//	try 100               tries for so many milliseconds to get the lock, which must not be free
//	within 100            the same, but it must get the lock
//	other 100             as try, through another lock object of the same path
//	write 100             the same, through the write lock of the reader's read/write lock
//	make /path            makes a mutex of a client that was never started, or prints why not
//	wait                  begins to wait for the lock, in another thread
//	crowd 10              the same in so many threads, through the same lock object
//	interrupt             interrupts the thread of wait, and prints the error of the call that waits
//	end                   waits for the end of the call that waits, and prints its error
//	close                 closes the client, and prints the error of the call that waits, if one does
//	exists /path          asks with a watch whether a znode exists; the watch prints what it hears
//	create /path          creates an ephemeral znode, and does not lock
//	delete /path          deletes a znode
//	guaranteed /path      the same with guaranteed(), and prints an error of the server or connection
//	unwatch /path true    watches a znode and removes the watch, in the foreground (false: in the background)
//
// Done waits until the command has ended.
func (p Peer) Begin(format string, args ...any) { p.Tell(fmt.Sprintf(format, args...)) }

// Done returns once the last command has ended, or the process has. It reports whether the command
// succeeded.
func (p Peer) Done() (ok bool) { return strings.HasSuffix(p.Line(), ": done") }

// A Turn is one Lock and one Unlock of a client, with nothing in between. Asked and Done are the
// times, since the beginning of the run, at which the turn began and ended.
type Turn struct {
	Client      int
	Asked, Done time.Duration
}

// Run lets all clients take turns for the duration d. Each client takes at least one turn.
func (p Peer) Run(d time.Duration) (turns []Turn, err error) {
	p.Begin("run %d", d.Milliseconds())
	for line := p.Line(); !strings.HasSuffix(line, ": done"); line = p.Line() {
		var client, asked, done int
		if _, err := fmt.Sscanf(line, "turn: %d %d %d", &client, &asked, &done); err != nil {
			return nil, fmt.Errorf("a peer says %q: %w", line, err)
		}
		turns = append(
			turns,
			Turn{client, time.Duration(asked) * time.Microsecond, time.Duration(done) * time.Microsecond},
		)
	}
	return turns, nil
}
