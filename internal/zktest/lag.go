package zktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
)

// Roles returns the leader and the followers of three servers, once two of them follow. A leader
// that was deposed needs a moment until it follows.
func Roles(t T, ensemble *zkserver.Ensemble) (leader *zkserver.Peer, followers []*zkserver.Peer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for len(followers) < 2 {
		var err error
		leader, followers, err = ensemble.Roles(ctx)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			t.Fatalf("want three servers, two of them followers; followers: %d; %v", len(followers), err)
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

// ThreeServers returns three servers that this process starts once, because starting three takes
// six seconds of a core. One test at a time has them, until it ends. It may kill them and start
// them again, but leaves them as they were. Their tick is 300 ms. No server gives up a silent one
// within the time of a test.
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

// Lag is an ensemble with a follower that learns of a create late. Its observer reads from that
// follower, so Names are the names that are known there.
type Lag struct {
	*Zoo
	ensemble     *zkserver.Ensemble
	leader, late *zkserver.Peer
	paused       *zkserver.Peer                // the third server: while it is paused, the late one must agree
	server       atomic.Pointer[zkserver.Peer] // that Through connects to
	isLost       atomic.Bool                   // Through does not connect until the library has tried all addresses
}

// NewLag gives a test such an ensemble. As yet no server lags.
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

// Through connects a client to the leader, and, once
// LoseCreate was called, to the follower that lags.
func (l *Lag) Through(dial zk.Dialer) zk.Dialer {
	const slowly = 100 * time.Millisecond // by then the client's next request waits in the library
	const pause = time.Second / 2         // the library's own, after all addresses, is a second
	var failed time.Time
	return func(network, _ string, limit time.Duration) (net.Conn, error) {
		hasTriedAll := !failed.IsZero() && time.Since(failed) > pause
		if l.isLost.Load() && !hasTriedAll {
			time.Sleep(slowly)
			failed = time.Now()
			return nil, errors.New("no server can be reached")
		}
		l.isLost.Store(false)
		return dial(network, l.server.Load().Addr, limit)
	}
}

// LoseCreate cuts c's connection while the create that begin sends is being decided: the leader has
// proposed it, and no other server has agreed. c then reaches no server at any of its addresses, so the library returns
// an error for c's next request without sending it. LoseCreate returns when c has reconnected, to the follower
// that does not know of the create, and has sent a request that must wait for the leader: a sync or
// a write. catchUp lets the follower agree to the create, and so learn of it.
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
	l.isLost.Store(true)
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
