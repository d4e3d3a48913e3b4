package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"zklock/internal/zkserver"
)

// Container is the server. The caller calls its exported methods, one at a time.
type Container struct {
	daemon  client.APIClient
	ports   []string
	running *testcontainers.DockerContainer // nil: it has not been started yet
}

// javaOptions is the variable from which any java takes options. A container's gets those of this machine, as a server
// without a container does.
const javaOptions = "JAVA_TOOL_OPTIONS"

type none = struct{}

// limited returns a context for requests that the daemon answers at once on a quiet machine.
func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

// Start starts the server. The first start writes the files, which are texts by path.
func (c *Container) Start(files map[string]string, _ *none) (err error) {
	ctx, cancel := limited()
	defer cancel()
	if c.running != nil {
		return c.running.Start(ctx)
	}
	var copied []testcontainers.ContainerFile
	for path, text := range files {
		copied = append(copied, testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	var exposed []string
	published := network.PortMap{}
	for _, n := range c.ports {
		port := network.MustParsePort(n + "/tcp")
		exposed = append(exposed, port.String())
		published[port] = []network.PortBinding{{HostPort: n}}
	}
	c.running, err = testcontainers.Run(ctx, zkserver.Image(),
		testcontainers.WithName(c.name()),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithFiles(copied...),
		testcontainers.WithEnv(map[string]string{javaOptions: os.Getenv(javaOptions)}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) { host.PortBindings = published }),
	)
	return err
}

// Configure replaces the server's zoo.cfg for its next start.
func (c *Container) Configure(zooCfg string, _ *none) error {
	ctx, cancel := limited()
	defer cancel()
	return c.running.CopyToContainer(ctx, []byte(zooCfg), "/conf/zoo.cfg", 0o644)
}

// HasEnded reports whether the server runs no longer.
func (c *Container) HasEnded(_ none, ended *bool) error {
	ctx, cancel := limited()
	defer cancel()
	state, err := c.running.State(ctx)
	if err == nil {
		*ended = !state.Running
	}
	return err
}

// Log returns what the server has printed.
func (c *Container) Log(_ none, text *string) error {
	if c.running == nil {
		return nil
	}
	ctx, cancel := limited()
	defer cancel()
	output, err := c.running.Logs(ctx)
	if err != nil {
		return err
	}
	defer output.Close()
	read, err := io.ReadAll(output)
	*text = string(read)
	return err
}

// Kill returns when the server has ended.
func (c *Container) Kill(_ none, _ *none) error {
	if c.running == nil {
		return nil
	}
	ctx, cancel := limited()
	defer cancel()
	id := c.running.GetContainerID()
	_, _ = c.daemon.ContainerKill(ctx, id, client.ContainerKillOptions{}) // fails if it has ended
	ended := c.daemon.ContainerWait(ctx, id, client.ContainerWaitOptions{})
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return err
	}
}

// Pause retries, because with cgroups of version 1 and on a busy machine, runc sometimes says that
// it is "unable to freeze" the container, and leaves it running.
func (c *Container) Pause(_ none, _ *none) error {
	ctx, cancel := limited()
	defer cancel()
	for {
		_, err := c.daemon.ContainerPause(ctx, c.running.GetContainerID(), client.ContainerPauseOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Resume lets a paused server continue.
func (c *Container) Resume(_ none, _ *none) error {
	ctx, cancel := limited()
	defer cancel()
	_, err := c.daemon.ContainerUnpause(ctx, c.running.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

// name is known before the start, so that a container can be removed whose start was not answered in time.
func (c *Container) name() string { return fmt.Sprintf("zklock-%d-%s", os.Getpid(), c.ports[0]) }

// remove retries, because on a busy machine the daemon may not answer in time.
func (c *Container) remove() error {
	const tries = 10
	var err error
	for range tries {
		ctx, cancel := limited()
		_, err = c.daemon.ContainerRemove(ctx, c.name(), client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
		cancel()
		if err == nil || strings.Contains(err.Error(), "No such container") {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
