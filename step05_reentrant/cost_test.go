// How to read these tests: the head of ../step01_plain_node/lock_test.go explains their words.

package reentrant

import (
	"context"
	"fmt"
	"net"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// What a lock and an unlock cost when the directory exists, and what the client's own lock costs.
func TestRequestsForOneHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	clientLocks := property.Over("zk.Lock", property.ClientLock)
	holder := clientLocks.Join(z, "the holder")
	holder.Acquire().Release() // makes the directory

	// asked returns the requests of a client for one hold, alone and behind another client.
	asked := func(m *zktest.Member) (alone, waiting []string) {
		mark := m.Tap.Mark()
		m.Acquire().Release()
		alone = m.Asked(mark)

		first := holder.Acquire()
		mark = m.Tap.Mark()
		turn := m.Start()
		turn.MustWait("the holder")
		first.Release()
		turn.Release()
		return alone, m.Asked(mark)
	}
	alone, waiting := asked(locks.Join(z, "A"))
	theirAlone, theirWaiting := asked(clientLocks.Join(z, "zk.Lock"))
	require.Equal(t, []string{"create", "getChildren", "delete"}, alone)
	require.Equal(t, []string{"create", "getChildren", "getData", "getChildren", "delete"}, waiting)
	require.Len(t, theirAlone, len(alone), "requests of zk.Lock, alone")
	require.Len(t, theirWaiting, len(waiting), "requests of zk.Lock, after a wait")
}

// Stairs 5.1 and 5.2. The server carries out a create, and the connection breaks before the
// reply arrives. In step 4 everybody waited until the session ended.
func TestALostReplyToCreateLeavesOneZnode(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := locks.Join(z, "the unlucky client")
	c.Acquire().Release() // makes the directory

	mark := c.Tap.Mark()
	c.Tap.LoseReply(wiretap.Create, 1)
	turn := c.Acquire()
	queue := c.Queue()
	require.Len(t, queue, 1, "znodes in the queue: a second one would wait for the first")
	creates := c.Requests(mark)[wiretap.Create]
	require.Equal(t, 1, creates, "creates: the znode was found, and not made again")
	chapter.Says(t, "a create, and its reply is lost:\n»   %s\n» the client holds the lock, with %d znode",
		strings.Join(record(z, c, mark), "\n»   "), len(queue))
	turn.Release()
}

// Stair 5.3. The server carries out a delete, and the reply is lost.
func TestALostReplyToDeleteIsNoError(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := locks.Join(z, "the unlucky client")
	turn := c.Acquire()

	mark := c.Tap.Mark()
	c.Tap.LoseReply(wiretap.Delete, 1)
	require.NoError(t, turn.Unlock(), "Unlock, whose first delete had no answer")
	require.Empty(t, c.Queue())
	deletes := c.Requests(mark)[wiretap.Delete]
	require.Equal(t, 2, deletes, "deletes: the second one learned what became of the first")
	chapter.Says(t, "a delete, and its reply is lost:\n»   %s\n» Unlock: no error",
		strings.Join(record(z, c, mark), "\n»   "))
}

// Stair 5.9. The holder locks again, and no server learns of it.
func TestLockingAgainSendsNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "A")
	lock := New(a.Session.(*Session), a.Path)
	hold, err := lock.Lock(z.Ctx)
	require.NoError(t, err)

	mark := a.Tap.Mark()
	again, err := lock.Lock(hold.Context(z.Ctx))
	require.NoError(t, err)
	require.Same(t, hold, again, "Lock by the holder returns the hold")
	require.NoError(t, again.Unlock())
	require.NoError(t, hold.Context(z.Ctx).Err(), "the hold, after the first of two Unlocks")
	requests := len(a.Asked(mark))
	require.Zero(t, requests, "requests of the second Lock and the first Unlock")
	chapter.SaysIn(t, "holder.md", "the holder locks again, and unlocks: %d requests", requests)

	require.NoError(t, hold.Unlock())
	require.Empty(t, a.Queue())
	require.ErrorIs(t, hold.Unlock(), ErrNotHeld, "a third Unlock")
	require.ErrorIs(t, hold.Context(z.Ctx).Err(), context.Canceled)
	_, err = lock.Lock(hold.Context(z.Ctx))
	require.ErrorIs(t, err, ErrNotHeld, "Lock with the context of a hold that was released")
}

