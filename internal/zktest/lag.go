package zktest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
)

// Roles returns who leads and who follows of three servers, when two follow. A leader that
// was deposed needs a moment until it follows.
func Roles(t T, ensemble *zkserver.Ensemble) (leader *zkserver.Peer, followers []*zkserver.Peer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for len(followers) < 2 {
		var err error
		leader, followers, err = ensemble.Roles(ctx)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			t.Fatalf("three servers, of which two follow: %d do; %v", len(followers), err)
		}
	}
	return leader, followers
}

// threeServers are started by the first call to ThreeServers.
var threeServers = sync.OnceValues(func() (*zkserver.Ensemble, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*Patience)
	defer cancel()
	e, err := zkserver.StartEnsemble(ctx, 3, "tickTime=300", "syncLimit=300")
	if err == nil {
		started(e.Server)
	}
	return e, err
})

// ofOneTest is locked while a test has the three servers.
var ofOneTest sync.Mutex

// ThreeServers returns three servers of this process, for to start three takes six
// seconds of a core. One test has them at a time, until it ends, and leaves them as they
// were: it may kill them and start them again. Their tick is 300 ms. A server that is
// silent is not given up as long as a test takes.
func ThreeServers(t T) (ensemble *zkserver.Ensemble, leader *zkserver.Peer, followers []*zkserver.Peer) {
	t.Helper()
	ofOneTest.Lock()
	t.Cleanup(ofOneTest.Unlock)
	ensemble, err := threeServers()
	if err != nil {
		t.Fatalf("%v", err)
	}
	leader, followers = Roles(t, ensemble)
	return ensemble, leader, followers
}

// Lag is an ensemble with a follower that learns of a create late. Its
// observer looks at that follower, so Names are the ones that are known there.
type Lag struct {
	*Zoo
	ensemble     *zkserver.Ensemble
	leader, late *zkserver.Peer
	paused       *zkserver.Peer                // the third server: without it the late one must agree
	server       atomic.Pointer[zkserver.Peer] // that Through leads to
}

// NewLag gives a test such an ensemble, in which all is well as yet.
func NewLag(t T) *Lag {
	t.Helper()
	ensemble, leader, followers := ThreeServers(t)
	l := &Lag{
		Zoo:      NewOn(t, followers[0].Server),
		ensemble: ensemble,
		leader:   leader,
		late:     followers[0],
		paused:   followers[1],
	}
	l.server.Store(leader)
	return l
}

// Through connects a client to the leader, and once LoseCreate was called to
// the follower that lags.
func (l *Lag) Through(dial zk.Dialer) zk.Dialer {
	return func(network, _ string, limit time.Duration) (net.Conn, error) {
		return dial(network, l.server.Load().Addr, limit)
	}
}

// LoseCreate cuts c's line while the create that begin sends is being decided:
// the leader has proposed it, and nobody has agreed. It returns when c is back,
// at the follower that does not know of the create, and has asked for something
// that must wait for the leader: a sync, or a write. catchUp lets the
// follower agree to the create, and so learn of it.
func (l *Lag) LoseCreate(c *Client, begin func()) (catchUp func()) {
	l.t.Helper()
	if _, err := l.Observer().Sync(l.Root); err != nil { // it lags from here on, not before
		l.t.Fatalf("sync: %v", err)
	}
	if err := l.paused.Pause(); err != nil {
		l.t.Fatalf("%v", err)
	}
	l.t.Cleanup(func() {
		if err := l.paused.Resume(); err != nil {
			l.t.Errorf("%v", err)
		}
	})
	toLate := l.hold(l.leader, l.late)
	proposals := l.leaderCounts("zk_proposal_count")
	begin()
	l.Await("the leader to propose the create", func() bool { return l.leaderCounts("zk_proposal_count") > proposals })

	asked := l.leaderCounts("zk_revalidate_count")
	l.server.Store(l.late)
	c.Tap.Cut()
	back := c.Tap.Mark()
	c.Tap.Restore()
	l.Await(
		"the follower to ask the leader for the session",
		func() bool { return l.leaderCounts("zk_revalidate_count") > asked },
	)
	catchUp = l.hold(l.late, l.leader)
	toLate()
	l.Await(fmt.Sprintf("%v to be back, and to ask what only the leader can answer", c.Name), func() bool {
		asks := wiretap.Count(c.Tap.Since(back)).Requests
		return asks[wiretap.Sync]+asks[wiretap.Create]+asks[wiretap.Delete] > 0
	})
	return catchUp
}

func (l *Lag) hold(from, to *zkserver.Peer) (release func()) {
	release = l.ensemble.Hold(from, to)
	l.t.Cleanup(release)
	return release
}

func (l *Lag) leaderCounts(key string) int64 {
	l.t.Helper()
	counters, err := l.leader.Mntr()
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	return counters[key]
}
