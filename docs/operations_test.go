package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
	"zklock/internal/upkeep/doccheck"
	reentrant "zklock/step05_reentrant"
)

const members = zk.PermRead | zk.PermCreate | zk.PermDelete

// hasTheKeys tests that the server's mntr has the keys that the pages name: one on
// its own, but for those of which the line says that they are in an ensemble.
func hasTheKeys(t *testing.T, server *zkserver.Server, inEnsemble bool) {
	t.Helper()
	mntr, err := server.Word("mntr")
	require.NoError(t, err)
	pages, err := doccheck.Files(root, ".md")
	require.NoError(t, err)
	for file, text := range pages {
		for line := range strings.SplitSeq(text, "\n") {
			if !inEnsemble && (strings.Contains(line, "in an ensemble") || strings.Contains(line, "在集群里")) {
				continue
			}
			for _, m := range regexp.MustCompile("`(zk_[a-z0-9_]+)`").FindAllStringSubmatch(line, -1) {
				there := strings.Contains("\n"+mntr, "\n"+m[1]+"\t")
				assert.True(t, there, "mntr has no %s; %s has:\n%s", m[1], file, line)
			}
		}
	}
}

func TestTheServerHasTheseKeys(t *testing.T) {
	t.Parallel()
	hasTheKeys(t, zktest.New(t).Server, false)
}

// Each znode right below the root has metrics of its own, for ever.
func TestEachTopLevelZnodeAddsMetrics(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	mntr, err := z.Word("mntr")
	require.NoError(t, err)
	n := strings.Count(mntr, "_"+strings.TrimPrefix(z.Root, "/")+"_write_per_namespace\t")
	chapter.SaysIn(t, "operations.md", "one znode below the root, one write: %d new lines in mntr", n)
}

// What an operator can read of a queue: each of the znodes tells who came, and when.
func TestTheQueueTellsWhoWaits(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	clock := func() int64 { // the server's
		_, stat, err := z.Observer().Get(create(t, z.Observer(), z.Root+"/now-", zk.FlagSequence))
		require.NoError(t, err)
		return stat.Ctime
	}
	var line []*zktest.Turn
	times := []int64{clock()}
	for i, who := range []string{"the holder", "the first waiter", "the second waiter"} {
		turn := step5.Join(z, who).Start()
		if i == 0 {
			turn.Acquired()
		} else {
			turn.MustWait("the holder has the lock")
		}
		line, times = append(line, turn), append(times, clock())
	}
	holder, first := line[0], line[1]
	names := holder.Queue()
	slices.SortFunc(names, func(a, b string) int { return suffix(t, a) - suffix(t, b) })
	sessions, err := z.Sessions()
	require.NoError(t, err)
	cons, err := z.Word("cons")
	require.NoError(t, err)
	var ls, stats, dump, connected, waits int
	count := func(n *int, so bool) {
		if so {
			*n++
		}
	}
	for i, turn := range line {
		znode, session := turn.Znode(), turn.SessionID()
		_, stat, err := z.Observer().Get(znode)
		require.NoError(t, err)
		count(&ls, path.Base(znode) == names[i])
		count(&stats, times[i] <= stat.Ctime && stat.Ctime <= times[i+1] && stat.EphemeralOwner == session)
		count(&dump, slices.Equal(sessions[session], []string{znode}))
		count(
			&connected,
			regexp.MustCompile(fmt.Sprintf(`(?m)^ */[0-9.:a-f]+\[.*sid=0x%x,`, session)).MatchString(cons),
		)
		if i > 0 {
			count(&waits, slices.Equal(watching(t, z, line[i-1].Znode()), []int64{session}))
		}
	}
	chapter.SaysIn(
		t,
		"operations.md",
		"ls: %d names; by their numbers, first the holder, then the waiters as they came: %d of 3",
		len(names),
		ls,
	)
	chapter.SaysIn(
		t,
		"operations.md",
		"stat: ctime is the server's time at the create, ephemeralOwner the client's session: %d of 3",
		stats,
	)
	chapter.SaysIn(t, "operations.md", "dump: below the session, its znode: %d of 3", dump)
	chapter.SaysIn(
		t,
		"operations.md",
		"cons: a line with the session, and the address that it comes from: %d of 3",
		connected,
	)
	chapter.SaysIn(
		t,
		"operations.md",
		"wchp: below the holder's znode the first waiter's session, below the first waiter's the second's: %d of 2",
		waits,
	)
	_, before, err := z.Observer().Get(first.Znode())
	require.NoError(t, err)
	holder.Release()
	first.Acquired()
	_, after, err := z.Observer().Get(first.Znode())
	require.NoError(t, err)
	chapter.SaysIn(
		t,
		"operations.md",
		"the holder releases: %d names; the first waiter's znode is %s",
		len(first.Queue()),
		map[bool]string{true: "as old as before"}[after.Ctime == before.Ctime && after.Mzxid == before.Mzxid],
	)
}

