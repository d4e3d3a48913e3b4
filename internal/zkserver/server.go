// Package zkserver finds or starts real ZooKeeper servers: one that runs
// already, processes of this machine, a container. Nothing in it is mocked.
package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// Server is one real ZooKeeper that serves.
type Server struct {
	Addr   string // host:port; of an ensemble, the first member that serves
	Second string // host:port that {host} and {port} are in a Config's lines
	Origin string // where it came from, in one line for people

	servers   []string
	stop      func() error // nil: the server is not ours to stop
	process   *process     // nil: it is none of ours
	container *testcontainers.DockerContainer
}

// Servers returns the addresses to give to zk.Connect. A single address is
// given twice: with only one, the client sleeps a second before each
// reconnect, by which time a short session has expired.
func (s *Server) Servers() []string {
	if len(s.servers) == 1 {
		return []string{s.servers[0], s.servers[0]}
	}
	return s.servers
}

// Stop ends the server and removes all it has left on the machine. Further
// calls do nothing. An ensemble that ran before Start is left running.
func (s *Server) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// A backend is one way to a ZooKeeper.
type backend struct {
	name   string
	check  func(context.Context) error // is all there that start needs?
	start  func(context.Context, Config) (*Server, error)
	repair func(error) string // the command that would make it work
}

var (
	existing = backend{"existing", checkExisting, startExisting, repairExisting}
	local    = backend{"local", checkLocal, startLocal, repairLocal}
	docker   = backend{"docker", checkDocker, startDocker, repairDocker}
)

// backends returns the ways to try, in order.
func backends() ([]backend, error) {
	all, name := []backend{existing, local, docker}, os.Getenv("ZK_BACKEND")
	if name == "" && os.Getenv("ZK_SERVERS") != "" {
		name = "existing" // who names a server wants that one, and no other in its place
	}
	if name == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(b backend) bool { return b.name == name })
	if i < 0 {
		return nil, fmt.Errorf("ZK_BACKEND=%q is unknown: it is existing, local or docker, or not set", name)
	}
	return all[i : i+1], nil
}

// Start gives a server that is ready for sessions: the one that ZK_SERVERS
// names, else a private process of a local installation, else a container.
// ZK_BACKEND (existing, local, docker) forces one of these. When none can be
// had, the error names each way, why it failed and the command that repairs it.
//
// ctx bounds the start only. A private server ends with this process, however
// the process ends.
func Start(ctx context.Context) (*Server, error) {
	ways, err := backends()
	if err != nil {
		return nil, err
	}
	return firstOf(ways, func(b backend) (*Server, error) { return b.start(ctx, Config{}) })
}

// Config is what a private server's configuration has besides the usual.
type Config struct {
	Lines []string          // of zoo.cfg; {dir} is the folder with the Files, {host} and {port} a second address
	Files map[string]string // texts by name: keystores, certificates
}

// lines returns the Lines for a server that finds the Files in dir, and that
// may listen on host and port besides.
func (c Config) lines(dir, host string, port int) (lines []string) {
	replacer := strings.NewReplacer("{dir}", dir, "{host}", host, "{port}", strconv.Itoa(port))
	for _, line := range c.Lines {
		lines = append(lines, replacer.Replace(line))
	}
	return lines
}

// StartWith is Start for a private server with additions to its
// configuration. It does not look at ZK_SERVERS: a server that exists already
// cannot be configured.
func StartWith(ctx context.Context, config Config) (*Server, error) {
	ways, err := backends()
	if err != nil {
		return nil, err
	}
	if ways[0].name == "existing" {
		ways = []backend{local, docker}
	}
	return firstOf(ways, func(b backend) (*Server, error) { return b.start(ctx, config) })
}

// Check reports whether Start can be expected to succeed, without starting
// anything. It may pull the container image, if no other way is left.
func Check(ctx context.Context) error {
	ways, err := backends()
	if err == nil {
		_, err = firstOf(ways, func(b backend) (*Server, error) { return nil, b.check(ctx) })
	}
	return err
}

// firstOf tries the backends in order until one succeeds.
func firstOf[S any](ways []backend, try func(backend) (S, error)) (s S, err error) {
	var failed strings.Builder
	failed.WriteString("no ZooKeeper was found:")
	for _, b := range ways {
		if s, err = try(b); err == nil {
			return s, nil
		}
		reason := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n            ")
		fmt.Fprintf(&failed, "\n  %-9s %s\n            repair it with: %s", b.name, reason, b.repair(err))
	}
	return s, errors.New(failed.String())
}

