package zkserver

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/server/process"
)

// The program that runs containers, and what is said to it and by it.
const (
	containerProgram = "zklock/internal/server/zkserver/container"

	ClientPort = "2181/tcp" // of a container
	SecondPort = "2281/tcp"
	NoDocker   = "no Docker daemon answers"
)

// Order is which container is to be run.
type Order struct {
	Image, Name string
	Files       map[string][]byte // by path
}

// Ports is where a container's ports are, seen from here; or, if the container has
// ended by itself, the end of its log.
type Ports struct {
	Daemon, Host, Port, Second string
	Log                        string
}

// image is the container image: ZK_IMAGE, or the official one.
func image() string {
	return cmp.Or(os.Getenv("ZK_IMAGE"), "zookeeper:3.9.3")
}

// repairDocker returns the command that helps against an error of findDocker,
// or of the start.
func repairDocker(err error) string {
	if strings.Contains(err.Error(), NoDocker) {
		return "sudo systemctl start docker"
	}
	return "docker pull " + image()
}

// findDocker finds a Docker daemon that answers and has the image, which it has
// pulled if need be.
func findDocker(ctx context.Context) (launcher, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	find := exec.CommandContext(ctx, "go", "run", containerProgram, "find", image())
	if output, err := find.CombinedOutput(); err != nil {
		said := strings.TrimSuffix(strings.TrimSpace(string(output)), "\nexit status 1") // which go run adds
		return nil, fmt.Errorf("%s (%w)", said, err)
	}
	return startContainer, nil
}

// startContainer runs a container of the image.
//
// Its configuration is a file and not ZOO_... variables, so that any image
// will do whose ZooKeeper reads /conf/zoo.cfg, not the official one alone.
//
// The container is removed however this process ends.
func startContainer(ctx context.Context, config Config) (*Server, error) {
	lines := config.lines("/conf", "0.0.0.0", 2281)
	order := Order{
		Image: image(),
		Name:  fmt.Sprintf("zklock-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Files: map[string][]byte{"/conf/zoo.cfg": []byte(zooCfg("/data", "0.0.0.0", 2181, lines))},
	}
	for name, text := range config.Files {
		order.Files["/conf/"+name] = []byte(text)
	}
	for name, text := range config.Data {
		order.Files["/data/"+name] = []byte(text)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := runContainer(order)
	if err != nil {
		return nil, err
	}
	s := &Server{stop: c.stop}
	if err := c.await(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("a container of %s: %w", order.Image, err), s.Stop())
	}
	s.servers = []string{s.Addr}
	s.Origin = fmt.Sprintf("Docker image %s, %s, container %s on %s", order.Image, s.version(), order.Name, s.Addr)
	return s, nil
}

// container is a running program that runs a container.
type container struct {
	stop  func() error
	where chan Ports // the first is where it is, the next that it has ended
	said  *strings.Builder
}

func runContainer(order Order) (*container, error) {
	c := &container{where: make(chan Ports, 2), said: &strings.Builder{}}
	program := exec.Command("go", "run", containerProgram, "run")
	program.SysProcAttr = process.WithoutCtrlC()
	program.Stderr = c.said
	orders, err1 := program.StdinPipe() // no other child inherits its end of the pipe
	news, err2 := program.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := program.Start(); err != nil {
		return nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.where)
		for lines := bufio.NewScanner(news); lines.Scan(); {
			var place Ports
			if json.Unmarshal(lines.Bytes(), &place) == nil {
				c.where <- place
			}
		}
	}()
	c.stop = sync.OnceValue(func() error {
		orders.Close()
		<-read
		if err := program.Wait(); err != nil {
			return fmt.Errorf("removing the container %s: %w: %s", order.Name, err, c.said)
		}
		return nil
	})
	if err := json.NewEncoder(orders).Encode(order); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// await waits until a session can be made, and notes the addresses of the server.
func (c *container) await(ctx context.Context, s *Server) error {
	var place Ports
	select {
	case p, ok := <-c.where:
		if !ok {
			return errors.New("it did not start") // stop tells why
		}
		place = p
	case <-ctx.Done():
		return ctx.Err()
	}
	// The library's guess is wrong where the daemon runs beside us inside a
	// container, and "localhost" may mean ::1, which is mapped separately.
	addrs := []string{net.JoinHostPort(place.Host, place.Port)}
	if strings.HasPrefix(place.Daemon, "unix:") {
		addrs = append([]string{"127.0.0.1:" + place.Port}, addrs...)
	}
	addr, err := await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, c.ended)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	s.Addr, s.Second = addr, net.JoinHostPort(host, place.Second)

	conn, _, err := zk.Connect([]string{addr, addr}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
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
func (c *container) ended() error {
	select {
	case end := <-c.where:
		return fmt.Errorf("it ended before it served; the end of its log:\n%s", lastLines(end.Log, 12))
	default:
		return nil
	}
}
