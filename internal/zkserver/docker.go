package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Ports of a container.
const (
	clientPort = "2181/tcp"
	secondPort = "2281/tcp"
)

var errNoDocker = errors.New("no Docker daemon answers")

// image is the container image: ZK_IMAGE, or the official one.
func image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

// repairDocker returns the command that helps against an error of findDocker,
// or of the start.
func repairDocker(err error) string {
	if errors.Is(err, errNoDocker) {
		return "sudo systemctl start docker"
	}
	return "docker pull " + image()
}

// findDocker finds a Docker daemon that answers and has the image, which it has
// pulled if need be.
func findDocker(ctx context.Context) (launcher, error) {
	log.SetDefault(log.NewNoopLogger()) // the library talks a lot
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	defer client.Close()
	if _, err := client.ImageInspect(ctx, image()); err == nil {
		return startContainer, nil
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, err
	}
	defer provider.Close()
	if err := provider.PullImage(ctx, image()); err != nil {
		return nil, fmt.Errorf("the image %s is not there and cannot be pulled: %w", image(), err)
	}
	return startContainer, nil
}

// startContainer runs a container of the image.
//
// Its configuration is a file and not ZOO_... variables, so that any image
// will do whose ZooKeeper reads /conf/zoo.cfg, not the official one alone.
//
// Stop removes the container. If this process is killed, testcontainers' own container, Ryuk,
// does, unless TESTCONTAINERS_RYUK_DISABLED is set.
func startContainer(ctx context.Context, config Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	container, err := testcontainers.Run(ctx, image(),
		testcontainers.WithExposedPorts(clientPort, secondPort),
		testcontainers.WithFiles(containerFiles(config)...),
		testcontainers.WithWaitStrategyAndDeadline(30*time.Second, wait.ForMappedPort(clientPort)),
	)
	s := &Server{stop: sync.OnceValue(func() error {
		return testcontainers.TerminateContainer(container, testcontainers.StopTimeout(0))
	})}
	if err == nil {
		err = s.awaitContainer(ctx, container)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a container of %s: %w", image(), err), s.Stop())
	}
	s.servers = []string{s.Addr}
	s.Origin = fmt.Sprintf("Docker image %s, %s, container %s on %s",
		image(), s.version(), container.GetContainerID()[:12], s.Addr)
	return s, nil
}

func containerFiles(config Config) (files []testcontainers.ContainerFile) {
	add := func(path, text string) {
		files = append(files, testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	lines := config.lines("/conf", "0.0.0.0", 2281)
	add("/conf/zoo.cfg", zooCfg("/data", "0.0.0.0", 2181, lines))
	for name, text := range config.Files {
		add("/conf/"+name, text)
	}
	for name, text := range config.Data {
		add("/data/"+name, text)
	}
	return files
}

// awaitContainer waits until a session can be made, and notes the addresses of the server.
func (s *Server) awaitContainer(ctx context.Context, container testcontainers.Container) error {
	host, err1 := container.Host(ctx)
	port, err2 := container.MappedPort(ctx, clientPort)
	second, err3 := container.MappedPort(ctx, secondPort)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	// The library's guess is wrong where the daemon runs beside us inside a
	// container, and "localhost" may mean ::1, which is mapped separately.
	addrs := []string{net.JoinHostPort("127.0.0.1", port.Port()), net.JoinHostPort(host, port.Port())}
	ended := func() error { return endOf(ctx, container) }
	addr, err := await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, ended)
	if err != nil {
		return err
	}
	host, _, _ = net.SplitHostPort(addr)
	s.Addr, s.Second = addr, net.JoinHostPort(host, second.Port())

	conn, _, err := zk.Connect([]string{addr, addr}, 10*time.Second, zk.WithLogInfo(false))
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

// endOf tells that the container has ended, if it has, and how.
func endOf(ctx context.Context, container testcontainers.Container) error {
	state, err := container.State(ctx)
	if err != nil || state.Running {
		return nil
	}
	said := ""
	if output, err := container.Logs(ctx); err == nil {
		defer output.Close()
		text, _ := io.ReadAll(output)
		said = lastLines(string(text), 12)
	}
	return fmt.Errorf("it ended before it served; the end of its log:\n%s", said)
}
