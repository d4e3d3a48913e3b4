package doccheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	pathpkg "path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// What the pages say of an ensemble, seen on three real servers. The parts are
// told one after the other; each begins and ends with three servers that serve.
// Tests that measure time are to run without them, so this one runs alone.
func TestEnsemble(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ensemble, err := zkserver.StartEnsemble(ctx, "initLimit=300", "syncLimit=300") // so that no server gives up a silent one
	must(t, err)
	t.Cleanup(func() { must(t, ensemble.Stop()) })
	for _, part := range []struct {
		name string
		tell func(*testing.T, *trio)
	}{
		{"the leader's keys", leadersKeys},
		{"a follower lags", followerLags},
		{"the leader falls", leaderFalls},
		{"no majority", noMajority},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			leader, followers, err := ensemble.Roles(ctx)
			must(t, err)
			part.tell(t, &trio{ensemble, leader, followers})
			must(t, ensemble.Serving(ctx))
		}) {
			return
		}
	}
}

// trio is the ensemble as a part finds it.
type trio struct {
	*zkserver.Ensemble
	leader    *zkserver.Peer
	followers []*zkserver.Peer
}

// hold stops what one server sends to another, until release.
func (three *trio) hold(t *testing.T, from, to *zkserver.Peer) (release func()) {
	t.Helper()
	release = three.Hold(from, to)
	t.Cleanup(release)
	return release
}

// The leader has every key of mntr that a page names.
func leadersKeys(t *testing.T, three *trio) {
	mntr, err := three.leader.Word("mntr")
	must(t, err)
	for _, k := range namedKeys(t) {
		if !k.in(mntr) {
			t.Errorf("%s: the leader's mntr has no %s", k.at, k.name)
		}
	}
}

func get(t *testing.T, c *zktest.Client, path string) string {
	t.Helper()
	data, _, err := c.Get(path)
	must(t, err)
	return string(data)
}

// The leader's word to one follower is held up, and meanwhile a write is
// decided by the others.
func followerLags(t *testing.T, three *trio) {
	late := three.followers[0]
	atLeader, atLate := zktest.NewOn(t, three.leader.Server), zktest.NewOn(t, late.Server)
	near, far, another := atLeader.Client("a client of the leader"), atLate.Client("a client of the follower"), atLate.Observer()
	path := create(t, near, atLeader.Root+"/a", 0)
	set := func(data string) {
		t.Helper()
		_, err := near.Set(path, []byte(data), -1)
		must(t, err)
	}
	set("old")
	_, err := far.Sync(path)
	must(t, err)

	tell := three.hold(t, three.leader, late)
	set("new")
	n, f := get(t, near, path), get(t, far, path)
	chapter.SaysIn(t, "../../docs/zookeeper.md", "a znode is set, and one follower has not heard of it: read at the leader %q, at that follower %q", n, f)
	if n != "new" || f != "old" {
		t.Error("want the new state at the leader and the old one at the follower")
	}

	mark := far.Tap.Mark()
	synced := make(chan string, 1)
	go func() {
		_, err1 := far.Sync(path)
		data, _, err2 := far.Get(path)
		if err := errors.Join(err1, err2); err != nil {
			data = []byte(err.Error())
		}
		synced <- string(data)
	}()
	atLate.Await("a sync to be under way", func() bool { return wiretap.Count(far.Tap.Since(mark)).Requests[wiretap.Sync] == 1 })
	f = get(t, another, path)
	chapter.SaysIn(t, "../../docs/zookeeper.md", "a sync there waits: %d answers; another client, without a sync, reads %q", replies(far, mark, wiretap.Sync), f)
	if f != "old" {
		t.Error("want the old state, without a sync")
	}
	tell()
	f = zktest.AwaitChan(atLate, "the read behind the sync", synced)
	chapter.SaysIn(t, "../../docs/zookeeper.md", "the follower hears of it: %d answer to the sync, and the read behind it finds %q", replies(far, mark, wiretap.Sync), f)
	if f != "new" {
		t.Error("want the new state behind the sync")
	}

	// near has seen the newest state, and goes to the follower that has not.
	var server atomic.Pointer[zkserver.Peer]
	server.Store(three.leader)
	near = atLeader.ConnectWith("a client that goes from one to the other", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, _, err := zk.Connect(three.Servers(), zktest.SessionTimeout, zk.WithLogger(quiet{}),
			zk.WithDialer(func(network, _ string, limit time.Duration) (net.Conn, error) {
				return dial(network, server.Load().Addr, limit)
			}))
		return conn, conn.Close, err
	})
	_, err = far.Sync(path) // the follower knows the new session, too
	must(t, err)
	tell = three.hold(t, three.leader, late)
	set("newer")
	asked := counter(t, three.leader, "zk_revalidate_count")
	server.Store(late)
	near.Tap.Cut()
	mark = near.Tap.Mark()
	near.Tap.Restore()
	atLate.Await("a second handshake, after the first was refused", func() bool { return requests(near, mark, wiretap.Connect) >= 2 })
	chapter.SaysIn(t, "../../docs/zookeeper.md", "a client that has seen a newer state comes to that follower: %d answers to its handshakes", replies(near, mark, wiretap.Connect))
	if replies(near, mark, wiretap.Connect) != 0 || counter(t, three.leader, "zk_revalidate_count") != asked {
		t.Error("the follower took the client, or asked the leader whether it may")
	}
	tell()
	atLate.Await("the client to be taken", func() bool { return near.State() == zk.StateHasSession })
	f = get(t, near, path)
	chapter.SaysIn(t, "../../docs/zookeeper.md", "the follower hears of that: the client is taken, with %s, and reads %q", sameSession(near), f)
	if f != "newer" || near.SessionID() != near.ID {
		t.Error("want the same session, and what the client had seen")
	}
}