// Stair 5.7. The holder is disconnected. It learns of that before the server ends its session, and
// so before the next client gets the lock.
func TestAHolderThatIsCutOffIsToldBeforeTheNextIsLetIn(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.JoinMortal(z, "Ada"), locks.Join(z, "Ben")
	held := a.Acquire().Context()
	next := b.Start()
	next.MustWait("A holds the lock")
	a.Crash() // from now on nothing passes on its connection
	zktest.AwaitChan(z, "A to be notified", held.Done())
	require.ErrorIs(t, context.Cause(held), ErrLost)
	require.False(t, next.Returned(), "B is inside, and A has only just been notified")
	next.Acquired()
	next.Release()
}

// store is what the lock protects: one value, somewhere else. A store that checks tokens
// refuses one that is smaller than the greatest it has seen.
type store struct {
	checks   bool
	greatest int64
	value    string
	writes   []string // in the order in which they arrived
}

func (s *store) write(token int64, value string) {
	if s.checks && token < s.greatest {
		s.writes = append(s.writes, value+" (refused)")
		return
	}
	s.greatest = max(s.greatest, token)
	s.value = value
	s.writes = append(s.writes, value)
}

// pausedHolder is the child process, whose lines are writes to the store. It checks whether it
// still holds the lock, and writes again only when the test lets it continue. The test stops it in
// between, as a garbage collector or a paused virtual machine might.
func pausedHolder(servers, args []string) {
	goOn := zktest.Continued()
	session, err := Open(servers, zktest.MortalTimeout)
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	hold, err := New(session, args[0]).Lock(context.Background())
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	id, work := session.Conn().SessionID(), hold.Context(context.Background())
	if work.Err() == nil {
		zktest.Say("session %d, token %d: first", id, hold.Token())
		<-goOn // here it is stopped
		zktest.Say("session %d, token %d: late", id, hold.Token())
	}
	<-work.Done()
	zktest.Say("%v", context.Cause(work))
}

// Stair 5.8. A holder is paused until its session has ended, and continues. No lock can stop its
// late write. The token can.
func TestOnlyATokenStopsTheLateWriteOfAPausedHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store    store
		accepted string
		says     string
	}{
		{store{checks: false}, "late", "a store that ignores tokens is sent: %s; it keeps %q"},
		{store{checks: true}, "second", "a store that checks tokens is sent: %s; it keeps %q"},
	} {
		t.Run(fmt.Sprintf("checks_%v", c.store.checks), func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			child := z.Process("paused holder", z.Root+"/lock")
			writes := func() (session int64) {
				var token int64
				head, value, _ := strings.Cut(child.Line(), ": ")
				_, err := fmt.Sscanf(head, "session %d, token %d", &session, &token)
				require.NoError(t, err, head)
				c.store.write(token, value)
				return session
			}
			session := writes()
			child.Stop()
			z.AwaitExpiry(&zktest.Client{Name: "the stopped process", ID: session})
			second := locks.Join(z, "the second holder").Acquire()
			c.store.write(second.Held().Token(), "second")
			child.Continue()
			writes()
			require.Equal(t, ErrLost.Error(), child.Line(), "what the first holder learns, too late")
			require.Equal(t, c.accepted, c.store.value, "what the store keeps")
			chapter.SaysIn(t, "holder.md", c.says, strings.Join(c.store.writes, ", "), c.store.value)
			second.Release()
		})
	}
}

// Znode is the path of the holder's own znode, for the multi of holder.md.
func (h *Hold) Znode() string {
	return h.mine.node
}

// writeWhileQueued writes to a znode if another one, the holder's own, still exists. ZooKeeper does
// both in one step, or neither.
func writeWhileQueued(conn *zk.Conn, own, path, value string) error {
	_, err := conn.Multi(
		&zk.CheckVersionRequest{Path: own, Version: -1}, // of any version: the znode exists
		&zk.SetDataRequest{Path: path, Data: []byte(value), Version: -1},
	)
	return err
}

