package leased_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/leased"

	"zklock/internal/zktest"
)

// certify makes a certificate for a name on this machine, signed by an authority. Without one it is the
// certificate of an authority.
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

// overTLS is quoted in settings.md, as your own program would have it.
func overTLS(config *tls.Config) leased.Option {
	return leased.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	})
}

// A lock over TLS. The server requires a certificate, whose subject is the client's name in an ACL. The lease
// also works there. A client with the wrong authority, without a certificate, or without TLS gets an error
// that says why.
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
	server := leased.Start(t,
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
	// Java's first handshake takes long, and a client waits only for a second.
	warmUp := &net.Dialer{Timeout: zktest.Patience}
	if conn, err := tls.DialWithDialer(warmUp, "tcp", address, config); err == nil {
		_ = conn.Close()
	}

	_, err = z.Observer().Create(z.Root+"/lock", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: "CN=orders"}})
	require.NoError(t, err)
	const tries = 5 // on a busy machine a handshake may take more than a second, and fail
	var s *leased.Session
	for range tries {
		s, err = leased.Open(z.Ctx, secure, 12*time.Second, overTLS(config))
		z.Moved() // no tap is on this connection
		if err == nil {
			break
		}
	}
	require.NoError(t, err, "the last of %d tries", tries)
	defer s.Close()
	hold, err := leased.NewMutex(s, z.Root+"/lock").Lock(z.Ctx)
	require.NoError(t, err)
	begun := time.Now()
	z.Await("two timeouts to pass", func() bool { return time.Since(begun) > 2*s.Timeout() })
	require.NoError(t, context.Cause(hold.Context(z.Ctx)), "a hold of two timeouts over TLS")
	require.NoError(t, hold.Unlock())

	refused := func(says string, options ...leased.Option) {
		t.Helper()
		var err error
		for range tries {
			ctx, cancel := context.WithTimeout(z.Ctx, 3*time.Second)
			_, err = leased.Open(ctx, secure, zktest.SessionTimeout, options...)
			cancel()
			z.Moved() // no tap is on this connection
			require.Error(t, err, "want one that says %q", says)
			if strings.Contains(err.Error(), says) {
				return
			}
		}
		require.ErrorContains(t, err, says, "the last of %d tries", tries)
	}
	refused("certificate signed by unknown authority", overTLS(knows(certify(t, "another", nil))))
	refused("or it wants TLS")                                // without TLS
	refused("remote error: tls: ", overTLS(knows(authority))) // without a certificate: the server refuses the client
	require.NoError(t, z.Observer().Delete(z.Root+"/lock", -1))
}
