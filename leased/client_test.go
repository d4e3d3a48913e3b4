package leased

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

// An address that can never be reached is refused at once, also beside a good one: a chroot
// would else be dropped in silence, and a server with a blank never be tried with success.
func TestAnAddressThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	good := z.Servers()[0]
	for address, says := range map[string]string{
		good + "/app":         "knows no chroot: put it before the paths of the locks",
		" " + good:            "it has a blank",
		good + " ":            "it has a blank",
		good + "\n":           "it has a blank",
		good + "," + good:     "give each server a string of its own",
		"zk://" + good:        "it has a scheme",
		"127.0.0.1":           "missing port in address",
		"127.0.0.1:":          "its port is none",
		"127.0.0.1:0":         "its port is none",
		"127.0.0.1:-1":        "its port is none",
		"127.0.0.1:70000":     "its port is none",
		"127.0.0.1:zookeeper": "its port is none",
		"::1":                 "want host:port, such as zk1:2181 or [::1]:2181",
		":2181":               "it has no host",
		"":                    "missing port in address",
	} {
		for _, servers := range [][]string{{address}, {good, address}} {
			dialed := false
			dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
				dialed = true
				return net.DialTimeout(network, address, timeout)
			}
			s, err := Open(z.Ctx, servers, zktest.SessionTimeout, WithDialer(dial))
			if err == nil {
				s.Close()
			}
			assert.ErrorContains(t, err, says, "%q", servers)
			assert.ErrorContains(t, err, "the address ", "%q", servers)
			assert.False(t, dialed, "%q: it was tried", servers)
		}
	}
	require.Empty(t, badAddress("[::1]:2181"))
}
