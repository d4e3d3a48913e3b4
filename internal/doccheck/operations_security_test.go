package doccheck

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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// What docs/operations.md says on who may lock, and on TLS, seen on real
// servers.

// securityPage is operations: a page's sentences are looked for file by file.
const securityPage = "../../docs/operations.md"

// loggedIn opens a session of step 5 that knows a password.
func loggedIn(t *testing.T, z *zktest.Zoo, name, password string) *reentrant.Session {
	t.Helper()
	s, _ := session(z, name, zktest.SessionTimeout)
	must(t, s.Conn().AddAuth("digest", []byte(password)))
	return s
}

// private makes a lock directory for admin, and for others with some
// permissions.
func private(t *testing.T, z *zktest.Zoo, perms int32, others ...string) (dir string) {
	t.Helper()
	admin := z.Client("who sets it up")
	must(t, admin.AddAuth("digest", []byte("admin:sesame")))
	dir = z.Root + "/orders"
	acl := zk.DigestACL(zk.PermAll, "admin", "sesame")
	for _, other := range others {
		user, password, _ := strings.Cut(other, ":")
		acl = append(acl, zk.DigestACL(perms, user, password)...)
	}
	_, err := admin.Create(dir, nil, zk.FlagPersistent, acl)
	must(t, err)
	t.Cleanup(func() { // the observer may not
		names, _, _ := admin.Children(dir)
		for _, name := range names {
			_ = admin.Delete(dir+"/"+name, -1)
		}
		_ = admin.Delete(dir, -1)
	})
	return dir
}

// inWords writes an ACL as zkCli.sh does.
func inWords(acl []zk.ACL) string {
	var all []string
	for _, a := range acl {
		perms := ""
		for _, letter := range "cdrwa" {
			if a.Perms&(1<<strings.IndexRune("rwcda", letter)) != 0 {
				perms += string(letter)
			}
		}
		all = append(all, fmt.Sprintf("%s:%s:%s", a.Scheme, a.ID, perms))
	}
	return strings.Join(all, ",")
}

// refused is the error, which has to be that the permission is missing.
func refused(t *testing.T, err error) error {
	t.Helper()
	if !errors.Is(err, zk.ErrNoAuth) {
		t.Fatalf("%v, want ErrNoAuth", err)
	}
	return err
}

// queue lists the znodes of a queue that the observer may not list: the server
// tells them to anybody who says dump.
func queue(t *testing.T, z *zktest.Zoo, dir string) (nodes []string) {
	t.Helper()
	ephemerals, err := z.Ephemerals()
	must(t, err)
	for _, paths := range ephemerals {
		for _, path := range paths {
			if strings.HasPrefix(path, dir+"/") {
				nodes = append(nodes, path)
			}
		}
	}
	return nodes
}

// only is the one znode in a queue.
func only(t *testing.T, z *zktest.Zoo, dir string) string {
	t.Helper()
	nodes := queue(t, z, dir)
	if len(nodes) != 1 {
		t.Fatalf("the queue is %v, want one znode", nodes)
	}
	return nodes[0]
}

