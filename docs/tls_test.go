package docs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
	"zklock/internal/upkeep/doccheck"
	reentrant "zklock/step05_reentrant"
)

// certify makes a certificate for somebody on this machine, signed by an
// authority. Without one it is an authority's own.
func certify(t *testing.T, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true}
	if by == nil {
		by = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Leaf, key.Public(), by.PrivateKey)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func inPEM(what string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: what, Bytes: der}))
}

func knows(authority *tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// secure starts a server with the page's own lines for zoo.cfg, but for the
// clientAuth given.
func secure(t *testing.T, clientAuth string) (server *zkserver.Server, authority *tls.Certificate) {
	t.Helper()
	lines := ""
	for _, b := range doccheck.Parse("operations.md", text(t, "operations.md")).Blocks() {
		if b.Language == "properties" {
			lines += b.Text + "\n"
		}
	}
	require.Contains(t, lines, "ssl.clientAuth=need\n", "the page's lines for zoo.cfg")
	lines = strings.ReplaceAll(lines, "/etc/zookeeper/", "{dir}/")
	lines = strings.ReplaceAll(lines, "=2281", "={port}")
	lines = strings.ReplaceAll(lines, "Auth=need", "Auth="+clientAuth)
	authority = certify(t, "our CA", nil)
	own := certify(t, "zk1", authority)
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	server, err = zkserver.StartWith(t.Context(), zkserver.Config{
		Lines: strings.Split(lines+"secureClientPortAddress={host}", "\n"),
		Files: map[string]string{"ca.pem": inPEM("CERTIFICATE", authority.Leaf.Raw),
			"server.pem": inPEM("PRIVATE KEY", key) + inPEM("CERTIFICATE", own.Leaf.Raw)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	// Java's first handshake takes long, and a client waits for a second only. This
	// one may fail: the server may want a certificate.
	patient := &net.Dialer{Timeout: zktest.Patience}
	if conn, err := tls.DialWithDialer(patient, "tcp", server.Second, knows(authority)); err == nil {
		_ = conn.Close()
	}
	t.Parallel() // not before: a java that starts disturbs tests that measure
	return server, authority
}

func overTLS(config *tls.Config) reentrant.Option {
	return reentrant.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	})
}

// join opens a session at the server's secure port.
func join(t *testing.T, server *zkserver.Server, timeout time.Duration, option reentrant.Option) *reentrant.Session {
	t.Helper()
	s, err := reentrant.Open([]string{server.Second}, timeout, option)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// turnedAway is why Open gets no session at the secure port. A busy server is asked
// again: it may not answer in time.
func turnedAway(t *testing.T, server *zkserver.Server, options ...reentrant.Option) (why string) {
	t.Helper()
	for range 5 {
		_, err := reentrant.Open([]string{server.Second}, zktest.SessionTimeout, options...)
		require.Error(t, err, "Open at the secure port")
		_, why, _ = strings.Cut(err.Error(), "]? ")
		if !strings.HasSuffix(why, context.DeadlineExceeded.Error()) {
			break
		}
	}
	return strings.ReplaceAll(why, server.Second, "zk1:2281")
}

// A real server with a port for TLS, and who gets a session there.
func TestOverTLS(t *testing.T) {
	server, authority := secure(t, "none")
	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		z := zktest.NewOn(t, server) // at the other port
		s := join(t, server, zktest.SessionTimeout, overTLS(knows(authority)))
		lock := reentrant.New(s, z.Root+"/lock")
		held, err := lock.Lock(z.Ctx)
		require.NoError(t, err)
		owner, _ := z.Owner(z.Root + "/lock/" + z.Names(z.Root + "/lock")[0])
		require.Equal(t, s.Conn().SessionID(), owner, "whose the znode is")
		plain, err := z.Word("cons") // asked at the plain port, it lists those who came in there
		require.NoError(t, err)
		assert.NotContains(t, plain, fmt.Sprintf("sid=%#x,", owner))
		assert.Contains(t, plain, fmt.Sprintf("sid=%#x,", z.Observer().ID))
		require.NoError(t, lock.Unlock(held))
	})
	t.Run("another authority", func(t *testing.T) {
		t.Parallel()
		why := turnedAway(t, server, overTLS(knows(certify(t, "another", nil))))
		chapter.SaysIn(t, "operations.md", "the client does not know the server's authority: %s", why)
	})
	t.Run("no TLS", func(t *testing.T) {
		t.Parallel()
		chapter.SaysIn(t, "operations.md", "the client speaks no TLS: %s", turnedAway(t, server))
	})
	t.Run("by name", func(t *testing.T) {
		t.Parallel()
		// Without a ServerName, TLS compares the certificate with the address that is
		// dialled: so the session must dial the name that Open was given.
		var mu sync.Mutex
		checked := map[string]int{}
		config := knows(authority)
		config.ServerName = ""
		config.VerifyConnection = func(state tls.ConnectionState) error {
			mu.Lock()
			defer mu.Unlock()
			checked[state.ServerName]++
			return state.PeerCertificates[0].VerifyHostname("localhost")
		}
		_, port, err := net.SplitHostPort(server.Second)
		require.NoError(t, err)
		s, err := reentrant.Open([]string{net.JoinHostPort("localhost", port)}, zktest.SessionTimeout, overTLS(config))
		require.NoError(t, err)
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, checked, 1, "the names with which the server's certificate was compared, and how often")
		require.Contains(t, checked, "localhost")
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		z := zktest.NewOn(t, server)
		timeout := 2 * zktest.MortalTimeout // the machine may be busy
		var gate sync.RWMutex
		s := join(
			t,
			server,
			timeout,
			reentrant.WithDialer(func(network, address string, limit time.Duration) (net.Conn, error) {
				conn, err := net.DialTimeout(network, address, limit)
				if err != nil {
					return nil, err
				}
				secure := tls.Client(gated{conn, &gate}, knows(authority))
				return secure, secure.Handshake() // now: the lease counts from the first frame
			}),
		)
		held, err := reentrant.New(s, z.Root+"/lock").Lock(z.Ctx)
		require.NoError(t, err)
		begun := time.Now()
		z.Await("two time-outs to pass", func() bool { return time.Since(begun) > 2*timeout })
		require.NoError(t, context.Cause(held), "the lock on a sound line")
		gate.Lock()
		defer gate.Unlock()
		zktest.AwaitChan(z, "the hold to end", held.Done())
		chapter.SaysIn(
			t,
			"operations.md",
			"over TLS a lock was held for two time-outs; then the line fell silent: %v",
			context.Cause(held),
		)
	})
}

