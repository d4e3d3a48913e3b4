// Package zkserver finds or starts real ZooKeeper servers: a server that already runs, processes of
// this machine, or a container. Nothing in it is mocked.
package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
)

// Server is one real ZooKeeper that serves.
type Server struct {
	Addr   string // host:port; of an ensemble, the first member that serves
	Origin string // where it came from, in one line for people

	servers []string
	stop    func() error // nil: Stop must leave the server running
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

// Environ returns the environment of a command that has to use this server: the command finds it by
// ZK_SERVERS, as a server that already runs.
func (s *Server) Environ() []string {
	return append(os.Environ(), "ZK_SERVERS="+strings.Join(s.Servers(), ","))
}

// Stop ends the server, and removes everything that the server has left on the machine. Further
// calls do nothing. Stop leaves an ensemble running that ran before Start.
func (s *Server) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// A backend is one way to get a ZooKeeper.
type backend struct {
	name   string
	find   func(context.Context) (launcher, error) // fails if a start would fail
	repair func(error) string                      // the command that may repair an error of find or of the start
}

// A launcher starts this many servers, by means of what a backend has found.
type launcher func(ctx context.Context, servers int, config Config) (*Ensemble, error)

var (
	existing = backend{"existing", findExisting, repairExisting}
	local    = backend{"local", findLocal, repairLocal}
	docker   = backend{"docker", findDocker, repairDocker}
)

// Start returns a server that is ready for sessions: the one that ZK_SERVERS names, or else a
// private process of a local installation, or else a container. If ZK_SERVERS is not set,
// ZK_BACKEND can force one of these ways: existing, local or docker. If no way succeeds, the error
// has each one, why it failed, and the command that repairs it.
//
// ctx bounds the start only. A private server ends with this process, however the process ends.
func Start(ctx context.Context) (*Server, error) {
	e, err := start(ctx, 1, Config{}, existing, local, docker)
	if err != nil {
		return nil, err
	}
	return e.Server, nil
}

func start(ctx context.Context, servers int, config Config, ways ...backend) (*Ensemble, error) {
	return firstOf(ways, func(b backend) (*Ensemble, error) {
		launch, err := b.find(ctx)
		if err != nil {
			return nil, err
		}
		return launch(ctx, servers, config)
	})
}

// Check returns an error if Start can be expected to fail. It starts nothing. It may pull the
// container image, if no other way is left.
func Check(ctx context.Context) error {
	_, err := firstOf([]backend{existing, local, docker}, func(b backend) (launcher, error) { return b.find(ctx) })
	return err
}

// firstOf tries the backends in order until one succeeds. It tries only the one
// that the environment forces, if that is among them.
func firstOf[S any](ways []backend, try func(backend) (S, error)) (found S, err error) {
	if err := process.RunsOn(runtime.GOOS); err != nil {
		return found, err
	}
	forced := os.Getenv("ZK_BACKEND")
	if !slices.Contains([]string{"", "existing", "local", "docker"}, forced) {
		return found, fmt.Errorf("ZK_BACKEND=%q is unknown: want existing, local or docker, or do not set it", forced)
	}
	if ways[0].name == "existing" && os.Getenv("ZK_SERVERS") != "" {
		forced = "existing" // a user who names a server wants that one, and no other in its place
	}
	if i := slices.IndexFunc(ways, func(b backend) bool { return b.name == forced }); i >= 0 {
		ways = ways[i : i+1]
	}
	failed := []string{"no ZooKeeper was found:"}
	for _, b := range ways {
		if found, err = try(b); err == nil {
			return found, nil
		}
		reason := func(text string) string {
			return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n            ")
		}(err.Error())
		failed = append(failed, fmt.Sprintf("\n  %-9s %s\n            to repair it: %s", b.name, reason, b.repair(err)))
	}
	return found, fmt.Errorf("%s", strings.Join(failed, ""))
}

// InstallCommand returns the shell command that installs ZooKeeper and Java on this machine. With
// apt-get, the command first updates the package lists, because apt-get finds no package without
// lists or with old ones. If one source does not answer, the command still tries to install.
func InstallCommand() string {
	if _, err := exec.LookPath("apt-get"); err == nil {
		sudo := ""
		if os.Geteuid() != 0 {
			sudo = "sudo "
		}
		return sudo + "apt-get update; " +
			sudo + "apt-get install -y --no-install-recommends zookeeper default-jre-headless"
	}
	if _, err := exec.LookPath("brew"); err == nil {
		return "brew install zookeeper"
	}
	return "export ZOOKEEPER_HOME=/path/to/apache-zookeeper-3.9-bin JAVA_HOME=/path/to/java"
}

// repairExisting returns the command that may repair an error of findExisting.
func repairExisting(error) string {
	if os.Getenv("ZK_SERVERS") != "" {
		return "unset ZK_SERVERS ZK_BACKEND"
	}
	return "export ZK_SERVERS=host:2181"
}

// findExisting finds the ensemble that ZK_SERVERS names.
func findExisting(ctx context.Context) (launcher, error) {
	list := os.Getenv("ZK_SERVERS")
	if list == "" {
		return nil, errors.New("ZK_SERVERS is not set")
	}
	if server, _, found := strings.Cut(list, "/"); found {
		return nil, fmt.Errorf(
			"ZK_SERVERS=%s: the Go client does not support a chroot: leave out the path after %s",
			list,
			server,
		)
	}
	servers := zk.FormatServers(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }))
	if len(servers) == 0 {
		return nil, fmt.Errorf("ZK_SERVERS=%q names no server", list)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // a busy machine is slow to answer
	defer cancel()
	// Every server's default whitelist has this word.
	addr, err := await(ctx, servers, "srvr", versionIs, 2*time.Second, func() error { return nil })
	if err != nil {
		return nil, fmt.Errorf("ZK_SERVERS=%s: %w", list, err)
	}
	s := &Server{Addr: addr, servers: servers}
	s.Origin = fmt.Sprintf("ZK_SERVERS, %s, on %s", s.version(), strings.Join(servers, ","))
	return func(context.Context, int, Config) (*Ensemble, error) { return &Ensemble{Server: s}, nil }, nil
}