// The counter that says how many sessions died without a goodbye.
func TestExpiriesAreCounted(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	crashed := z.Mortal("one that says no goodbye")
	before, err := z.Mntr()
	require.NoError(t, err)
	crashed.Crash()
	z.AwaitExpiry(crashed)
	after, err := z.Mntr()
	require.NoError(t, err)
	const expired = "zk_stale_sessions_expired"
	assert.Greater(t, after[expired], before[expired], "an expiry is counted") // others may expire meanwhile
}

// An idle client's pings are what keeps its session, and its lease.
func TestPings(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Mortal("the client")
	var gaps []time.Duration
	z.Await("eight pings", func() bool {
		gaps = nil
		var last time.Time
		for _, f := range c.Tap.Frames() {
			if f.Kind == wiretap.Request && f.Op == wiretap.Ping {
				gaps, last = append(gaps, f.At.Sub(last)), f.At
			}
		}
		return len(gaps) == 8
	})
	gaps = gaps[1:]
	slices.Sort(gaps)
	chapter.SaysIn(
		t,
		"operations.md",
		"an idle client sends a ping every %v of its time-out",
		chapter.About(gaps[3].Seconds()/zktest.MortalTimeout.Seconds(), 1.6),
	)
}

// greater says in words how the token of a turn is to that of an earlier one.
func greater(later, earlier *zktest.Turn) string {
	after, _ := later.Token(later.Held())
	before, _ := earlier.Token(earlier.Held())
	return map[bool]string{true: "greater", false: "not greater"}[after > before]
}

// A container goes when it is empty, a directory by hand: a lock makes it again.
func TestALockOutlivesItsDirectory(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	dir := z.Root + "/orders"
	_, err := z.Observer().CreateContainer(dir, nil, zk.FlagContainer, anyone)
	require.NoError(t, err)
	m := step5.JoinAs(z, "the client", lockcheck.Seat{Path: dir})
	takes := func() (turn *zktest.Turn, number int) {
		turn = m.Acquire()
		turn.Release()
		return turn, suffix(t, turn.Znode())
	}
	takes()
	before, number := takes()
	require.NoError(t, z.Observer().Delete(dir, -1)) // the server itself does so only once a minute
	after, numberAfter := takes()
	chapter.SaysIn(
		t,
		"operations.md",
		"the directory is deleted between two turns: number %d, then %d; the second token is %s",
		number,
		numberAfter,
		greater(after, before),
	)
}

// The Go client knows no chroot: it takes the path for a part of the address.
func TestNoChroot(t *testing.T) {
	t.Parallel()
	dialled := make(chan string, 100)
	conn, err := zktest.Dial(
		[]string{"127.0.0.1:2181/app"},
		time.Second,
		func(_, address string, _ time.Duration) (net.Conn, error) {
			dialled <- address
			return nil, errors.New("not today")
		},
	)
	require.NoError(t, err)
	defer conn.Close()
	chapter.SaysIn(t, "operations.md", "given 127.0.0.1:2181/app, the client dials %s", <-dialled)
}

// A directory is one lock's: admin makes it, and decides who may use it.
type directory struct {
	*testing.T
	*zktest.Zoo
	admin *zktest.Client
	path  string
}

func newDirectory(t *testing.T) *directory {
	t.Parallel()
	z := zktest.New(t)
	d := &directory{t, z, z.Client("who sets it up"), z.Root + "/orders"}
	require.NoError(t, d.admin.AddAuth("digest", []byte("admin:sesame")))
	t.Cleanup(func() { _ = d.admin.Delete(d.path, -1) }) // the observer may not
	return d
}

// give makes the directory for admin, and for others with some permissions.
func (d *directory) give(perms int32, others ...string) {
	acl := zk.DigestACL(zk.PermAll, "admin", "sesame")
	for _, other := range others {
		user, password, _ := strings.Cut(other, ":")
		acl = append(acl, zk.DigestACL(perms, user, password)...)
	}
	_, err := d.admin.Create(d.path, nil, zk.FlagPersistent, acl)
	require.NoError(d, err)
}

// join brings a client to the lock, and member one who knows a password.
func (d *directory) join(name string) *zktest.Member {
	return step5.JoinAs(d.Zoo, name, lockcheck.Seat{Path: d.path})
}

func (d *directory) member(password string) *zktest.Member {
	m := d.join(password)
	require.NoError(d, m.AddAuth("digest", []byte(password)))
	return m
}

// queue lists the names in the directory: the observer may not.
func (d *directory) queue() []string {
	names, _, err := d.admin.Children(d.path)
	require.NoError(d, err)
	return names
}

// acl is the directory's ACL, written as zkCli.sh does.
func (d *directory) acl(c *zktest.Client) string {
	acl, _, err := c.GetACL(d.path)
	require.NoError(d, err)
	letters := map[int32]string{zk.PermAll: "cdrwa", members: "cdr"}
	var all []string
	for _, a := range acl {
		all = append(all, fmt.Sprintf("%s:%s:%s", a.Scheme, a.ID, letters[a.Perms]))
	}
	return strings.Join(all, ",")
}

