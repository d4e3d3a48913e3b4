package leased

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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// start starts a server of the test's own.
func start(t *testing.T, lines ...string) *zkserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	s, err := zkserver.StartEnsemble(ctx, 1, lines...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	t.Parallel() // not before: a java that starts disturbs tests that measure
	return s.Server
}

// The servers serve only who has logged in. Who has not is told what to do.
func TestServersThatWantALogin(t *testing.T) {
	s := start(t, "enforce.auth.enabled=true", "enforce.auth.schemes=digest")
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	another, err := Open(ctx, s.Servers(), 4*time.Second)
	require.NoError(t, err)
	defer another.Close()
	for _, wait := range []time.Duration{forever, 10 * time.Second} {
		_, err = NewMutex(another, "/locks/orders").TryLock(ctx, wait)
		require.ErrorContains(t, err, "-124 (the servers want a login: give Open WithAuth)")
		require.NotErrorIs(t, err, ErrLocked)
	}

	// Who has logged in holds the lock and waits for it over broken lines, and gets it in the next session.
	loggedIn := func(timeout time.Duration) (*Mutex, *wiretap.Tap) {
		tap := wiretap.New()
		session, err := Open(ctx, s.Servers(), timeout, WithAuth("digest", []byte("orders:secret")), WithDialer(tap.Dial))
		require.NoError(t, err)
		t.Cleanup(session.Close)
		return NewMutex(session, "/locks/orders"), tap
	}
	one, tap := loggedIn(zktest.SessionTimeout)
	other, otherTap := loggedIn(zktest.SessionTimeout)
	hold := mustLock(t, one, ctx)
	letIn := make(chan *Hold)
	go func() {
		next, err := other.Lock(ctx)
		assert.NoError(t, err)
		letIn <- next
	}()
	awaits(t, "the other to wait", func() bool { return len(otherTap.Watched()) == 1 })
	for range 3 {
		for lock, tap := range map[*Mutex]*wiretap.Tap{one: tap, other: otherTap} {
			tap.HangUp()
			_, _, err := lock.q.s.Conn().Exists("/")
			for errors.Is(err, zk.ErrConnectionClosed) && ctx.Err() == nil {
				_, _, err = lock.q.s.Conn().Exists("/")
			}
			require.NoError(t, err)
		}
	}
	require.NoError(t, context.Cause(hold.Context()), "a hold over three broken lines")
	require.NoError(t, hold.Unlock(ctx))
	next := <-letIn
	require.NoError(t, next.Unlock(ctx))

	mortal, mortalTap := loggedIn(4 * time.Second)
	hold = mustLock(t, mortal, ctx)
	id := mortal.q.s.Conn().SessionID()
	mortalTap.Silence()
	awaits(t, "the session to expire", func() bool {
		sessions, err := s.Sessions()
		_, lives := sessions[id]
		return err == nil && !lives
	})
	mortalTap.Restore()
	require.ErrorIs(t, hold.Unlock(ctx), ErrLost)
	hold = mustLock(t, mortal, ctx)
	require.NotEqual(t, id, mortal.q.s.Conn().SessionID())
	require.NoError(t, hold.Unlock(ctx))
}

// awaits returns when cond is true.
func awaits(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, zktest.Patience, 5*time.Millisecond, "timed out waiting for %s", what)
}

// A local session can make no ephemeral znode, if the servers do not make a global one of it.
func TestServersWithLocalSessions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 3, "localSessionsEnabled=true", "localSessionsUpgradingEnabled=false")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Stop()) })
	s, err := Open(ctx, e.Servers(), 4*time.Second)
	require.NoError(t, err)
	defer s.Close()
	_, err = NewMutex(s, "/locks/orders").Lock(ctx)
	require.ErrorContains(t, err, "-120 (the servers gave a local session, which can make no ephemeral znode")
	require.ErrorContains(t, err, "localSessionsUpgradingEnabled=true")
}

// A server that allows few connections from an address hangs up on one more. Open says what that may be.
func TestAServerWithTooManyConnections(t *testing.T) {
	s := start(t, "maxClientCnxns=1")
	ctx, cancel := context.WithTimeout(t.Context(), zktest.Patience)
	defer cancel()
	one, err := Open(ctx, s.Servers(), zktest.SessionTimeout)
	require.NoError(t, err)
	defer one.Close()
	said := ""
	for range 5 { // the server may hang up before the handshake is sent
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = Open(short, s.Servers(), 4*time.Second)
		cancel()
		require.Error(t, err)
		said += err.Error() + "\n"
	}
	require.Contains(t, said, "too many connections from this address, see maxClientCnxns")
}

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

// overTLS stands in README.md.
func overTLS(config *tls.Config) Option {
	return WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	})
}

// A lock over TLS: the server wants a certificate, whose subject is the client's name in an ACL. The
// lease works there, too. Whoever does not fit is told why.
func TestOverTLS(t *testing.T) {
	authority := certify(t, "our CA", nil)
	own := certify(t, "zk1", authority)
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	free.Close()
	server := start(t,
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"secureClientPort="+port,
		"secureClientPortAddress=127.0.0.1",
		"ssl.keyStore.location="+write("server.pem", inPEM("PRIVATE KEY", key)+inPEM("CERTIFICATE", own.Leaf.Raw)),
		"ssl.trustStore.location="+write("ca.pem", inPEM("CERTIFICATE", authority.Leaf.Raw)),
		"ssl.clientAuth=need",
	)
	z := zktest.NewOn(t, server) // at the other port
	secure := []string{address}
	config := knows(authority)
	config.Certificates = []tls.Certificate{*certify(t, "orders", authority)}
	warmUp := &net.Dialer{Timeout: zktest.Patience} // Java's first handshake takes long, and a client waits for a second only
	if conn, err := tls.DialWithDialer(warmUp, "tcp", address, config); err == nil {
		_ = conn.Close()
	}

	_, err = z.Observer().Create(z.Root+"/lock", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: "CN=orders"}})
	require.NoError(t, err)
	s, err := Open(z.Ctx, secure, 5*time.Second, overTLS(config))
	require.NoError(t, err)
	defer s.Close()
	hold, err := NewMutex(s, z.Root+"/lock").Lock(z.Ctx)
	require.NoError(t, err)
	begun := time.Now()
	z.Await("two time-outs to pass", func() bool { return time.Since(begun) > 2*s.Timeout() })
	require.NoError(t, context.Cause(hold.Context()), "a hold of two time-outs over TLS")
	require.NoError(t, hold.Unlock(z.Ctx))

	refused := func(options ...Option) string {
		ctx, cancel := context.WithTimeout(z.Ctx, 3*time.Second)
		defer cancel()
		_, err := Open(ctx, secure, zktest.SessionTimeout, options...)
		require.Error(t, err)
		return err.Error()
	}
	require.Contains(t, refused(overTLS(knows(certify(t, "another", nil)))), "certificate signed by unknown authority")
	require.Contains(t, refused(), "or it wants TLS", "without TLS")
	require.True(t, strings.Contains(refused(overTLS(knows(authority))), "tls: "), "without a certificate")
	require.NoError(t, z.Observer().Delete(z.Root+"/lock", -1))
}
