package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// image is the container image: ZK_IMAGE, or the official one.
func image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

const ryukDisabled = "TESTCONTAINERS_RYUK_DISABLED"

var errNoDocker = errors.New("no Docker daemon answers")

// repairDocker returns the command that helps against an error of findDocker,
// or of the start.
func repairDocker(err error) string {
	switch {
	case errors.Is(err, errNoDocker):
		return "sudo systemctl start docker"
	case strings.Contains(err.Error(), "reaper:"):
		return "export " + ryukDisabled + "=true"
	default:
		return "docker pull " + image()
	}
}

// findDocker finds a Docker daemon that answers and has the image, which it has
// pulled if need be.
func findDocker(ctx context.Context) (launcher, error) {
	log.SetDefault(log.NewNoopLogger()) // testcontainers talks a lot
	long, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	lookForRyuk(long)

	// The library gives its first call no deadline. This one has one, and the
	// library keeps the answers and need not ask again.
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := testcontainers.NewDockerClientWithOpts(short)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	defer client.Close()
	if _, err := client.ImageInspect(short, image()); err != nil {
		provider, err := testcontainers.NewDockerProvider()
		if err == nil {
			defer provider.Close()
			err = provider.PullImage(long, image())
		}
		if err != nil {
			return nil, fmt.Errorf("the image %s is not there and cannot be pulled: %w", image(), err)
		}
	}
	daemon := client.DaemonHost()
	return func(ctx context.Context, config Config) (*Server, error) { return startContainer(ctx, daemon, config) }, nil
}

// lookForRyuk leaves Ryuk, the container that removes the others, out if its
// image cannot be had and a watchdog can do its work. It has to come before any
// call to testcontainers, which reads its settings once.
func lookForRyuk(ctx context.Context) {
	tool := containerTool()
	if tool == nil || os.Getenv(ryukDisabled) != "" {
		return
	}
	//lint:ignore SA1019 nothing else tells its name
	ryuk := path.Join(cmp.Or(os.Getenv("TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX"), "docker.io"), testcontainers.ReaperDefaultImage)
	if exec.CommandContext(ctx, tool[0], "image", "inspect", ryuk).Run() != nil && exec.CommandContext(ctx, tool[0], "pull", ryuk).Run() != nil {
		os.Setenv(ryukDisabled, "true")
	}
}

// containerTool returns the start of a command that takes a daemon's address
// and orders: "docker -H" or "podman --url". It is nil if neither is there.
func containerTool() []string {
	for _, tool := range [][]string{{"docker", "-H"}, {"podman", "--url"}} {
		if path, err := exec.LookPath(tool[0]); err == nil {
			return []string{path, tool[1]}
		}
	}
	return nil
}

// startContainer runs a container of the image.
//
// Its configuration is a file and not ZOO_... variables, so that any image
// will do whose ZooKeeper reads /conf/zoo.cfg, not the official one alone.
//
// The container is removed however this process ends: by Ryuk, or else by a
// watchdog, as for a local java.
func startContainer(ctx context.Context, daemon string, config Config) (s *Server, err error) {
	name, unwatch := fmt.Sprintf("zklock-%d-%d", os.Getpid(), time.Now().UnixNano()), func() error { return nil }
	if tool := containerTool(); tool != nil && testcontainers.ReadConfig().Config.RyukDisabled {
		unwatch, err = watchdog(`"$@" >/dev/null 2>&1 || true`, append(tool, daemon, "rm", "-f", "-v", name)...)
		if err != nil {
			return nil, err
		}
	}
	files := map[string]string{"zoo.cfg": zooCfg("/data", "0.0.0.0", 2181, config.lines("/conf", "0.0.0.0", 2281))}
	maps.Copy(files, config.Files)
	s = &Server{}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithName(name),
		testcontainers.WithExposedPorts("2181/tcp", "2281/tcp"),
		testcontainers.WithWaitStrategyAndDeadline(30*time.Second, wait.ForMappedPort("2181/tcp"), wait.ForNop(
			func(ctx context.Context, c wait.StrategyTarget) error { return s.waitFor(ctx, c, daemon) })),
	}
	for file, text := range files {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: "/conf/" + file, FileMode: 0o644,
		}))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := testcontainers.Run(ctx, image(), options...)
	s.stop = sync.OnceValue(func() error {
		return errors.Join(testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)), unwatch())
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a container of %s: %w", image(), err), s.Stop())
	}
	s.servers = []string{s.Addr}
	s.Origin = fmt.Sprintf("Docker image %s, %s, container %s on %s", image(), s.version(), name, s.Addr)
	return s, nil
}

// waitFor waits until a session can be made, and notes the addresses of the server.
func (s *Server) waitFor(ctx context.Context, container wait.StrategyTarget, daemon string) error {
	host, err1 := container.Host(ctx)
	port, err2 := container.MappedPort(ctx, "2181/tcp")
	second, err3 := container.MappedPort(ctx, "2281/tcp")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	// The library's guess is wrong where the daemon runs beside us inside a
	// container, and "localhost" may mean ::1, which is mapped separately.
	addrs := []string{net.JoinHostPort(host, port.Port())}
	if strings.HasPrefix(daemon, "unix:") {
		addrs = append([]string{"127.0.0.1:" + port.Port()}, addrs...)
	}
	addr, err := await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, func() error { return ended(ctx, container) })
	if err != nil {
		return err
	}
	host, _, _ = net.SplitHostPort(addr)
	s.Addr, s.Second = addr, net.JoinHostPort(host, second.Port())

	conn, _, err := zk.Connect([]string{addr, addr}, 10*time.Second, zk.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return err
	}
	defer conn.Close()
	return poll(ctx, func() error {
		if state := conn.State(); state != zk.StateHasSession {
			return fmt.Errorf("no session can be made at %s: %v", addr, state)
		}
		return nil
	})
}

// ended tells that the container has ended, if it has, and how.
func ended(ctx context.Context, container wait.StrategyTarget) error {
	state, err := container.State(ctx)
	if err != nil || state.Running {
		return err
	}
	var text []byte
	if log, err := container.Logs(ctx); err == nil {
		text, _ = io.ReadAll(log)
		log.Close()
	}
	return fmt.Errorf("it ended before it served; the end of its log:\n%s", lastLines(string(text), 12))
}
