// Command container is the Docker backend of zkserver. It is a program of its own,
// which zkserver starts when that backend is chosen: so none of the tests has to be
// linked with Docker's client.
//
// "container find IMAGE" sees to it that the image is there. "container run" reads a
// zkserver.Order from its standard input, and runs a container until that input ends:
// when the process that has started it closes it, or is gone, in whatever way.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"

	"zklock/internal/server/zkserver"
)

func main() {
	log.SetDefault(log.NewNoopLogger()) // the library talks a lot
	// Ryuk is a container that removes the others. Here this process does that.
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	// Who has started this process may be gone when it says something: it goes on then,
	// and removes the container.
	signal.Ignore(syscall.SIGPIPE)
	var err error
	switch os.Args[1] {
	case "find":
		err = find(os.Args[2])
	case "run":
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// find finds a Docker daemon that answers and has the image, which it has pulled if
// need be.
func find(image string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", zkserver.NoDocker, err)
	}
	defer client.Close()
	if _, err := client.ImageInspect(ctx, image); err == nil {
		return nil
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	long, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := provider.PullImage(long, image); err != nil {
		return fmt.Errorf("the image %s is not there and cannot be pulled: %w", image, err)
	}
	return nil
}

// run runs a container, and tells on its standard output where it is, and that it has
// ended by itself, if it has.
func run() (err error) {
	orders := json.NewDecoder(os.Stdin)
	var order zkserver.Order
	if err := orders.Decode(&order); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	container, err := testcontainers.Run(ctx, order.Image, options(order)...)
	defer func() {
		err = errors.Join(err, testcontainers.TerminateContainer(container, testcontainers.StopTimeout(0)))
	}()
	if err != nil {
		return err
	}
	where, err := placeOf(ctx, container)
	if err != nil {
		return err
	}
	news := json.NewEncoder(os.Stdout)
	if err := news.Encode(where); err != nil {
		return err
	}
	go func() {
		if text, ended := awaitEnd(container); ended {
			news.Encode(zkserver.Ports{Log: text})
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func options(order zkserver.Order) []testcontainers.ContainerCustomizer {
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithName(order.Name),
		testcontainers.WithExposedPorts(zkserver.ClientPort, zkserver.SecondPort),
		testcontainers.WithWaitStrategyAndDeadline(30*time.Second, wait.ForMappedPort(zkserver.ClientPort)),
	}
	for file, content := range order.Files {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: bytes.NewReader(content), ContainerFilePath: file, FileMode: 0o644,
		}))
	}
	return options
}

func placeOf(ctx context.Context, container testcontainers.Container) (zkserver.Ports, error) {
	provider, err0 := testcontainers.NewDockerProvider()
	host, err1 := container.Host(ctx)
	port, err2 := container.MappedPort(ctx, zkserver.ClientPort)
	second, err3 := container.MappedPort(ctx, zkserver.SecondPort)
	if err := errors.Join(err0, err1, err2, err3); err != nil {
		return zkserver.Ports{}, err
	}
	defer provider.Close()
	daemon := provider.Client().DaemonHost()
	return zkserver.Ports{Daemon: daemon, Host: host, Port: port.Port(), Second: second.Port()}, nil
}

// awaitEnd returns when the container has ended, with the end of its log, or when
// nobody can tell any more.
func awaitEnd(container testcontainers.Container) (text string, ended bool) {
	ctx := context.Background()
	for {
		state, err := container.State(ctx)
		if err != nil {
			return "", false
		}
		if !state.Running {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	log, err := container.Logs(ctx)
	if err != nil {
		return "", true
	}
	defer log.Close()
	all, _ := io.ReadAll(log)
	return string(all), true
}
