package peers

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// StartRedis starts a Redis server for this process only, and returns its address. The server appends
// each command to a file. appendfsync, such as always or everysec, says when the kernel has to write
// the file to the disk.
func StartRedis(ctx context.Context, t zktest.T, appendfsync string) (address string) {
	return start(ctx, t, "redis-server", func(dir, port string) []string {
		return []string{
			"--port",
			port,
			"--bind",
			"127.0.0.1",
			"--dir",
			dir,
			"--save",
			"",
			"--appendonly",
			"yes",
			"--appendfsync",
			appendfsync,
		}
	})
}

// StartEtcd starts an etcd of one member for this process only, and returns its address.
func StartEtcd(ctx context.Context, t zktest.T) (address string) {
	return start(ctx, t, "etcd", func(dir, port string) []string {
		client, peer := "http://127.0.0.1:"+port, "http://127.0.0.1:0"
		return []string{
			"--data-dir",
			dir,
			"--log-level",
			"error",
			"--listen-client-urls",
			client,
			"--advertise-client-urls",
			client,
			"--listen-peer-urls",
			peer,
			"--initial-advertise-peer-urls",
			peer,
			"--initial-cluster",
			"default=" + peer,
		}
	})
}

// start starts a server. At its end, t stops the server and removes its files.
func start(ctx context.Context, t zktest.T, program string, args func(dir, port string) []string) (address string) {
	dir, err := os.MkdirTemp("", "zklock-"+program)
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(program, args(dir, port)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		select {
		case <-ctx.Done():
			stop()
			t.Fatalf("%s at %s: %v; it said: %s", program, address, err, said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
