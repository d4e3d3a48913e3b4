package zkserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"zklock/internal/process"
)

// A program of its own, internal/cmd/docker, talks to Docker, so that no other program carries the
// library for that.

var (
	errNoDocker  = errors.New("no Docker daemon answers")
	errNoProgram = errors.New("the program that starts containers cannot be built")
)

// Image returns the container image: ZK_IMAGE, or the official one.
func Image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

// repairDocker returns the command that may repair an error of findDocker, or of the start.
func repairDocker(err error) string {
	switch {
	case errors.Is(err, errNoDocker):
		return "sudo systemctl start docker"
	case errors.Is(err, errNoProgram):
		return "go mod download"
	}
	return "docker pull " + Image()
}

// Docker is what the program prints if it is started without ports: where a Docker daemon answers,
// which has the image.
type Docker struct {
	Host    string // at which this machine reaches the ports of a container
	Listen  string // where this machine listens for containers
	Gateway string // at which they reach this machine

	Silent bool   // no daemon answers
	Failed string // why there is no container to be had; "": there is one
}

// dockerProgram returns the command that builds the program, and runs it. Ctrl-C is not for it,
// because it has to remove its container.
func dockerProgram(ctx context.Context, args ...string) (program *exec.Cmd, stderr *bytes.Buffer, err error) {
	_, source, _, _ := runtime.Caller(0)
	program = exec.CommandContext(ctx, "go", append([]string{"run", "./internal/cmd/docker"}, args...)...)
	program.Dir = filepath.Join(filepath.Dir(source), "..", "..")
	program.Env = append(program.Environ(), "GOWORK=off")
	program.SysProcAttr = process.WithoutCtrlC()
	stderr = new(bytes.Buffer)
	program.Stderr = stderr
	return program, stderr, program.Err
}

// findDocker finds a Docker daemon that answers, and pulls the image if the daemon does not have it.
func findDocker(ctx context.Context) (launcher, error) {
	program, stderr, err := dockerProgram(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoProgram, err)
	}
	printed, err := program.Output()
	var found Docker
	if err == nil {
		err = json.Unmarshal(printed, &found)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w: %s", errNoProgram, err, stderr)
	case found.Silent:
		return nil, fmt.Errorf("%w: %s", errNoDocker, found.Failed)
	case found.Failed != "":
		return nil, errors.New(found.Failed)
	}
	return place{
		name:    "Docker image " + Image(),
		machine: newContainer,
		host:    found.Host,
		listen:  found.Listen,
		gateway: found.Gateway,
		address: "0.0.0.0",
	}.start, nil
}

// container is a server that runs in a container of the image. Its ports have the same numbers on
// the Docker host.
//
// It is configured by a file and not by ZOO_... variables, so any image works whose ZooKeeper reads
// /conf/zoo.cfg, and not only the official one.
//
// Each container has a program of its own. The program removes the container at the end of its
// input, and the kernel closes that if this process is killed.
type container struct {
	program *exec.Cmd
	input   io.Closer
	calls   *rpc.Client
	stderr  *bytes.Buffer
	files   map[string]string // texts by path
}

func newContainer(ports []int) (machine, error) {
	var args []string
	for _, port := range ports {
		args = append(args, strconv.Itoa(port))
	}
	program, stderr, err := dockerProgram(context.Background(), args...)
	if err != nil {
		return nil, err
	}
	input, err1 := program.StdinPipe()
	output, err2 := program.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := program.Start(); err != nil {
		return nil, err
	}
	calls := rpc.NewClient(struct {
		io.ReadCloser
		io.Writer
	}{output, input})
	return &container{program, input, calls, stderr, map[string]string{}}, nil
}

// ask calls a method of the program. No answer comes later than lasts.
func (c *container) ask(ctx context.Context, method string, args, answer any) error {
	const lasts = 2 * time.Minute // on a busy machine
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	call := c.calls.Go("Container."+method, args, answer, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return fmt.Errorf("Docker: %s: %w", method, ctx.Err())
	}
}

// do calls a method that has no answer.
func (c *container) do(method string) error {
	return c.ask(context.Background(), method, struct{}{}, new(struct{}))
}

func (c *container) String() string { return "a container of " + Image() }

func (c *container) data() string { return "/data" }

func (c *container) prepare(zooCfg string, data map[string]string) error {
	c.files["/conf/zoo.cfg"] = zooCfg
	for name, text := range data {
		c.files[c.data()+"/"+name] = text
	}
	return nil
}

func (c *container) configure(zooCfg string) error {
	return c.ask(context.Background(), "Configure", zooCfg, new(struct{}))
}

func (c *container) start(ctx context.Context) error {
	err := c.ask(ctx, "Start", c.files, new(struct{}))
	if err != nil && strings.Contains(err.Error(), "already") { // "allocated", "in use"
		return errors.Join(errPortTaken, err)
	}
	return err
}

func (c *container) failed(ctx context.Context) error {
	var ended bool
	if err := c.ask(ctx, "HasEnded", struct{}{}, &ended); err == nil && ended {
		return errEnded
	}
	return nil
}

func (c *container) log(ctx context.Context) (text string) {
	_ = c.ask(ctx, "Log", struct{}{}, &text)
	return text
}

func (c *container) kill() error { return c.do("Kill") }

func (c *container) pause() error { return c.do("Pause") }

func (c *container) resume() error { return c.do("Resume") }

func (c *container) remove() error {
	c.input.Close()
	if err := c.program.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w: %s", c, err, c.stderr)
	}
	return nil
}