// InstallCommand returns the shell command that installs ZooKeeper and Java
// on this machine.
func InstallCommand() string {
	if _, err := exec.LookPath("apt-get"); err == nil {
		command := "apt-get install -y --no-install-recommends zookeeper default-jre-headless"
		if os.Geteuid() != 0 {
			command = "sudo " + command
		}
		return command
	}
	if _, err := exec.LookPath("brew"); err == nil {
		return "brew install zookeeper"
	}
	return "export ZOOKEEPER_HOME=/path/to/apache-zookeeper-3.9-bin JAVA_HOME=/path/to/java"
}

// repairExisting returns the command that helps against an error of startExisting.
func repairExisting(error) string {
	if os.Getenv("ZK_SERVERS") != "" {
		return "unset ZK_SERVERS ZK_BACKEND"
	}
	return "export ZK_SERVERS=host:2181"
}

func checkExisting(ctx context.Context) error {
	_, err := startExisting(ctx, Config{})
	return err
}

// startExisting uses the ensemble that ZK_SERVERS names.
func startExisting(ctx context.Context, _ Config) (*Server, error) {
	list := os.Getenv("ZK_SERVERS")
	if list == "" {
		return nil, errors.New("ZK_SERVERS is not set")
	}
	var servers []string
	for addr := range strings.SplitSeq(list, ",") {
		addr = strings.TrimSpace(addr)
		switch {
		case addr == "":
			continue
		case strings.Contains(addr, "/"):
			return nil, fmt.Errorf("ZK_SERVERS=%s: the Go client knows no chroot: leave out the path after %s", list, addr[:strings.Index(addr, "/")])
		case !strings.Contains(addr, ":"):
			addr += ":2181"
		}
		servers = append(servers, addr)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("ZK_SERVERS=%q names no server", list)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// Every server's default whitelist has this word.
	addr, err := await(ctx, servers, "srvr", versionIs, 2*time.Second, nil)
	if err != nil {
		return nil, fmt.Errorf("ZK_SERVERS=%s: %w", list, err)
	}
	s := &Server{Addr: addr, servers: servers}
	s.Origin = fmt.Sprintf("ZK_SERVERS, %s at %s", s.version(), strings.Join(servers, ","))
	return s, nil
}

// await polls the addresses until one answers a four-letter word as wanted,
// and returns that one. It waits until ctx ends, and for a single answer for
// at most probe. It gives up at once when exited, which may be nil, reports
// that the server is gone.
//
// An open port would prove nothing, least of all one that a container maps:
// it is open before the server behind it is. A word is answered with what it
// asks for only by a server that serves.
func await(ctx context.Context, addrs []string, word, want string, probe time.Duration, exited func() error) (string, error) {
	for begin := time.Now(); ; {
		var failed error
		for _, addr := range addrs {
			answer, err := ask(addr, word, probe)
			switch {
			case strings.Contains(answer, want):
				return addr, nil
			case err == nil:
				err = fmt.Errorf("%s to %s: %s", word, addr, strings.TrimSpace(answer))
			}
			failed = errors.Join(failed, err)
		}
		if exited != nil {
			if err := exited(); err != nil && ctx.Err() == nil {
				return "", err
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("it does not serve after %v: %w", time.Since(begin).Round(100*time.Millisecond), failed)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const versionIs = "Zookeeper version: " // begins the answer to srvr

// version asks the server who it is.
func (s *Server) version() string {
	answer, _ := s.Word("srvr")
	_, rest, _ := strings.Cut(answer, versionIs)
	number, _, _ := strings.Cut(rest, "-")
	return "ZooKeeper " + cmp.Or(number, "(version not told)")
}

// zooCfg is the zoo.cfg of a private server. Of two lines with the same key
// the later one counts: more wins.
//
// A short tick lets sessions expire quickly. The longest session is then 20
// ticks, unless raised: longer ones would be cut to two seconds in silence.
// forceSync stays on, so that a write costs here what it costs in earnest.
func zooCfg(dataDir, address string, port int, more []string) string {
	return fmt.Sprintf(`dataDir=%s
clientPortAddress=%s
clientPort=%d
tickTime=100
maxSessionTimeout=60000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
`, dataDir, address, port) + strings.Join(more, "\n") + "\n"
}