// gated is a line below TLS on which a client cannot send while the gate is locked.
type gated struct {
	net.Conn
	gate *sync.RWMutex
}

func (c gated) Write(b []byte) (int, error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	return c.Conn.Write(b)
}

// Where the server wants certificates, one is a name for an ACL.
func TestACertificateIsAName(t *testing.T) {
	server, authority := secure(t, "need")
	z := zktest.NewOn(t, server)
	dir := z.Root + "/orders"
	acl := zk.ACL{Scheme: "x509", ID: "CN=orders", Perms: members}
	_, err := z.Observer().Create(dir, nil, zk.FlagPersistent, []zk.ACL{acl})
	require.NoError(t, err)
	for _, name := range []string{"orders", "web"} {
		config := knows(authority)
		config.Certificates = []tls.Certificate{*certify(t, name, authority)}
		lock := reentrant.New(join(t, server, zktest.SessionTimeout, overTLS(config)), dir)
		held, err := lock.Lock(z.Ctx)
		said := "the lock"
		if errors.Is(err, zk.ErrNoAuth) {
			said = zk.ErrNoAuth.Error()
		} else {
			require.NoError(t, err)
			require.NoError(t, lock.Unlock(held))
		}
		chapter.SaysIn(t, "operations.md", "a client with a certificate for CN=%s: %s", name, said)
	}
	// What TLS calls it differs from java to java. In TLS 1.3 the line might be
	// closed before the client has read the word.
	config := knows(authority)
	config.MaxVersion = tls.VersionTLS12
	const alert = "remote error: tls"
	why := turnedAway(t, server, overTLS(config))
	require.Contains(t, why, alert+": ")
	chapter.SaysIn(t, "operations.md", "a client without a certificate: %s", alert)
}