func counter(t *testing.T, server *zkserver.Peer, key string) int64 {
	t.Helper()
	counters, err := server.Mntr()
	must(t, err)
	return counters[key]
}

func sameSession(c *zktest.Client) string {
	if c.SessionID() == c.ID {
		return "the same session"
	}
	return "another session"
}

func requests(c *zktest.Client, mark int, op wiretap.Op) int {
	return frames(c, mark, wiretap.Request, op)
}

func replies(c *zktest.Client, mark int, op wiretap.Op) int {
	return frames(c, mark, wiretap.Reply, op)
}

func frames(c *zktest.Client, mark int, kind wiretap.Kind, op wiretap.Op) (n int) {
	for _, f := range c.Tap.Since(mark) {
		if f.Kind == kind && f.Op == op {
			n++
		}
	}
	return n
}

// A lock is one of the six as one client has it.
type lock interface {
	Lock(context.Context) error
	Unlock() error
}

// kept is a lock of step 5 or 6 that keeps the hold for its client.
type kept struct {
	lock lockcheck.Holder
	held context.Context
}

func (k *kept) Lock(ctx context.Context) (err error) {
	k.held, err = k.lock.Lock(ctx)
	return err
}

func (k *kept) Unlock() error { return k.lock.Unlock(k.held) }

type opener func(servers []string, timeout time.Duration, dial zk.Dialer, path string) (*zk.Conn, func(), lock, error)

func overConn[L lock](newLock func(*zk.Conn, string) L) opener {
	return func(servers []string, timeout time.Duration, dial zk.Dialer, path string) (*zk.Conn, func(), lock, error) {
		conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(quiet{}))
		return conn, conn.Close, newLock(conn, path), err
	}
}

func overSession[S lockcheck.Session, L lockcheck.Holder](open func([]string, time.Duration, zk.Dialer) (S, error), newLock func(S, string) L) opener {
	return func(servers []string, timeout time.Duration, dial zk.Dialer, path string) (*zk.Conn, func(), lock, error) {
		s, err := open(servers, timeout, dial)
		if err != nil {
			return nil, nil, nil, err
		}
		return s.Conn(), s.Close, &kept{lock: newLock(s, path)}, nil
	}
}

// open opens the lock of a step.
var open = map[int]opener{
	1: overConn(plainnode.New),
	2: overConn(sequentialspin.New),
	3: overConn(childrenwatch.New),
	4: overConn(predecessorwatch.New),
	5: overSession(func(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
		return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
	}, reentrant.New),
	6: overSession(func(servers []string, timeout time.Duration, dial zk.Dialer) (*sharedlock.Session, error) {
		return sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
	}, sharedlock.New),
}

