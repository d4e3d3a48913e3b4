package zktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// image is the container image: ZK_IMAGE, or the official one.
func image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

var (
	errNoDocker = errors.New("no Docker daemon answers")
	errNoTool   = errors.New("testcontainers needs Ryuk, as no docker or podman command is on the PATH")
)

// repairDocker returns the command that helps against an error of startDocker.
func repairDocker(err error) string {
	switch {
	case errors.Is(err, errNoDocker):
		return "sudo systemctl start docker"
	case errors.Is(err, errNoTool):
		return "export TESTCONTAINERS_RYUK_DISABLED=true"
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
	if containerTool() != nil {
		os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true") // see startDocker
	}

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
		long, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		if err := provider.PullImage(long, image()); err != nil {
			return "", fmt.Errorf("the image %s is not there and cannot be pulled: %w", image(), err)
		}
	}
	return provider.Client().DaemonHost(), nil
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
// The container is removed however this process ends: by a watchdog, as for a
// local java, where there is a command for it to run. Else testcontainers does
// it with a second container, Ryuk, whose image has to be pulled as well.
func startDocker(ctx context.Context, extra Extra) (*Server, error) {
	host, err := reachDocker(ctx)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("zklock-%d-%d", os.Getpid(), time.Now().UnixNano())
	s := &Server{container: name}
	tool := containerTool()
	if tool != nil {
		s.stop, err = watchdog(`"$@"`, append(tool, host, "rm", "-f", "-v", name)...)
		if err != nil {
			return nil, err
		}
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	files := map[string]string{"/conf/zoo.cfg": config("/data", "0.0.0.0", 2181, extra.lines("/conf", "0.0.0.0", 2281))}
	for file, text := range extra.Files {
		files["/conf/"+file] = text
	}
	c, err := testcontainers.Run(ctx, image(), append(container(name, files), testcontainers.WithExposedPorts("2281/tcp"))...)
	if tool == nil {
		s.stop = sync.OnceValue(func() error {
			return testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0))
		})
		if err != nil {
			err = fmt.Errorf("%w: %w", errNoTool, err)
		}
	}
	var addrs []string
	if err == nil {
		addrs, err = mapped(ctx, c, host)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		s.Addr, err = await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, func() error { return ended(ctx, c) })
	}
	if err == nil {
		s.Second, err = second(ctx, c, s.Addr)
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("a container of %s: %w", image(), err)
	}
	s.servers = []string{s.Addr}
	s.Origin = fmt.Sprintf("Docker image %s, %s, container %s on %s", image(), s.version(), name, s.Addr)
	return s, nil
}

// container describes a container with a ZooKeeper and these files.
func container(name string, files map[string]string) []testcontainers.ContainerCustomizer {
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithName(name),
		testcontainers.WithExposedPorts("2181/tcp"),
	}
	for path, text := range files {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader:            strings.NewReader(text),
			ContainerFilePath: path,
			FileMode:          0o644,
		}))
	}
	return options
}

// mapped returns the addresses under which the container's server may be
// found. The library's guess is wrong where the daemon runs beside us inside
// a container, and "localhost" may mean ::1, which is mapped separately.
func mapped(ctx context.Context, c *testcontainers.DockerContainer, host string) ([]string, error) {
	guess, err := c.PortEndpoint(ctx, "2181/tcp", "")
	if err != nil || !strings.HasPrefix(host, "unix:") {
		return []string{guess}, err
	}
	_, port, err := net.SplitHostPort(guess)
	return []string{"127.0.0.1:" + port, guess}, err
}

// second returns the address for a second port, on the host that the first is
// found on.
func second(ctx context.Context, c *testcontainers.DockerContainer, first string) (string, error) {
	guess, err := c.PortEndpoint(ctx, "2281/tcp", "")
	host, _, err1 := net.SplitHostPort(first)
	_, port, err2 := net.SplitHostPort(guess)
	return net.JoinHostPort(host, port), errors.Join(err, err1, err2)
}

// ended tells that the container has ended, if it has, and how.
func ended(ctx context.Context, c *testcontainers.DockerContainer) error {
	state, err := c.State(ctx)
	if err != nil || state.Running {
		return err
	}
	var text []byte
	if logs, err := c.Logs(ctx); err == nil {
		text, _ = io.ReadAll(logs)
		logs.Close()
	}
	return fmt.Errorf("it ended before it served; the end of its log:\n%s", lastLines(string(text), 12))
}
