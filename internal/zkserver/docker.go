package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	dockernetwork "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

var errNoDocker = errors.New("no Docker daemon answers")

// image returns the container image: ZK_IMAGE, or the official one.
func image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

// repairDocker returns the command that may repair an error of findDocker, or of the start.
func repairDocker(err error) string {
	if errors.Is(err, errNoDocker) {
		return "sudo systemctl start docker"
	}
	return "docker pull " + image()
}

// findDocker finds a Docker daemon that answers, and pulls the image if the daemon does not have
// it.
func findDocker(ctx context.Context) (launcher, error) {
	log.SetDefault(log.NewNoopLogger()) // the library writes a long log
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	defer provider.Close() // closes idle connections: its client can be used again
	daemon := provider.Client()
	if _, err := daemon.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	if _, err := daemon.ImageInspect(ctx, image()); err != nil {
		if err := provider.PullImage(ctx, image()); err != nil {
			return nil, fmt.Errorf("cannot pull the image %s: %w", image(), err)
		}
	}
	host, err1 := provider.DaemonHost(ctx)
	gateway, err2 := provider.GetGatewayIP(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if host == "localhost" { // it may mean ::1, which Docker maps separately
		host = "127.0.0.1"
	}
	// The containers reach this machine at their gateway. With Docker Desktop, the gateway is an
	// address of another machine. There, containers reach this machine by a name.
	listen, calls := gateway, gateway
	listener, err := net.Listen("tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		listen, calls = "127.0.0.1", "host.docker.internal"
	} else {
		listener.Close()
	}
	return place{
		name:    "Docker image " + image(),
		machine: func(ports []int) (machine, error) { return &container{daemon: daemon, ports: ports}, nil },
		host:    host,
		listen:  listen,
		gateway: calls,
		address: "0.0.0.0",
	}.start, nil
}

// container is a server that runs in a container of the image. Its ports have the same numbers on
// the Docker host.
//
// It is configured by a file and not by ZOO_... variables, so any image works whose ZooKeeper reads
// /conf/zoo.cfg, and not only the official one.
//
// If this process is killed, testcontainers' own container, Ryuk, removes it, unless
// TESTCONTAINERS_RYUK_DISABLED is set.
type container struct {
	daemon                          client.APIClient
	ports                           []int
	files                           []testcontainers.ContainerFile
	*testcontainers.DockerContainer // nil: it has not been started yet
}

func (c *container) String() string { return "a container of " + image() }

func (c *container) data() string { return "/data" }

func (c *container) prepare(zooCfg string, data map[string]string) error {
	add := func(path, text string) {
		c.files = append(c.files, testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	add("/conf/zoo.cfg", zooCfg)
	for name, text := range data {
		add(c.data()+"/"+name, text)
	}
	return nil
}

func (c *container) start(ctx context.Context) (err error) {
	if c.DockerContainer != nil {
		return c.DockerContainer.Start(ctx)
	}
	var exposed []string
	published := dockernetwork.PortMap{}
	for _, n := range c.ports {
		port := dockernetwork.MustParsePort(fmt.Sprintf("%d/tcp", n))
		exposed = append(exposed, port.String())
		published[port] = []dockernetwork.PortBinding{{HostPort: strconv.Itoa(n)}}
	}
	c.DockerContainer, err = testcontainers.Run(ctx, image(),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithFiles(c.files...),
		testcontainers.WithHostConfigModifier(func(host *dockercontainer.HostConfig) { host.PortBindings = published }),
	)
	if err != nil && strings.Contains(err.Error(), "already") { // "allocated", "in use"
		return errors.Join(errPortTaken, err)
	}
	return err
}

func (c *container) failed(ctx context.Context) error {
	if state, err := c.State(ctx); err == nil && !state.Running {
		return errEnded
	}
	return nil
}

func (c *container) log(ctx context.Context) string {
	if c.DockerContainer == nil {
		return ""
	}
	output, err := c.Logs(ctx)
	if err != nil {
		return ""
	}
	defer output.Close()
	text, _ := io.ReadAll(output)
	return string(text)
}

// answers is how long the daemon may take for a request that it answers at once on a quiet machine.
const answers = time.Minute

func (c *container) kill() error {
	if c.DockerContainer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answers)
	defer cancel()
	_, _ = c.daemon.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{}) // fails if it has ended
	ended := c.daemon.ContainerWait(ctx, c.GetContainerID(), client.ContainerWaitOptions{})
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return err
	}
}

// pause retries, because with cgroups of version 1 and on a busy machine, runc sometimes says that
// it is "unable to freeze" the container, and leaves it running.
func (c *container) pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), answers)
	defer cancel()
	return poll(ctx, func() error {
		_, err := c.daemon.ContainerPause(ctx, c.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

func (c *container) resume() error {
	ctx, cancel := context.WithTimeout(context.Background(), answers)
	defer cancel()
	_, err := c.daemon.ContainerUnpause(ctx, c.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

func (c *container) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), answers)
	defer cancel()
	err := c.Terminate(ctx, testcontainers.StopTimeout(0)) // also if it is nil
	return errors.Join(err, c.daemon.Close())
}
