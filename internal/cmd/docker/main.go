// Command docker runs a ZooKeeper server in a container for package zkserver, which starts it.
//
//	docker                         prints in JSON whether a container can be had, and how it is reached
//	docker 20001 20002 20003       runs a server with these ports, for one caller at its input and output
//
// It removes the container when its input ends. So the container ends with its caller, however that
// one ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"zklock/internal/zkserver"
)

func main() {
	log.SetDefault(log.NewNoopLogger()) // the library writes a long log
	// Ryuk is a container that removes the others when this process has been killed. It would have to
	// be pulled first.
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ports []string) error {
	if len(ports) == 0 {
		return json.NewEncoder(os.Stdout).Encode(find())
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	c := &Container{daemon: provider.Client(), ports: ports}
	if err := rpc.Register(c); err != nil {
		return err
	}
	rpc.ServeConn(caller{os.Stdin, os.Stdout}) // until the input ends
	return c.remove()
}

// caller is the process that has started this one.
type caller struct {
	io.ReadCloser
	io.Writer
}

// find finds a Docker daemon that answers, and pulls the image if the daemon does not have it.
func find() (found zkserver.Docker) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider()
	if err == nil {
		_, err = provider.Client().Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		return zkserver.Docker{Silent: true, Failed: err.Error()}
	}
	defer provider.Close()
	image := zkserver.Image()
	if _, err := provider.Client().ImageInspect(ctx, image); err != nil {
		if err := provider.PullImage(ctx, image); err != nil {
			return zkserver.Docker{Failed: fmt.Sprintf("cannot pull the image %s: %v", image, err)}
		}
	}
	found.Host, err = provider.DaemonHost(ctx)
	if err != nil {
		return zkserver.Docker{Failed: err.Error()}
	}
	if found.Host == "localhost" { // it may mean ::1, which Docker maps separately
		found.Host = "127.0.0.1"
	}
	found.Gateway, err = provider.GetGatewayIP(ctx)
	if err != nil {
		return zkserver.Docker{Failed: err.Error()}
	}
	// The containers reach this machine at their gateway. With Docker Desktop, the gateway is an
	// address of another machine. There, containers reach this machine by a name.
	found.Listen = found.Gateway
	listener, err := net.Listen("tcp", net.JoinHostPort(found.Gateway, "0"))
	if err != nil {
		found.Listen, found.Gateway = "127.0.0.1", "host.docker.internal"
		return found
	}
	listener.Close()
	return found
}
