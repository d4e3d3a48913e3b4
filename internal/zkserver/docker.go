package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// repairDocker returns the command that helps against an error of startDocker.
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

func checkDocker(ctx context.Context) error {
	_, err := reachDocker(ctx)
	return err
}

// reachDocker returns the address of a Docker daemon that answers and has the
// image, which it has pulled if need be.
func reachDocker(ctx context.Context) (host string, err error) {
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
		return "", fmt.Errorf("%w: %w", errNoDocker, err)
	}
	defer client.Close()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoDocker, err)
	}
	defer provider.Close()

	if _, err := provider.Client().ImageInspect(short, image()); err != nil {
		if err := provider.PullImage(long, image()); err != nil {
			return "", fmt.Errorf("the image %s is not there and cannot be pulled: %w", image(), err)
		}
	}
	return provider.Client().DaemonHost(), nil
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

// startDocker runs a container of the image.
//
// Its configuration is a file and not ZOO_... variables, so that any image
// will do whose ZooKeeper reads /conf/zoo.cfg, not the official one alone.
//
// The container is removed however this process ends: by Ryuk, or else by a
// watchdog, as for a local java.
func startDocker(ctx context.Context, config Config) (*Server, error) {
	daemon, err := reachDocker(ctx)
	if err != nil {
		return nil, err
	}
	name, unwatch := fmt.Sprintf("zklock-%d-%d", os.Getpid(), time.Now().UnixNano()), func() error { return nil }
	if tool := containerTool(); tool != nil && testcontainers.ReadConfig().Config.RyukDisabled {
		unwatch, err = watchdog(`"$@" >/dev/null 2>&1 || true`, append(tool, daemon, "rm", "-f", "-v", name)...)
		if err != nil {
			return nil, err
		}
	}
	session := &sessionStrategy{daemon: daemon}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithName(name),
		testcontainers.WithExposedPorts("2181/tcp", "2281/tcp"),
		testcontainers.WithWaitStrategyAndDeadline(30*time.Second, wait.ForMappedPort("2181/tcp"), session),
		withFile("zoo.cfg", zooCfg("/data", "0.0.0.0", 2181, config.lines("/conf", "0.0.0.0", 2281))),
	}
	for file, text := range config.Files {
		options = append(options, withFile(file, text))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := testcontainers.Run(ctx, image(), options...)
	s := &Server{container: c, stop: sync.OnceValue(func() error {
		return errors.Join(testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)), unwatch())
	})}
	if err == nil {
		s.Addr = session.addr
		s.Second, err = c.PortEndpoint(ctx, "2281/tcp", "")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a container of %s: %w", image(), err), s.Stop())
	}
	host, _, _ := net.SplitHostPort(s.Addr)
	_, port, _ := net.SplitHostPort(s.Second)
	s.Second = net.JoinHostPort(host, port)
	s.servers = []string{s.Addr}
	s.Origin = fmt.Sprintf("Docker image %s, %s, container %s on %s", image(), s.version(), name, s.Addr)
	return s, nil
}

func withFile(name, text string) testcontainers.CustomizeRequestOption {
	return testcontainers.WithFiles(testcontainers.ContainerFile{
		Reader: strings.NewReader(text), ContainerFilePath: "/conf/" + name, FileMode: 0o644,
	})
}

// sessionStrategy waits until a session can be made.
type sessionStrategy struct {
	daemon string
	addr   string // where it can
}

func (s *sessionStrategy) WaitUntilReady(ctx context.Context, target wait.StrategyTarget) error {
	host, err1 := target.Host(ctx)
	port, err2 := target.MappedPort(ctx, "2181/tcp")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	// The library's guess is wrong where the daemon runs beside us inside a
	// container, and "localhost" may mean ::1, which is mapped separately.
	addrs := []string{net.JoinHostPort(host, port.Port())}
	if strings.HasPrefix(s.daemon, "unix:") {
		addrs = append([]string{"127.0.0.1:" + port.Port()}, addrs...)
	}
	var err error
	s.addr, err = await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, func() error { return ended(ctx, target) })
	if err != nil {
		return err
	}
	conn, events, err := zk.Connect([]string{s.addr, s.addr}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("no session can be made at %s: %w", s.addr, ctx.Err())
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// ended tells that the container has ended, if it has, and how.
func ended(ctx context.Context, target wait.StrategyTarget) error {
	state, err := target.State(ctx)
	if err != nil || state.Running {
		return err
	}
	var text []byte
	if logs, err := target.Logs(ctx); err == nil {
		text, _ = io.ReadAll(logs)
		logs.Close()
	}
	return fmt.Errorf("it ended before it served; the end of its log:\n%s", lastLines(string(text), 12))
}