// The order is a znode, and the lock protects it. A is silent until its session has ended, B takes the
// lock and writes, and then A writes: the client library has begun a new session by itself.
func TestACheckOfTheHoldersZnodeStopsTheLateWrite(t *testing.T) {
	t.Parallel()
	alone := func(conn *zk.Conn, _, path, value string) error {
		_, err := conn.Set(path, []byte(value), -1)
		return err
	}
	for _, c := range []struct {
		name  string
		write func(conn *zk.Conn, own, path, value string) error
		late  error
		keeps string
	}{
		{"the write alone", alone, nil, "shipped"},
		{"the write with a check", writeWhileQueued, zk.ErrNoNode, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, b := locks.JoinMortal(z, "A"), locks.Join(z, "B")
			order, err := z.Observer().Create(z.Root+"/order-17", nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			first := a.Acquire()
			held, own := first.Context(), first.Held().(*Hold).Znode()
			require.NoError(t, c.write(a.Conn, own, order, "first"), "A holds the lock")

			a.Crash() // from now on nothing passes on its connection
			z.AwaitExpiry(a.Client)
			second := b.Acquire()
			require.NoError(t, c.write(b.Conn, second.Held().(*Hold).Znode(), order, "cancelled"), "B holds the lock")
			a.Tap.Restore()
			z.Await("A's next session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
			require.ErrorIs(t, context.Cause(held), ErrLost)

			require.Equal(t, c.late, c.write(a.Conn, own, order, "shipped"), "A's late write")
			kept, _, err := z.Observer().Get(order)
			require.NoError(t, err)
			require.Equal(t, c.keeps, string(kept), "what the znode keeps")
			chapter.SaysIn(t, "holder.md", "%s, by a holder whose session has ended: error %v; afterwards the znode has %q",
				c.name, c.late, kept)
			second.Release()
		})
	}
}

// A's connection breaks for a moment. Its session lives, its znode still exists, and its hold
// is lost. The package leased keeps such a hold.
func TestStillBrokenAShortBreakEndsTheHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "A"), locks.Join(z, "B")
	turn := a.Acquire()
	next := b.Start()
	next.MustWait("A holds the lock")
	a.Tap.HangUp()
	zktest.AwaitChan(z, "A to be notified", turn.Context().Done())
	require.ErrorIs(t, context.Cause(turn.Context()), ErrLost)
	z.Barrier(a.Client) // A is connected again
	require.Equal(t, a.ID, a.SessionID(), "A's session")
	require.Len(t, a.Queue(), 2, "znodes in the queue: A's is still there")
	next.MustWait("A has not called Unlock")
	chapter.SaysIn(t, "holder.md", "Ada's connection breaks for a moment: her session lives, and her hold is lost")
	require.ErrorIs(t, turn.Unlock(), ErrLost)
	next.Release()
}

// farEnd is a connection that does not report when the other side closes it: on a broken connection,
// that is lost as well.
type farEnd struct {
	net.Conn
	deadline time.Time // until which the client waits for the next packet
}

func (c *farEnd) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

func (c *farEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		<-time.After(time.Until(c.deadline))
	}
	return n, err
}