// A user is a client of one step's lock.
type user struct {
	*zktest.Client
	lock
	step int
	z    *zktest.Zoo
	call *zktest.Attempt
}

// join brings a user of a step's lock whose first connection is to the given
// server.
func join(z *zktest.Zoo, step int, who string, timeout time.Duration, first *zkserver.Peer) *user {
	u := &user{step: step, z: z}
	u.Client = z.ConnectWith(fmt.Sprintf("%s of step %d", who, step), func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, end, lock, err := open[step](z.Servers(), timeout, func(network, address string, limit time.Duration) (net.Conn, error) {
			if first != nil {
				address, first = first.Addr, nil
			}
			return dial(network, address, limit)
		}, fmt.Sprintf("%s/lock%d", z.Root, step))
		u.lock = lock
		return conn, end, err
	})
	return u
}

// asks calls Lock.
func (u *user) asks() { u.call = u.z.Go(u.Client, u.Lock) }

// made is the last znode that the server has made for the user.
func (u *user) made() (path string) {
	for _, f := range u.Tap.Frames() {
		if f.Kind == wiretap.Reply && f.Op == wiretap.Create && f.Err == wiretap.OK {
			path = f.Path
		}
	}
	return path
}

// sleeps calls Lock, and returns when the user waits silently.
func (u *user) sleeps(t *testing.T) {
	t.Helper()
	u.asks()
	if how := u.call.Waits(); how != zktest.Silently {
		t.Fatalf("%s %v", u.Name, how)
	}
}

// unlock releases the lock, with a deadline.
func (u *user) unlock(t *testing.T) {
	t.Helper()
	if err := u.z.Go(u.Client, func(context.Context) error { return u.Unlock() }).Err(); err != nil {
		t.Errorf("%s: Unlock: %v", u.Name, err)
	}
}

// steps lists the steps of those users for whom something is so.
func steps(users []*user, so func(*user) bool) string {
	var list []string
	for _, u := range users {
		if so(u) {
			list = append(list, fmt.Sprint(u.step))
		}
	}
	return "steps " + strings.Join(list, ", ")
}

// In each step one holds the lock, one sleeps if the step lets it, and one has
// just asked the leader something when that is killed. The election is held up
// until the clients have tried all servers in vain.
func leaderFalls(t *testing.T, three *trio) {
	z := zktest.NewOn(t, three.Server)
	var holders, sleepers, askers []*user
	var answers []*wiretap.Trap
	for step := 1; step <= 6; step++ {
		holder := join(z, step, "the holder", zktest.SessionTimeout, three.leader)
		must(t, holder.Lock(z.Ctx))
		holders = append(holders, holder)
		if step >= 3 {
			sleeper := join(z, step, "the sleeper", zktest.SessionTimeout, three.followers[0])
			sleeper.sleeps(t)
			sleepers = append(sleepers, sleeper)
		}
		asker := join(z, step, "the asker", zktest.SessionTimeout, three.leader)
		answer := asker.Tap.HoldReply(wiretap.Create, 1)
		asker.asks()
		zktest.AwaitChan(z, asker.Name+"'s create to be answered", answer.Sprung())
		askers, answers = append(askers, asker), append(answers, answer)
	}
	must(t, three.leader.Pause())
	for i, u := range askers {
		mark := u.Tap.Mark()
		answers[i].Let()
		z.Await(u.Name+" to ask the leader, which is paused", func() bool { return wiretap.Count(u.Tap.Since(mark)).All() > 0 })
	}
	all := slices.Concat(holders, sleepers, askers)
	marks := map[*user]int{}
	for _, u := range all {
		marks[u] = u.Tap.Mark()
	}
	elect := three.hold(t, three.followers[0], three.followers[1])
	must(t, three.leader.Kill())
	failed := steps(askers[:4], func(u *user) bool { return errors.Is(u.call.Err(), zk.ErrConnectionClosed) })
	elect()

	same := 0
	for _, u := range all {
		z.Await(u.Name+" to be back", func() bool {
			return u.State() == zk.StateHasSession && replies(u.Client, marks[u], wiretap.Connect) > 0
		})
		if u.SessionID() == u.ID {
			same++
		}
	}
	z.Await("the observer to be back", func() bool { return z.Observer().State() == zk.StateHasSession })
	chapter.SaysIn(t, "../../docs/operations.md", "the leader is killed: %d clients lose their connection; back with the same session: %d", len(all), same)
	hasZnode := func(u *user) bool {
		owner, there := z.Owner(u.made())
		return there && (owner == u.ID || u.step == 1)
	}
	kept, left := steps(holders, hasZnode), steps(askers[1:4], hasZnode)
	slept := steps(sleepers, func(u *user) bool {
		return u.call.StillWaits() == zktest.Silently && requests(u.Client, marks[u], wiretap.SetWatches) > 0
	})
	waited := steps(askers[4:], func(u *user) bool {
		return u.call.StillWaits() == zktest.Silently && requests(u.Client, 0, wiretap.Create) == 1
	})
	for _, u := range holders {
		u.unlock(t)
	}
	for _, u := range slices.Concat(sleepers, askers[4:]) {
		u.call.Acquired()
		u.unlock(t)
	}
	chapter.SaysIn(t, "../../docs/operations.md", "a holder has its znode, and its Unlock works: %s", kept)
	chapter.SaysIn(t, "../../docs/operations.md", "a waiter that slept sends its watch again, sleeps on, and gets the lock in its turn: %s", slept)
	chapter.SaysIn(t, "../../docs/operations.md", "a waiter that had just asked gets the error %q: %s", zk.ErrConnectionClosed, failed)
	chapter.SaysIn(t, "../../docs/operations.md", "and it leaves a znode behind, since its session lives: %s", left)
	chapter.SaysIn(t, "../../docs/operations.md", "a waiter that had just asked goes on with the znode that it had, and gets the lock in its turn: %s", waited)
	must(t, three.leader.Restart(z.Ctx))
}