// The directory's ACL decides who may queue, and who may take others out.
func TestTheDirectorysACL(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	admin := z.Client("who sets it up")
	must(t, admin.AddAuth("digest", []byte("admin:sesame")))
	dir := z.Root + "/orders"

	acl := append(zk.DigestACL(zk.PermAll, "admin", "sesame"),
		zk.DigestACL(zk.PermRead|zk.PermCreate|zk.PermDelete, "orders", "secret")...)
	_, err := admin.Create(dir, nil, zk.FlagPersistent, acl)
	must(t, err)
	t.Cleanup(func() { _ = admin.Delete(dir, -1) }) // the observer may not
	acl, _, err = admin.GetACL(dir)
	must(t, err)
	chapter.SaysIn(t, securityPage, `create /locks/orders "" %s`, inWords(acl))

	stranger, c := session(z, "the stranger", zktest.SessionTimeout)
	_, err = reentrant.New(stranger, dir).Lock(z.Ctx)
	chapter.SaysIn(t, securityPage, "without the password: %s", strings.ReplaceAll(refused(t, err).Error(), z.Root, "/locks"))
	lock := reentrant.New(loggedIn(t, z, "the client", "orders:secret"), dir)
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	err = c.Delete(only(t, z, dir), -1)
	chapter.SaysIn(t, securityPage, "with it: the lock; and a stranger who deletes the holder's znode: %v", refused(t, err))
	_, err = c.Create(dir+"/lock--000000001", nil, 0, anyone)
	chapter.SaysIn(t, securityPage, "a stranger who puts a znode in front: %v", refused(t, err))
	must(t, lock.Unlock(held))

	must(t, c.Delete(dir, -1)) // the znode above is open to the world
	held, err = lock.Lock(z.Ctx)
	must(t, err)
	acl, _, err = c.GetACL(dir)
	must(t, err)
	chapter.SaysIn(t, securityPage, "a stranger deletes the empty directory, and the next lock makes it again: %s", inWords(acl))
	must(t, lock.Unlock(held))
}

const members = zk.PermRead | zk.PermCreate | zk.PermDelete

// A password each does not protect members of a queue from one another.
func TestAMemberCanTakeAnotherOut(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := private(t, z, members, "till:one", "web:two")
	till, web := loggedIn(t, z, "the holder", "till:one"), loggedIn(t, z, "the other", "web:two")
	lock := reentrant.New(till, dir)
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	must(t, web.Conn().Delete(only(t, z, dir), -1))
	second, err := reentrant.New(web, dir).Lock(z.Ctx)
	must(t, err)
	before, _ := reentrant.Token(held)
	after, _ := reentrant.Token(second)
	grown := map[bool]string{true: "greater", false: "not greater"}[after > before]
	chapter.SaysIn(t, securityPage, "one member deletes the other's znode, and has the lock, with a token that is %s", grown)
	if held.Err() != nil || after <= before {
		t.Errorf("the first context: %v; tokens %d, %d", held.Err(), before, after)
	}
	err = lock.Unlock(held)
	if !errors.Is(err, reentrant.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	chapter.SaysIn(t, securityPage, "the first holder's Unlock: %v", reentrant.ErrLost)
}

// Where nobody may delete, a session's end is the way out.
func TestADirectoryWithoutDelete(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := private(t, z, zk.PermRead|zk.PermCreate, "till:one", "web:two")
	till, web := loggedIn(t, z, "the holder", "till:one"), loggedIn(t, z, "the other", "web:two")
	lock := reentrant.New(till, dir)
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	node := only(t, z, dir)
	theirs := refused(t, web.Conn().Delete(node, -1))
	own := refused(t, lock.Unlock(held))
	chapter.SaysIn(t, securityPage, "without delete: the other's znode: %v; one's own, at Unlock: %v", theirs, zk.ErrNoAuth)
	if !errors.Is(own, zk.ErrNoAuth) || only(t, z, dir) != node {
		t.Errorf("Unlock: %v; the queue is %v", own, queue(t, z, dir))
	}
	till.Close()
	_, err = reentrant.New(web, dir).TryLock(z.Ctx, 0)
	must(t, err)
	chapter.SaysIn(t, securityPage, "the holder's session is closed: the other has the lock")

	again := loggedIn(t, z, "one that gives up", "till:one")
	if _, err := reentrant.New(again, dir).TryLock(z.Ctx, 0); !errors.Is(err, reentrant.ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
	chapter.SaysIn(t, securityPage, "a waiter gives up, and its session lives on: %d znodes in the queue", len(queue(t, z, dir)))
}

// The queue's znodes are open to the world: who knows the name of one can close
// it to those who would watch it.
func TestAShutZnodeTurnsWaitersAway(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := private(t, z, members, "orders:secret")
	lock := reentrant.New(loggedIn(t, z, "the holder", "orders:secret"), dir)
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	_, stranger := session(z, "the stranger", zktest.SessionTimeout)
	_, err = stranger.SetACL(only(t, z, dir), zk.DigestACL(zk.PermAll, "stranger", "pw"), -1)
	must(t, err)
	_, err = reentrant.New(loggedIn(t, z, "the next", "orders:secret"), dir).Lock(z.Ctx)
	if !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("%v, want ErrNoAuth", err)
	}
	chapter.SaysIn(t, securityPage, "a stranger gives the holder's znode an ACL of its own; the next client, with the password: %v", zk.ErrNoAuth)
	must(t, lock.Unlock(held))
}

func overTLS(config *tls.Config) reentrant.Option {
	return reentrant.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	})
}