// await polls the addresses until one answers a four-letter word as wanted, and returns that
// address. It waits until ctx ends, and for a single answer for at most probe. It gives up at once
// if ended reports that the server has ended.
//
// An open port proves nothing. A port that a container maps is open even before the server behind
// it listens. Only a server that serves answers the word as wanted.
func await(
	ctx context.Context,
	addrs []string,
	word, want string,
	probe time.Duration,
	ended func() error,
) (addr string, err error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	err = poll(ctx, func() (failed error) {
		for _, addr = range addrs {
			answer, err := ask(addr, word, probe)
			switch {
			case strings.Contains(answer, want):
				return nil
			case err == nil:
				err = fmt.Errorf("%s to %s: %s", word, addr, strings.TrimSpace(answer))
			}
			failed = errors.Join(failed, err)
		}
		if err := ended(); err != nil {
			giveUp(err)
		}
		return failed
	})
	return addr, err
}

// poll calls try until it succeeds. If ctx ends first, the error has the cause, and the last error
// of try.
func poll(ctx context.Context, try func() error) error {
	for begin := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"after %v: %w: %w",
				time.Since(begin).Round(100*time.Millisecond),
				context.Cause(ctx),
				err,
			)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const versionIs = "Zookeeper version: " // begins the answer to srvr

// version asks the server for its version.
func (s *Server) version() string {
	answer, _ := s.Word("srvr")
	_, rest, _ := strings.Cut(answer, versionIs)
	number, _, _ := strings.Cut(rest, "-")
	return fmt.Sprintf("ZooKeeper %v", cmp.Or(number, "(version not told)"))
}