// A's connection breaks one direction at a time. First A's requests are lost, and the servers'
// notifications still arrive: the client counts each of them as a sign of life, though none says
// that a server hears A. Then nothing arrives any more. The servers end A's session, and B gets the
// lock. The package leased counts only the answers to its own requests, and learns of it in time.
func TestStillBrokenNotificationsHideALineThatBreaksOneWayFirst(t *testing.T) {
	t.Parallel()
	const timeout = 3 * zktest.MortalTimeout
	z := zktest.New(t)
	through := zktest.Over(func(tap net.Conn) net.Conn { return &farEnd{Conn: tap} })
	a, b := locks.JoinAs(z, "A", property.Seat{Timeout: timeout, Through: through}), locks.Join(z, "B")
	held := a.Acquire()
	next := b.Start()
	next.MustWait("A holds the lock")
	var watches []<-chan zk.Event
	for i := range 2 {
		path, err := z.Observer().Create(fmt.Sprintf("%s/config %d", z.Root, i), nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		_, _, changed, err := a.GetW(path)
		require.NoError(t, err)
		watches = append(watches, changed)
	}

	lost := a.Tap.HoldRequest(wiretap.Ping, 1) // and all behind it: from here on the servers receive nothing from A
	zktest.AwaitChan(z, "A's ping to be lost", lost.Sprung())
	for i, changed := range watches {
		_, err := z.Observer().Set(fmt.Sprintf("%s/config %d", z.Root, i), []byte("changed"), -1)
		require.NoError(t, err)
		zktest.AwaitChan(z, "the notification, which does arrive", changed)
		if i == 0 {
			<-time.After(timeout / 3) // the client would have given up by then
		}
	}
	a.Tap.Silence() // now nothing arrives any more
	next.Acquired()
	require.NoError(t, held.Context().Err(), "A does not know, and B holds the lock")
	chapter.SaysIn(t, "holder.md",
		"Ada's requests are lost, notifications still reach her, then nothing does: Ben gets the lock, and Ada does not know")
	zktest.AwaitChan(z, "A to be notified, too late", held.Context().Done())
	require.Greater(t, next.Held().Token(), held.Held().Token(), "B's token, by which a store can refuse A's late write")
	next.Release()
}

// A's server is partitioned from the other two. It still answers A's pings. The others end A's session, and B gets
// the lock. This needs three servers. The package leased learns of it in time.
func TestStillBrokenBehindAServerThatIsCutOffTwoAreInside(t *testing.T) {
	t.Parallel()
	ensemble, _, followers := zktest.ThreeServers(t)
	z := zktest.NewOn(t, followers[1].Server)
	t.Cleanup(followers[0].Rejoin)
	require.NoError(t, ensemble.Serving(z.Ctx))
	atTheFirstFollower := func(tap zk.Dialer) zk.Dialer {
		return func(network, _ string, limit time.Duration) (net.Conn, error) {
			return tap(network, followers[0].Addr, limit)
		}
	}
	a := locks.JoinAs(z, "A", property.Seat{Timeout: 3 * time.Second, Through: atTheFirstFollower})
	b := locks.Join(z, "B")
	turn := a.Acquire()
	next := b.Start()
	next.MustWait("A holds the lock")
	followers[0].CutOff()
	next.Acquired()
	isThere, _, err := a.Exists(turn.Znode())
	require.NoError(t, err)
	require.True(t, isThere, "A asks its server for its own znode, before it writes")
	require.NoError(t, turn.Context().Err(), "A has not been notified")
	require.Greater(t, next.Held().Token(), turn.Held().Token(), "B's token, by which a store can refuse A's late write")
	chapter.SaysIn(t, "holder.md",
		"Ada's server is partitioned from the others: Ada and Ben hold the lock at once, and Ben's token is greater")
	followers[0].Rejoin()
	zktest.AwaitChan(z, "A to be notified, too late", turn.Context().Done())
}

// The empty directory is deleted, and with it the count of its children: Ben's znode has the number of Ada's. In step 2
// her Unlock deletes it. Here the names differ, by the guid.
func TestAfterTheDirectoryIsMadeAgainAnExpiredHolderReleasesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "Ada"), locks.Join(z, "Ben")
	held := a.Acquire()
	z.Expire(a.Client)
	require.NoError(t, z.Observer().Delete(a.Path, -1), "somebody deletes the empty directory")
	next := b.Acquire()
	numberOf := func(turn *zktest.Turn) string { return strings.Split(turn.Znode(), "-lock-")[1] }
	require.Equal(t, numberOf(held), numberOf(next), "the number of Ben's znode, beside that of Ada's")
	a.Tap.Restore()
	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	mark := a.Tap.Mark()
	require.ErrorIs(t, held.Unlock(), ErrLost, "Ada's Unlock, while Ben holds the lock")
	require.Equal(t, []string{"delete"}, a.Asked(mark), "what her Unlock has sent")
	require.Equal(t, []string{pathpkg.Base(next.Znode())}, b.Queue(), "the queue: Ben's znode")
	next.Release()
}

// Ephemeral znodes and re-entry prevent no deadlock between two locks: A holds x and wants y, B holds y and wants x.
// Both sessions live, so it lasts until one of them gives up.
func TestTwoLocksInOppositeOrderWaitForOneAnother(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.JoinAs(z, "A", property.Seat{Path: z.Root + "/x"})
	b := locks.JoinAs(z, "B", property.Seat{Path: z.Root + "/y"})
	x := a.Acquire()
	b.Acquire()
	wants := func(m *zktest.Member, path string) *zktest.Turn {
		lock, _ := locks.Ways(m.Session, path)
		return m.Call(lock.Lock)
	}
	second, first := wants(a, b.Path), wants(b, a.Path)
	second.MustWait("B holds y")
	first.MustWait("A holds x")
	require.ErrorIs(t, second.Cancel(), context.Canceled, "A gives up y")
	x.Release()
	first.Acquired()
}

// A directory with a name like those of our znodes counts as a place in the queue. To find out that
// it has no owner takes one more request. The package leased sends that request.
func TestStillBrokenADirectoryNamedAsAPlaceIsInTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := locks.Join(z, "Ada")
	a.Acquire().Release() // makes the lock's directory
	other, err := z.Observer().Create(a.Path+"/_c_stock-lock-0000000000", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	waiting := a.Start()
	waiting.MustWait("a znode without an owner is before it")
	chapter.SaysIn(t, "holder.md", "a directory is called %s: nobody holds the lock, and Ada waits", pathpkg.Base(other))
	require.NoError(t, z.Observer().Delete(other, -1))
	waiting.Release()
}