// An authority signs certificates.
type authority struct {
	name        pkix.Name
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{name: pkix.Name{CommonName: name}}
	a.key, a.certificate = a.sign(t, &x509.Certificate{Subject: a.name, IsCA: true, BasicConstraintsValid: true})
	return a
}

// sign makes a key, and a certificate for it; the authority's own is signed
// with itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return key, certificate
}

// pem is what the others need to know the authority.
func (a *authority) pem() string { return inPEM("CERTIFICATE", a.certificate.Raw) }

func inPEM(what string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: what, Bytes: der}))
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue makes a key and its certificate for somebody on this machine, as one
// text.
func (a *authority) issue(t *testing.T, name string) string {
	t.Helper()
	key, certificate := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return inPEM("PRIVATE KEY", der) + inPEM("CERTIFICATE", certificate.Raw)
}

// client is the configuration of a client with a certificate.
func (a *authority) client(t *testing.T, name string) *tls.Config {
	t.Helper()
	text := []byte(a.issue(t, name))
	certificate, err := tls.X509KeyPair(text, text)
	must(t, err)
	return &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{certificate}}
}

// secure starts a server with the page's own lines for zoo.cfg, but for the
// clientAuth given.
func secure(t *testing.T, clientAuth string) (*zkserver.Server, *authority) {
	t.Helper()
	var lines []string
	for _, p := range repo(t).pages {
		for _, b := range p.blocks {
			if p.path == "docs/operations.md" && b.language == "properties" {
				lines = append(lines, b.lines...)
			}
		}
	}
	need := slices.Index(lines, "ssl.clientAuth=need")
	if need < 0 {
		t.Fatalf("the page's lines for zoo.cfg have no clientAuth: %q", lines)
	}
	lines[need] = "ssl.clientAuth=" + clientAuth
	for i := range lines {
		lines[i] = strings.NewReplacer("/etc/zookeeper/", "{dir}/", "=2281", "={port}").Replace(lines[i])
	}
	ca := newAuthority(t, "our CA")
	server, err := zkserver.StartWith(t.Context(), zkserver.Config{
		Lines: append(lines, "secureClientPortAddress={host}"),
		Files: map[string]string{"server.pem": ca.issue(t, "zk1"), "ca.pem": ca.pem()}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	return server, ca
}

// turnedAway is why Open gets no session at the secure port.
func turnedAway(t *testing.T, server *zkserver.Server, opts ...reentrant.Option) string {
	t.Helper()
	s, err := reentrant.Open([]string{server.Second}, zktest.SessionTimeout, opts...)
	if err == nil {
		s.Close()
		t.Fatal("it has a session")
	}
	_, why, _ := strings.Cut(err.Error(), "]? ")
	return strings.ReplaceAll(why, server.Second, "zk1:2281")
}

// A real server with a port for TLS, and who gets a session there.
func TestOverTLS(t *testing.T) {
	server, ca := secure(t, "none")
	t.Parallel() // not before: a java that starts disturbs tests that measure
	config := &tls.Config{RootCAs: ca.pool()}

	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		z := zktest.NewOn(t, server) // at the other port
		s, err := reentrant.Open([]string{server.Second}, zktest.SessionTimeout, overTLS(config))
		must(t, err)
		defer s.Close()
		lock := reentrant.New(s, z.Root+"/lock")
		held, err := lock.Lock(z.Ctx)
		must(t, err)
		// Asked at the plain port, cons lists those who came in there.
		owner, _ := z.Owner(only(t, z, z.Root+"/lock"))
		cons, err := z.Word("cons")
		must(t, err)
		plain := func(session int64) bool { return strings.Contains(cons, fmt.Sprintf("sid=%#x,", session)) }
		if owner != s.Conn().SessionID() || plain(owner) || !plain(z.Observer().ID) {
			t.Errorf("the session is %#x, the znode is of %#x, the observer is %#x; at the plain port are\n%s",
				s.Conn().SessionID(), owner, z.Observer().ID, cons)
		}
		must(t, lock.Unlock(held))
	})
	t.Run("another authority", func(t *testing.T) {
		t.Parallel()
		why := turnedAway(t, server, overTLS(&tls.Config{RootCAs: newAuthority(t, "another").pool()}))
		chapter.SaysIn(t, securityPage, "the client does not know the server's authority: %s", why)
	})
	t.Run("no TLS", func(t *testing.T) {
		t.Parallel()
		chapter.SaysIn(t, securityPage, "the client speaks no TLS: %s", turnedAway(t, server))
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		z := zktest.NewOn(t, server)
		const timeout = 2 * zktest.MortalTimeout // the machine may be busy
		var line mute
		s, err := reentrant.Open([]string{server.Second}, timeout, reentrant.WithDialer(line.dial(config)))
		must(t, err)
		defer s.Close()
		held, err := reentrant.New(s, z.Root+"/lock").Lock(z.Ctx)
		must(t, err)
		select {
		case <-held.Done():
			t.Fatalf("the lock ended on a sound line: %v", context.Cause(held))
		case <-time.After(2 * timeout):
		}
		line.silent.Store(true)
		zktest.AwaitChan(z, "the hold to end", held.Done())
		chapter.SaysIn(t, securityPage, "over TLS a lock was held for two time-outs; then the line fell silent: %v", context.Cause(held))
	})
}