// The directory's ACL decides who may queue, and who may take others out.
func TestTheDirectorysACL(t *testing.T) {
	d := newDirectory(t)
	admin, dir := d.admin, d.path
	acl := append(zk.DigestACL(zk.PermAll, "admin", "sesame"),
		zk.DigestACL(zk.PermRead|zk.PermCreate|zk.PermDelete, "orders", "secret")...)
	_, err := admin.Create(dir, nil, zk.FlagPersistent, acl)
	require.NoError(t, err)
	chapter.SaysIn(t, "operations.md", `create /locks/orders "" %s`, d.acl(admin))

	stranger := d.join("the stranger")
	_, err = stranger.Lock(d.Ctx)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	chapter.SaysIn(t, "operations.md", "without the password: %s", func(text string) string {
		return strings.ReplaceAll(text, d.Root, "/locks")
	}(err.Error()))
	m := d.member("orders:secret")
	turn := m.Acquire()
	require.Len(t, d.queue(), 1)
	chapter.SaysIn(
		t,
		"operations.md",
		"with it: the lock; and a stranger who deletes the holder's znode: %v",
		deletes(stranger.Client, turn.Znode()),
	)
	chapter.SaysIn(
		t,
		"operations.md",
		"a stranger who puts a znode in front: %v",
		makes(stranger.Client, dir+"/lock--000000001"),
	)
	turn.Release()

	require.NoError(t, deletes(stranger.Client, dir)) // the znode above is open to the world
	m.Acquire().Release()
	chapter.SaysIn(
		t,
		"operations.md",
		"a stranger deletes the empty directory, and the next lock makes it again: %s",
		d.acl(stranger.Client),
	)
}

// A password each does not protect members of a queue from one another.
func TestAMemberCanTakeAnotherOut(t *testing.T) {
	d := newDirectory(t)
	d.give(members, "till:one", "web:two")
	first, web := d.member("till:one").Acquire(), d.member("web:two")
	require.NoError(t, deletes(web.Client, first.Znode()))
	chapter.SaysIn(
		t,
		"operations.md",
		"one member deletes the other's znode, and has the lock, with a token that is %s",
		greater(web.Acquire(), first),
	)
	require.NoError(t, first.Held().Err(), "the holder learns of it only when it calls Unlock")
	require.ErrorIs(t, first.Unlock(first.Held()), reentrant.ErrLost)
	chapter.SaysIn(t, "operations.md", "the first holder's Unlock: %v", reentrant.ErrLost)
}

// Where nobody may delete, a session's end is the way out.
func TestADirectoryWithoutDelete(t *testing.T) {
	d := newDirectory(t)
	d.give(zk.PermRead|zk.PermCreate, "till:one", "web:two")
	first, web := d.member("till:one").Acquire(), d.member("web:two")
	theirs := deletes(web.Client, first.Znode())
	require.ErrorIs(t, first.Unlock(first.Held()), zk.ErrNoAuth)
	require.Equal(t, []string{path.Base(first.Znode())}, d.queue(), "the queue after Unlock")
	chapter.SaysIn(
		t,
		"operations.md",
		"without delete: the other's znode: %v; one's own, at Unlock: %v",
		theirs,
		zk.ErrNoAuth,
	)
	first.Session.Close()
	_, err := web.TryLock(d.Ctx, 0)
	require.NoError(t, err)
	chapter.SaysIn(t, "operations.md", "the holder's session is closed: the other has the lock")

	_, err = d.member("till:one").TryLock(d.Ctx, 0)
	require.ErrorIs(t, err, reentrant.ErrLocked)
	chapter.SaysIn(
		t,
		"operations.md",
		"a waiter gives up, and its session lives on: %d znodes in the queue",
		len(d.queue()),
	)
}

// The queue's znodes are open to the world: who knows the name of one can close
// it to those who would watch it, and to those who watch it already.
func TestAShutZnodeTurnsWaitersAway(t *testing.T) {
	d := newDirectory(t)
	d.give(members, "orders:secret")
	a, b, stranger := d.member("orders:secret"), d.member("orders:secret"), d.Client("the stranger")
	shut := func(znode string) {
		_, err := stranger.SetACL(znode, zk.DigestACL(zk.PermAll, "stranger", "pw"), -1)
		require.NoError(t, err)
	}
	held := a.Acquire()
	shut(held.Znode())
	_, err := b.Lock(d.Ctx)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	chapter.SaysIn(
		t,
		"operations.md",
		"a stranger gives the holder's znode an ACL of its own; the next client, with the password: %v",
		zk.ErrNoAuth,
	)
	held.Release()

	held = a.Acquire()
	ctx, giveUp := context.WithCancel(d.Ctx)
	waiting := b.StartIn(ctx)
	waiting.MustWait("A holds the lock")
	shut(held.Znode())
	mark := b.Tap.Mark()
	held.Release()
	d.Barrier(b.Client) // a notification would come before the answer to this
	notified := wiretap.Count(b.Tap.Since(mark)).Notifications
	require.False(t, waiting.Returned(), "B's Lock, when it was not notified")
	giveUp()
	require.ErrorIs(t, waiting.Err(), context.Canceled)
	b.Acquire().Release()
	chapter.SaysIn(
		t,
		"operations.md",
		"one that waited already: the holder releases, notifications: %d; it gives up, and locks again: it has the lock",
		notified,
	)
}
