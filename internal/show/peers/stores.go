package peers

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
)

// A Store is a server that is not ZooKeeper, private to this process.
type Store struct {
	Address string
	Counts  func() (Counts, error)
}

// Counts is what a store has done so far for its clients.
type Counts struct {
	Requests int // as ZooKeeper calls them; for Redis, the commands that clients sent
	Writes   int // that changed something
	Sent     int // bytes of requests, which only ZooKeeper's clients tell
	Received int // bytes of replies
}

// StartRedis starts a Redis that writes each command to a file, and has the
// kernel write it to the disk as appendfsync says: always, everysec.
func StartRedis(ctx context.Context, t zktest.T, appendfsync string) *Store {
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
	}, redisCounts)
}

// StartEtcd starts an etcd of one member.
func StartEtcd(ctx context.Context, t zktest.T) *Store {
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
	}, etcdCounts)
}

// start runs a store until the end of t, which then removes what it wrote.
func start(
	ctx context.Context,
	t zktest.T,
	program string,
	args func(dir, port string) []string,
	counts func(address string) (Counts, error),
) *Store {
	dir, err := os.MkdirTemp("", "zklock-"+program)
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
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
	s := &Store{address, func() (Counts, error) { return counts(address) }}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, err = s.Counts(); err != nil; _, err = s.Counts() {
		select {
		case <-ctx.Done():
			stop()
			t.Fatalf("%s at %s: %v; it said: %s", program, address, err, said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s
}

// redisCounts reads what Redis says of itself in INFO.
func redisCounts(address string) (c Counts, err error) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return c, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "INFO everything\r\nQUIT\r\n"); err != nil {
		return c, err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		c.Received += len(lines.Bytes()) + len("\n") // of this reply, which is not counted in it yet
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		switch name {
		case "cmdstat_set", "cmdstat_evalsha", "cmdstat_eval":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, _ := strconv.Atoi(calls)
			c.Requests += n
		case "rdb_changes_since_last_save":
			c.Writes, _ = strconv.Atoi(value)
		case "total_net_output_bytes":
			n, _ := strconv.Atoi(value)
			c.Received += n
		}
	}
	return c, nil
}

// etcdCounts reads etcd's metrics.
func etcdCounts(address string) (c Counts, err error) {
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return c, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch {
		case strings.HasPrefix(name, `grpc_server_msg_received_total{`):
			c.Requests += int(n)
		case name == "etcd_mvcc_put_total" || name == "etcd_mvcc_delete_total":
			c.Writes += int(n)
		case name == "etcd_network_client_grpc_sent_bytes_total":
			c.Received += int(n)
		}
	}
	return c, nil
}