// mute is a line below TLS that can fall silent: for each end the other is dead.
type mute struct{ silent atomic.Bool }

type muteConn struct {
	net.Conn
	line *mute
}

func (m *mute) dial(config *tls.Config) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if m.silent.Load() {
			return nil, errors.New("the line is down")
		}
		conn, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return nil, err
		}
		config := config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
		secure := tls.Client(muteConn{conn, m}, config)
		return secure, secure.Handshake() // now: the lease counts from the first frame
	}
}

func (c muteConn) Write(b []byte) (int, error) {
	if c.line.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c muteConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.line.silent.Load() {
			return n, err
		}
	}
}

// Where the server wants certificates, one is a name for an ACL.
func TestACertificateIsAName(t *testing.T) {
	server, ca := secure(t, "need")
	t.Parallel()
	z := zktest.NewOn(t, server)

	dir := z.Root + "/orders"
	acl := zk.ACL{Scheme: "x509", ID: "CN=orders", Perms: zk.PermRead | zk.PermCreate | zk.PermDelete}
	_, err := z.Observer().Create(dir, nil, zk.FlagPersistent, []zk.ACL{acl})
	must(t, err)

	for _, name := range []string{"orders", "web"} {
		s, err := reentrant.Open([]string{server.Second}, zktest.SessionTimeout, overTLS(ca.client(t, name)))
		must(t, err)
		defer s.Close()
		lock := reentrant.New(s, dir)
		held, err := lock.Lock(z.Ctx)
		said := "the lock"
		if err != nil {
			said = refused(t, err).Error()
			said = said[strings.Index(said, zk.ErrNoAuth.Error()):][:len(zk.ErrNoAuth.Error())]
		} else {
			must(t, lock.Unlock(held))
		}
		chapter.SaysIn(t, securityPage, "a client with a certificate for CN=%s: %s", name, said)
	}
	// What TLS calls it differs from java to java. In TLS 1.3 the line might be
	// closed before the client has read the word.
	config := &tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS12}
	const alert = "remote error: tls"
	why := turnedAway(t, server, overTLS(config))
	if strings.Contains(why, alert+": ") {
		why = alert
	}
	chapter.SaysIn(t, securityPage, "a client without a certificate: %s", why)
}
