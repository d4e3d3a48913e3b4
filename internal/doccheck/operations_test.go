package doccheck

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// What docs/operations.md says, seen on a real server.

const operations = "../../docs/operations.md"

// session opens a session of step 5 with a tap on its line.
func session(z *zktest.Zoo, name string, timeout time.Duration) (s *reentrant.Session, c *zktest.Client) {
	c = z.Adopt(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		if s, err = reentrant.Open(z.Servers(), timeout, reentrant.WithDialer(dial)); err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

var (
	mntrKey = regexp.MustCompile("`(zk_[a-z0-9_]+)`")

	// ofAnEnsemble are the keys that a server on its own does not have. The page
	// says so of each: "in an ensemble".
	ofAnEnsemble = map[string]bool{"zk_synced_followers": true, "zk_learners": true, "zk_quorum_size": true, "zk_pending_syncs": true}
)

// A key of mntr that any page names is one that the server has.
func TestTheServerHasTheseKeys(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	mntr, err := z.Word("mntr")
	must(t, err)
	for _, p := range repo(t).pages {
		for _, l := range p.prose {
			for _, m := range mntrKey.FindAllStringSubmatch(l.text, -1) {
				has := strings.Contains("\n"+mntr, "\n"+m[1]+"\t")
				alone := ofAnEnsemble[m[1]]
				if !has && !alone {
					t.Errorf("%s:%d: mntr has no %s", p.path, l.number, m[1])
				}
				if alone && !strings.Contains(l.text, "in an ensemble") {
					t.Errorf("%s:%d: %s is there only in an ensemble: the line does not say so", p.path, l.number, m[1])
				}
			}
		}
	}
}

// Each znode right below the root has metrics of its own, for ever.
func TestEachTopLevelZnodeAddsMetrics(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	mntr, err := z.Word("mntr")
	must(t, err)
	n := strings.Count(mntr, "_"+strings.TrimPrefix(z.Root, "/")+"_write_per_namespace\t")
	chapter.SaysIn(t, operations, "one znode below the root, one write: %d new lines in mntr", n)
	if n < 5 {
		t.Errorf("%d lines: there seem to be no metrics for each namespace", n)
	}
}

// The counter that says how many sessions died without a goodbye.
func TestExpiriesAreCounted(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	expired := func() int64 {
		counters, err := z.Mntr()
		must(t, err)
		return counters["zk_stale_sessions_expired"]
	}
	before := expired()
	closed, crashed := z.Client("one that says goodbye"), z.Mortal("one that does not")
	closed.Close()
	crashed.Crash()
	z.AwaitExpiry(crashed)
	if expired() == before { // other tests' sessions may expire meanwhile
		t.Error("an expiry is not counted in zk_stale_sessions_expired")
	}
}

// An idle client's pings are what keeps its session, and its lease.
func TestPings(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Mortal("the client")
	mark := c.Tap.Mark()
	var pings []wiretap.Frame
	z.Await("three pings", func() bool {
		pings = nil
		for _, f := range c.Tap.Since(mark) {
			if f.Kind == wiretap.Request && f.Op == wiretap.Ping {
				pings = append(pings, f)
			}
		}
		return len(pings) >= 3
	})
	gap := pings[2].At.Sub(pings[1].At)
	chapter.SaysIn(t, operations, "an idle client sends a ping every %v of its time-out", chapter.About(gap.Seconds()/zktest.MortalTimeout.Seconds(), 1.6))
}

// The directory's ACL decides who may queue, and who may take others out.
func TestTheDirectorysACL(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	admin := z.Client("who sets it up")
	must(t, admin.AddAuth("digest", []byte("locker:secret")))
	dir := z.Root + "/orders"
	_, err := admin.Create(dir, nil, zk.FlagPersistent, zk.DigestACL(zk.PermRead|zk.PermCreate|zk.PermDelete|zk.PermAdmin, "locker", "secret"))
	must(t, err)
	t.Cleanup(func() { _ = admin.Delete(dir, -1) }) // the observer may not

	stranger, c := session(z, "the stranger", zktest.SessionTimeout)
	_, err = reentrant.New(stranger, dir).Lock(z.Ctx)
	chapter.SaysIn(t, operations, "without the password: %s", strings.ReplaceAll(err.Error(), z.Root, "/locks"))
	if !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("want ErrNoAuth")
	}
	known, _ := session(z, "the client", zktest.SessionTimeout)
	must(t, known.Conn().AddAuth("digest", []byte("locker:secret")))
	lock := reentrant.New(known, dir)
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	names, _, err := known.Conn().Children(dir)
	must(t, err)
	err = c.Delete(dir+"/"+names[0], -1)
	chapter.SaysIn(t, operations, "with it: the lock; and a stranger who deletes the holder's znode: %v", err)
	if !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("want ErrNoAuth")
	}
	must(t, lock.Unlock(held))
}