// Two of three servers are killed.
func noMajority(t *testing.T, three *trio) {
	z := zktest.NewOn(t, three.Server)
	var holders, waiters []*user
	for step := 5; step <= 6; step++ {
		holder := join(z, step, "the holder", 2*time.Second, nil)
		must(t, holder.Lock(z.Ctx))
		waiter := join(z, step, "the waiter", zktest.SessionTimeout, nil)
		waiter.sleeps(t)
		holders, waiters = append(holders, holder), append(waiters, waiter)
	}
	for _, u := range holders {
		must(t, u.lock.(*kept).held.Err())
	}
	killed := []*zkserver.Peer{three.leader, three.followers[0]}
	for _, m := range killed {
		must(t, m.Kill())
	}
	told := steps(holders, func(u *user) bool {
		held := u.lock.(*kept).held
		zktest.AwaitChan(z, u.Name+" to be told", held.Done())
		return errors.Is(context.Cause(held), reentrant.ErrLost) || errors.Is(context.Cause(held), sharedlock.ErrLost)
	})
	chapter.SaysIn(t, "../../docs/operations.md", "no server answers any more: a holder is told ErrLost: %s", told)

	var restarts sync.WaitGroup
	for _, m := range killed {
		restarts.Go(func() {
			if err := m.Restart(z.Ctx); err != nil {
				t.Error(err)
			}
		})
	}
	restarts.Wait()
	served := steps(waiters, func(u *user) bool {
		holder := holders[slices.Index(waiters, u)]
		z.Await(holder.Name+" to be back", func() bool { return holder.State() == zk.StateHasSession })
		if how := u.call.StillWaits(); how != zktest.Silently || holder.SessionID() != holder.ID {
			t.Errorf("%s %v, and %s is back with %s", u.Name, how, holder.Name, sameSession(holder.Client))
		}
		if err := holder.Unlock(); !errors.Is(err, reentrant.ErrLost) && !errors.Is(err, sharedlock.ErrLost) {
			t.Errorf("%s was told of the loss, and its Unlock answers %v", holder.Name, err)
		}
		u.call.Acquired()
		queue, _, err := u.Children(pathpkg.Dir(u.made()))
		must(t, err)
		u.unlock(t)
		return len(queue) == 1 && requests(u.Client, 0, wiretap.Create) == 1
	})
	chapter.SaysIn(t, "../../docs/operations.md", "they are back, and the holder has called Unlock: a waiter has the lock with the znode that it had: %s", served)
}
