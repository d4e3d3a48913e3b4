package doccheck

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
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
	c = z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		if s, err = reentrant.Open(z.Servers(), timeout, reentrant.WithDialer(dial)); err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

var mntrKey = regexp.MustCompile("`(zk_[a-z0-9_]+)`")

// namedKey is a key of mntr that a page names.
type namedKey struct {
	name, at string
	alone    bool // the page does not say that only a server in an ensemble has it
}

func namedKeys(t *testing.T) (keys []namedKey) {
	for _, p := range repo(t).pages {
		for _, l := range p.prose {
			for _, m := range mntrKey.FindAllStringSubmatch(l.text, -1) {
				at := fmt.Sprintf("%s:%d", p.path, l.number)
				keys = append(keys, namedKey{m[1], at, !strings.Contains(l.text, "in an ensemble")})
			}
		}
	}
	return keys
}

func (k namedKey) in(mntr string) bool { return strings.Contains("\n"+mntr, "\n"+k.name+"\t") }

// A server on its own has the keys of mntr that the pages name, but for those of
// an ensemble. TestEnsemble looks for them all.
func TestTheServerHasTheseKeys(t *testing.T) {
	t.Parallel()
	mntr, err := zktest.New(t).Word("mntr")
	must(t, err)
	for _, k := range namedKeys(t) {
		if k.alone && !k.in(mntr) {
			t.Errorf("%s: mntr has no %s, and the line does not say: in an ensemble", k.at, k.name)
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
	var gaps []time.Duration
	z.Await("eight pings", func() bool {
		gaps = nil
		var last time.Time
		for _, f := range c.Tap.Since(mark) {
			if f.Kind == wiretap.Request && f.Op == wiretap.Ping {
				gaps, last = append(gaps, f.At.Sub(last)), f.At
			}
		}
		return len(gaps) == 8
	})
	gaps = gaps[1:]
	slices.Sort(gaps)
	chapter.SaysIn(t, operations, "an idle client sends a ping every %v of its time-out", chapter.About(gaps[3].Seconds()/zktest.MortalTimeout.Seconds(), 1.6))
}

// A container goes when it is empty, a directory by hand: a lock makes it again.
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