// A container goes when it is empty, a directory by hand: a lock makes it anew.
func TestALockOutlivesItsDirectory(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := z.Root + "/orders"
	_, err := z.Observer().CreateContainer(dir, nil, zk.FlagContainer, anyone)
	must(t, err)
	s, _ := session(z, "the client", zktest.SessionTimeout)
	lock := reentrant.New(s, dir)
	turn := func() (number int, token int64) {
		held, err := lock.Lock(z.Ctx)
		must(t, err)
		number = suffix(z.Names(dir)[0])
		token, _ = reentrant.Token(held)
		must(t, lock.Unlock(held))
		return number, token
	}
	_, _ = turn()
	number, token := turn()
	must(t, z.Observer().Delete(dir, -1)) // the server itself does so only once a minute
	numberAfter, tokenAfter := turn()
	grown := map[bool]string{true: "greater", false: "not greater"}[tokenAfter > token]
	chapter.SaysIn(t, operations, "the directory is deleted between two turns: number %d, then %d; the second token is %s", number, numberAfter, grown)
	if number != 1 || numberAfter != 0 || tokenAfter <= token {
		t.Errorf("number %d then %d, token %d then %d", number, numberAfter, token, tokenAfter)
	}
}

// The Go client knows no chroot: it takes the path for a part of the address.
func TestNoChroot(t *testing.T) {
	t.Parallel()
	dialled := make(chan string, 1)
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181/app"}, time.Second, zk.WithLogger(quiet{}),
		zk.WithDialer(func(_, address string, _ time.Duration) (net.Conn, error) {
			select {
			case dialled <- address:
			default:
			}
			return nil, errors.New("not today")
		}))
	must(t, err)
	defer conn.Close()
	chapter.SaysIn(t, operations, "given 127.0.0.1:2181/app, the client dials %s", <-dialled)
}

func overTLS(config *tls.Config) reentrant.Option {
	return reentrant.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	})
}

// A listener that speaks TLS stands in front of the server, and the lock goes
// through it.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	front, roots := tlsFront(t, z.Addr)

	s, err := reentrant.Open([]string{front}, zktest.SessionTimeout, overTLS(&tls.Config{RootCAs: roots}))
	must(t, err)
	defer s.Close()
	lock := reentrant.New(s, z.Root+"/lock")
	held, err := lock.Lock(context.Background())
	must(t, err)
	names := z.Names(z.Root + "/lock")
	must(t, lock.Unlock(held))
	if len(names) != 1 {
		t.Errorf("the queue while the lock was held: %v", names)
	}
}

// tlsFront listens on a free port, takes TLS off, and passes on to the server.
func tlsFront(t *testing.T, server string) (address string, roots *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(certificate)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	must(t, err)
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { listener.Close() })
	work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				work.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					near.Close()
					far.Close()
				})
			}
		}
	})
	return listener.Addr().String(), roots
}
