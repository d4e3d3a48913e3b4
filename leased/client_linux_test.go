package leased

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A name has two addresses, and no server answers at the first one. The dialer tries the second.
func TestEachAddressOfANameIsTried(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	port := server.Addr().(*net.TCPAddr).Port
	const wait = 200 * time.Millisecond
	silent := silentAt(t, [4]byte{127, 0, 0, 9}, port, wait)
	both := func(context.Context, string) ([]string, error) { return []string{silent, "127.0.0.1"}, nil }
	dial, address := dialEach(both), net.JoinHostPort("zoo.test", strconv.Itoa(port))
	conn, err := dial("tcp", address, wait)
	require.NoError(t, err)
	require.Equal(t, server.Addr().String(), conn.RemoteAddr().String())
	conn.Close()

	server.Close()
	_, err = dial("tcp", address, wait)
	require.ErrorContains(t, err, silent+":")
	require.ErrorContains(t, err, "127.0.0.1:")
	none := func(context.Context, string) ([]string, error) { return nil, os.ErrNotExist }
	_, err = dialEach(none)("tcp", address, wait)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// At a name's first address there is a server that accepts connections, and does not serve. The next dial begins with
// the other address, in whatever order the name server gives them. Another name has its own turn.
func TestTheNextDialOfANameBeginsWithItsNextAddress(t *testing.T) {
	t.Parallel()
	first, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer first.Close()
	_, port, err := net.SplitHostPort(first.Addr().String())
	require.NoError(t, err)
	second, err := net.Listen("tcp", "127.0.0.2:"+port)
	require.NoError(t, err)
	defer second.Close()
	found := []string{"127.0.0.1", "127.0.0.2"}
	dial := dialEach(func(context.Context, string) ([]string, error) {
		slices.Reverse(found)
		return slices.Clone(found), nil
	})
	var dialed []string
	for _, name := range []string{"zoo", "zoo", "ark", "zoo", "ark"} {
		conn, err := dial("tcp", net.JoinHostPort(name, port), time.Second)
		require.NoError(t, err)
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		require.NoError(t, err)
		dialed = append(dialed, name+" "+host)
		conn.Close()
	}
	want := []string{"zoo 127.0.0.1", "zoo 127.0.0.2", "ark 127.0.0.1", "zoo 127.0.0.1", "ark 127.0.0.2"}
	require.Equal(t, want, dialed)
}

// silentAt creates an address at which no connection succeeds, because its backlog is full.
func silentAt(t *testing.T, ip [4]byte, port int, wait time.Duration) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: ip}))
	require.NoError(t, syscall.Listen(fd, 0))
	silent := net.IP(ip[:]).String()
	const most = 10
	for range most {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(silent, strconv.Itoa(port)), wait)
		if err != nil {
			return silent
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatalf("an address with a backlog of none has taken %d connections", most)
	return ""
}
