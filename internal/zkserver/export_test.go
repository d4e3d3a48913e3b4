package zkserver

import (
	"context"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// What the tests in package zkserver_test see of the inside.
var (
	Answering = answering
	FreePort  = freePort
)

// NewServer is a server at addresses.
func NewServer(addrs ...string) *Server { return &Server{servers: addrs} }

// Launch starts a local server on this very port.
func Launch(ctx context.Context, port int) (*Server, error) {
	found, err := findLocal()
	if err != nil {
		return nil, err
	}
	return found.launch(ctx, port, port, Config{})
}

// Pid is the number of the java that runs the server, if one does.
func (s *Server) Pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.java.Process.Pid
}

// Container is what the server runs in, if it does.
func (s *Server) Container() *testcontainers.DockerContainer { return s.container }

// ContainerID is the container's, if it runs in one.
func (s *Server) ContainerID() string {
	if s.container == nil {
		return ""
	}
	return s.container.ID
}

// Within is Word with less patience.
func (s *Server) Within(limit time.Duration, word string) (string, error) {
	return ask(s.Addr, word, limit)
}