// A directory has no number after 2147483647. The next create gets it once more, or, of creates that are sent at once, a
// number below 0, which has no place in the queue. Then several clients are the first, and have the same token, because
// the server does not count a child that has no number of its own as a change of the directory.
func TestTheLastNumberIsHeldTwiceWithOneToken(t *testing.T) {
	t.Parallel()
	z, dirs := zktest.NewAtTheEnd(t)
	a := locks.JoinAs(z, "A", property.Seat{Path: dirs[0]})
	b := locks.JoinAs(z, "B", property.Seat{Path: dirs[0]})
	for range 2 { // the two numbers before the last
		a.Acquire().Release()
	}
	first, second := a.Acquire(), b.Acquire()
	require.Equal(t, first.Held().Token(), second.Held().Token(), "the tokens of A and B, who hold the lock at once")
	require.Len(t, a.Queue(), 2, "the queue")
	second.Release()
	first.Release()

	isBelow0 := false
	for _, dir := range dirs[1:] {
		var creates []*wiretap.Trap
		var holders []*zktest.Turn
		for _, name := range []string{"C", "D", "E", "F", "G"} {
			m := locks.JoinAs(z, name, property.Seat{Path: dir})
			if name == "C" || name == "D" { // the two numbers before the last
				m.Acquire().Release()
				continue
			}
			create := m.Tap.HoldRequest(wiretap.Create, 1)
			holders, creates = append(holders, m.Start()), append(creates, create)
			zktest.AwaitChan(z, name+" to be about to create its znode", create.Sprung())
		}
		for _, create := range creates {
			create.Let()
		}
		for _, h := range holders {
			h.Acquired()
			require.Equal(t, holders[0].Held().Token(), h.Held().Token(), "the tokens of three who hold the lock at once")
			isBelow0 = isBelow0 || strings.Contains(h.Znode(), "-lock--")
		}
		if isBelow0 { // as nearly always
			return
		}
	}
	t.Fatal("three creates were sent at once, five times, and got no number below 0: the machine is too busy")
}

// Readers do each other no harm, and yet they wait for one another. Step 6 lets them share.
func TestStillBrokenReadersWaitForReaders(t *testing.T) {
	t.Parallel()
	const readers = 10
	z := zktest.New(t)
	var reading []*zktest.Turn
	for i := range readers {
		reader := locks.Join(z, fmt.Sprintf("reader %d", i+1)).Start()
		reader.Queued()
		reading = append(reading, reader)
	}
	turns := 0
	for len(reading) > 0 {
		reading[0].Acquired()
		turns++
		z.Settle(reading[1:]...) // the others wait
		reading[0].Release()
		reading = reading[1:]
	}
	require.Equal(t, readers, turns)
	chapter.SaysIn(t, "holder.md", "%d readers: one at a time, %d turns", readers, turns)
}

// record lists each request since the mark with its answer.
// The random numbers in the names are left out.
func record(z *zktest.Zoo, c *zktest.Member, mark int) (told []string) {
	guid := regexp.MustCompile(`_c_[0-9a-f]{16}`)
	frames := c.Tap.Since(mark)
	for i, f := range frames {
		if f.Kind != wiretap.Request || f.Op == wiretap.Ping {
			continue
		}
		path := guid.ReplaceAllString(strings.ReplaceAll(f.Path, z.Root, ""), "_c_<guid>")
		text := strings.TrimSpace(fmt.Sprintf("%v %s", f.Op, path))
		at := slices.IndexFunc(frames[i:], func(a wiretap.Frame) bool {
			return a.Kind == wiretap.Reply && a.Op == f.Op && a.Xid == f.Xid
		})
		if at >= 0 {
			text += answer(frames[i+at])
		}
		told = append(told, fmt.Sprintf("%d. %s", len(told)+1, text))
	}
	return told
}

// answer is what a reply says, as far as it matters here.
func answer(reply wiretap.Frame) string {
	switch {
	case reply.Lost:
		return ": no reply arrives"
	case reply.Err == wiretap.NoNode:
		return ": no such node"
	case reply.Op == wiretap.GetChildren:
		return fmt.Sprintf(": %d name", reply.Names)
	}
	return ""
}
