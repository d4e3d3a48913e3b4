// Package peers starts other people's locks, each in a process of its own:
// Curator's, in Java, and kazoo's, in Python, on a real ZooKeeper; and those of
// Redis and etcd on servers of theirs. All come as Debian packages but for the
// clients of the last two.
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

// Curator's jars, as Debian places them.
var jars = []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava",
	"slf4j-api", "slf4j-nop", "netty-all"}

const python = "/usr/bin/python3" // Debian's, for which its kazoo is installed

// Missing says what has to be installed to start both, or nil.
func Missing() error {
	return missing(map[string]*exec.Cmd{
		"libcurator-recipes-java": exec.Command("test", "-e", "/usr/share/java/curator-recipes.jar"),
		"default-jdk-headless":    exec.Command("javac", "-version"),
		"python3-kazoo":           exec.Command(python, "-c", "import kazoo"),
	})
}

// MissingStores says what has to be installed to start Redis and etcd, or nil.
func MissingStores() error {
	return missing(map[string]*exec.Cmd{
		"redis-server": exec.Command("redis-server", "--version"),
		"etcd-server":  exec.Command("etcd", "--version"),
	})
}

// missing tries a command of each package.
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

// Curator starts n clients of the lock at path, each with a session of its own: of
// an InterProcessMutex, or of the read or write side of an
// InterProcessReadWriteLock. Their turns look into the lock's Room.
func Curator(z *zktest.Zoo, t zktest.T, servers, kind, path string, n int) Peer {
	return begin(z, t, java("Curator.java", servers, path, kind, Room(path), strconv.Itoa(n)))
}

// java runs a program that stands beside this file, with Curator's jars.
func java(program string, args ...string) *exec.Cmd {
	var all []string
	for _, jar := range jars {
		all = append(all, "/usr/share/java/"+jar+".jar")
	}
	options := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(all, ":"), here(program)}
	return exec.Command("java", append(options, args...)...)
}

// Kinds of kazoo's Lock: how its znodes are named, and for whose it waits.
const (
	OwnNames        = "own names"
	OwnNamesForBoth = "own names, waits for both"
	OurNames        = "our names, waits for both"
)

// Kazoo starts n clients of the lock at path, of one of these kinds.
func Kazoo(z *zktest.Zoo, t zktest.T, servers, kind, path string, n int) Peer {
	return begin(z, t, exec.Command(python, here("kazoo_lock.py"), servers, path, Room(path), strconv.Itoa(n), kind))
}

// Room is where turns at a lock look: a path that only one client at a time can create.
func Room(path string) string { return path + "-room" }

// KV starts n clients of a lock of "redis" or "etcd". The program is the one that BuildKV has
// built.
func KV(z *zktest.Zoo, t zktest.T, program, kind, address, name string, n int) Peer {
	return begin(z, t, exec.Command(program, kind, address, name, strconv.Itoa(n)))
}

// BuildKV builds the clients of Redis and etcd. They are a module of their own, so
// that nobody else has to download their libraries.
func BuildKV(ctx context.Context, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = here("kv")
	build.Env = append(os.Environ(), "GOWORK=off") // a learner's workspace does not have this module
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

// Begin gives the first of the clients a command: lock, unlock, or turns with a
// number, which is so many times lock, look and unlock. Curator's can also try for
// some milliseconds to get a lock that is not free, and unwatch a path with
// removeWatches. Done waits for its end.
func (p Peer) Begin(format string, args ...any) { p.Tell(fmt.Sprintf(format, args...)) }

// Done returns once the last command has come to its end, or the process has: ok
// is false then.
func (p Peer) Done() (ok bool) { return strings.HasSuffix(p.Line(), ": done") }

// A Turn is one Lock and one Unlock, with nothing in between: whose, and when it was
// asked for and done, from the beginning of the run.
type Turn struct {
	Client      int
	Asked, Done time.Duration
}

// Run lets all clients take turns for a while, and each at least one.
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
