package peers

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A listing is a process with one of the locks of Listings.java. Its client's line is tapped.
type listing struct {
	Peer
	Tap *wiretap.Tap
}

// newListing starts a lock of some kind, in the directory of ours.
func newListing(z *zktest.Zoo, t *testing.T, kind, directory string) listing {
	tap := wiretap.New()
	return listing{begin(z, t, java("Listings.java", relay(t, tap, z.Servers()[0]), directory, kind)), tap}
}

// waitsFor returns a listing whose thread main is in lock(), and waits for the znode of this holder.
func waitsFor(z *zktest.Zoo, t *testing.T, kind string, holder *zktest.Turn) listing {
	l := newListing(z, t, kind, holder.Path)
	l.Tell("main lock")
	z.Await("the listing to watch the holder's znode", func() bool { return l.watches(holder.Znode()) })
	return l
}

// withoutItsRoot starts a listing in a directory that is missing: its constructor prints that, and returns.
func withoutItsRoot(z *zktest.Zoo, t *testing.T, kind, directory, printed string) listing {
	t.Helper()
	tap := wiretap.New()
	cmd := java("Listings.java", relay(t, tap, z.Servers()[0]), directory, kind)
	l := listing{Peer{z.Command(cmd)}, tap}
	require.Equal(t, printed, l.Line())
	require.Equal(t, "ready", l.Line(), "the constructor has returned")
	return l
}

// does tells a thread to do something, and returns the lines that are said until it is done.
func (l listing) does(command string) (said []string) {
	l.Tell(command)
	return l.until(command)
}

// until returns the lines that are said until a command has come to its end.
func (l listing) until(command string) (said []string) {
	for {
		line := l.Line()
		said = append(said, line)
		if strings.HasPrefix(line, command) {
			return said
		}
	}
}

// watches tells whether the client has a watch on a znode, which has not fired.
func (l listing) watches(znode string) bool { return slices.Contains(l.Tap.Watched(), znode) }

// relay is an address that leads through a tap to the server, for a client that takes no dialer.
func relay(t *testing.T, tap *wiretap.Tap, server string) (address string) {
	return listen(t, func(client net.Conn) { go tap.Relay(client, server) })
}

// listen is an address whose connections are given to accept.
func listen(t *testing.T, accept func(client net.Conn)) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			accept(client)
		}
	}()
	return listener.Addr().String()
}

// B waits for A's znode, and B's connection breaks. In Java every watcher hears the events of the session. One that
// looks at no type takes that for the deletion of A's znode. One that looks at the type waits on.
func TestW27InJava(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	held := a.Acquire()
	b := waitsFor(z, t, "any event", held)
	b.Tap.HangUp()
	said := b.until("main lock")
	assert.Equal(t, []string{"the watcher hears Disconnected, None", "main lock: done"}, said,
		"what B's watcher hears, and what lock() answers: it returns as the holder")
	owner, there := z.Owner(held.Znode())
	assert.True(t, there, "A's znode is there")
	assert.Equal(t, a.SessionID(), owner, "and it is A's: A and B hold the lock at once")

	b.does("main unlock")
	c := waitsFor(z, t, "only deletion", held)
	c.Tap.HangUp()
	assert.Equal(t, "the watcher hears Disconnected, None", c.Line(), "C's watcher hears the same")
	assert.Equal(t, "the watcher hears SyncConnected, None", c.Line(), "and that C is back")
	held.Release()
	assert.Equal(t, []string{"the watcher hears SyncConnected, NodeDeleted", "main lock: done"}, c.until("main lock"),
		"C was let in by A's release, and not before")
}

// C waits for the deletion of A's znode, and looks at the type of each event. C's session expires: the event that
// says so has the type None, and no deletion is told after it. So C sleeps on when the lock is free, with no znode in
// the queue.
func TestAWaiterThatLooksForADeletionAloneSleepsOnInJava(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	held := a.Acquire()
	c := waitsFor(z, t, "only deletion", held)
	require.NoError(t, zktest.CloseSession(z.Servers()[0], c.Tap.Session()))
	c.until("the watcher hears Expired, None")
	held.Release()
	assert.Empty(t, a.Queue(), "the queue: the lock is free, and C's znode is deleted")
	assert.Equal(t, []string{"second root: SESSIONEXPIRED"}, c.does("second root"),
		"another thread learns of the end, and C's lock() has not returned: nothing will wake it")
}

// A holds the lock, B and C wait. C is an object whose lock() was interrupted while it watched B's znode, and whose
// second lock() waits behind D. B gives up: the first watch wakes the second lock(), which returns as the holder.
func TestAListingThatLooksAtNoPath(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	held := a.Acquire()
	b := step4.Join(z, "B").Start()
	b.Queued()
	c := newListing(z, t, "any path", a.Path)
	c.Tell("first lock")
	z.Await("C to watch B's znode", func() bool { return c.watches(b.Znode()) })
	c.Tell("first interrupt")
	require.Equal(t, []string{"first lock: InterruptedException"}, c.until("first lock"))
	d := step4.Join(z, "D").Start()
	d.Queued()
	c.Tell("second lock")
	z.Await("C to watch D's znode", func() bool { return c.watches(d.Znode()) })
	b.GiveUp()
	assert.Equal(t, []string{"the watcher hears NodeDeleted: " + b.Znode(), "second lock: done"},
		c.until("second lock"))
	for _, znode := range []string{held.Znode(), d.Znode()} {
		_, there := z.Owner(znode)
		assert.True(t, there, "%s, which stands before C's", znode)
	}
}

// B waits for A's znode, and its watcher then waits for a lock that B's waiting thread holds. The client has one thread
// for all its watchers: so another watcher, of another znode, is not called either, until B's thread is interrupted and
// gives the lock back. And even then the watcher wakes nobody: the lock that it holds is not the condition's.
func TestW15InJava(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	held := a.Acquire()
	b := waitsFor(z, t, "wakes", held)
	b.does("second watches")
	held.Release()
	require.Equal(t, "the watcher hears NodeDeleted", b.Line())
	_, err := z.Observer().Set(a.Path, []byte("a note"), -1)
	require.NoError(t, err)
	z.Await("B's client to be notified of both changes", func() bool {
		return wiretap.Count(b.Tap.Frames()).Notifications == 2
	})
	assert.Equal(t, []string{"second root: done"}, b.does("second root"),
		"the client answers another thread, and B's lock() has not returned, and no other watcher is called")
	b.Tell("main interrupt")
	said := []string{b.Line(), b.Line(), b.Line()}
	of := func(line string) int { return slices.Index(said, line) }
	assert.ElementsMatch(t, []string{"main lock: InterruptedException",
		"signalAll throws IllegalMonitorStateException", "another watcher hears NodeDataChanged"}, said)
	assert.Less(t, of("signalAll throws IllegalMonitorStateException"), of("another watcher hears NodeDataChanged"),
		"the watchers are called one after the other")
}

// One object, two threads. Where the znode belongs to the object, both get the lock.
func TestW28InJavaOneZnode(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "one znode", path)
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"))
	assert.Equal(t, []string{"second lock: done"}, l.does("second lock"), "the first thread has not unlocked")
	assert.Len(t, z.Names(path), 1, "znodes: both threads stand in the same place")
}

// One object, two threads. Where each lock() writes its znode into the same field, the holder deletes the waiter's.
func TestW28InJavaOneField(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "one field", path)
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"))
	held := path + "/" + z.Names(path)[0]
	l.Tell("second lock")
	z.Await("the second thread to watch the holder's znode", func() bool { return watched(z, held) })
	said := l.does("first unlock")
	require.Len(t, said, 2)
	assert.NotEqual(t, "unlock deletes "+held, said[0], "the znode that the holder deletes is not its own")
	_, there := z.Owner(held)
	assert.True(t, there, "the holder has unlocked, and its znode is there")
	assert.True(t, watched(z, held), "and the second thread waits for it, with no znode of its own")
	assert.Len(t, z.Names(path), 1, "the queue")
}

// unlock() asks for version 0 of the znode. Whoever has set its data has made it version 1.
func TestAListingsDeleteOfVersionZero(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "one znode", path)
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"))
	znode := path + "/" + z.Names(path)[0]
	_, err := z.Observer().Set(znode, []byte("a note"), -1)
	require.NoError(t, err)
	assert.Equal(t, []string{"unlock prints BADVERSION", "first unlock: done"}, l.does("first unlock"))
	_, there := z.Owner(znode)
	assert.True(t, there, "the holder has unlocked, and its znode is there")

	other := path + "-2"
	makes(t, z, other)
	any := newListing(z, t, "any event", other) // its unlock() asks for version -1
	require.Equal(t, []string{"first lock: done"}, any.does("first lock"))
	_, err = z.Observer().Set(other+"/"+z.Names(other)[0], []byte("a note"), -1)
	require.NoError(t, err)
	assert.Equal(t, []string{"first unlock: done"}, any.does("first unlock"))
	assert.Empty(t, z.Names(other), "the queue: -1 deletes any version")
}

// The lock has a count for each thread. After an unlock() the thread's next task stands in the queue again. A task ends
// without its unlock(): the next one gets the lock, and gets it also when the session has ended, and A holds the lock.
func TestAListingThatCountsLetsTheNextTaskIn(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	makes(t, z, a.Path)
	l := newListing(z, t, "counts", a.Path)
	require.Equal(t, []string{"its count is 1", "pool lock: done"}, l.does("pool lock"))
	first := a.Path + "/" + a.Queue()[0]
	require.Equal(t, []string{"unlock deletes " + first, "pool unlock: done"}, l.does("pool unlock"))
	require.Equal(t, []string{"its count is 1", "pool lock: done"}, l.does("pool lock"))
	assert.NotEqual(t, first, a.Path+"/"+a.Queue()[0], "the znode of the next task, after an unlock()")
	assert.Equal(t, []string{"its count is 2", "pool lock: done"}, l.does("pool lock"),
		"the next task, without an unlock()")
	assert.Len(t, a.Queue(), 1, "the queue: the znode of the task before")
	require.NoError(t, zktest.CloseSession(z.Servers()[0], l.Tap.Session()))
	a.Acquire()
	assert.Equal(t, []string{"its count is 3", "pool lock: done"}, l.does("pool lock"), "A holds the lock")
	assert.Len(t, a.Queue(), 1, "the queue: A's znode")
}

// Java's client reads no answer that is longer than 1 MB. From then on lock() fails, and its znode stays.
func TestAListingsAnswerHasALimit(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	makes(t, z, path)
	var long []string // each name has 100,000 bytes, and all sort behind the lock's
	makesLong := func() {
		long = append(long, fmt.Sprintf("%s/%s%d", path, strings.Repeat("z", 99_998), 10+len(long)))
		makes(t, z, long[len(long)-1])
	}
	for range 10 {
		makesLong()
	}
	l := newListing(z, t, "any event", path)
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"), "the list: a little more than 1,000,000 bytes")
	require.Equal(t, []string{"first unlock: done"}, l.does("first unlock"))
	makesLong()
	assert.Equal(t, []string{"first lock: CONNECTIONLOSS"}, l.does("first lock"), "the list: more than 1,100,000 bytes")
	_, there := z.Owner(path + "/lock-0000000012")
	assert.True(t, there, "its znode")
	for _, znode := range long { // our own client reads no long list either
		require.NoError(t, z.Observer().Delete(znode, -1))
	}
}

// unlock() closes the session. The object cannot lock a second time.
func TestAListingClosesItsSession(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "closes", path)
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"))
	l.does("first unlock")
	assert.Equal(t, []string{"first lock: SESSIONEXPIRED"}, l.does("first lock"))
}

// The directory is missing: the constructor prints it, and lock() fails at a path that is null.
func TestAListingWithoutItsRoot(t *testing.T) {
	z := needsPeers(t)
	l := withoutItsRoot(z, t, "one znode", z.Root+"/missing", "the constructor prints NONODE")
	assert.Equal(t, []string{"first lock: NullPointerException"}, l.does("first lock"), "its znode is null")
}

// The constructor prints that it could not create the root, and returns. Then lock() finds nobody to wait for.
func TestAListingThatPrintsItsExceptions(t *testing.T) {
	z := needsPeers(t)
	l := withoutItsRoot(z, t, "prints", z.Root+"/missing/root", "printed: NONODE")
	for _, thread := range []string{"first", "second"} {
		assert.Equal(t, []string{"printed: NONODE", "lock returns true", thread + " lock: done"}, l.does(thread+" lock"))
	}
}

// A holds, and B's client has three addresses. The first two that it tries lead nowhere: each connection ends when a
// request waits for it, and the request fails. B's constructor and its tryLock print that, and B finds nobody to wait
// for. A constructor returns a client that has no connection.
func TestAListingWithTwoDeadAddresses(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	held := a.Acquire()
	tried := make(chan net.Conn, 10) // at any of the addresses: the client takes them in an order of its own
	var addresses []string
	for range 3 {
		addresses = append(addresses, listen(t, func(client net.Conn) { tried <- client }))
	}
	b := listing{Peer: Peer{z.Command(java("Listings.java", strings.Join(addresses, ","), a.Path, "prints at once"))}}
	first := zktest.AwaitChan(z, "B's client to try an address", tried)
	assert.Equal(t, "the client is CONNECTING", b.Line())
	require.Equal(t, "the thread waits for an answer", b.Line())
	first.Close()
	assert.Equal(t, "printed: CONNECTIONLOSS", b.Line(), "what the constructor prints")
	require.Equal(t, "ready", b.Line(), "the constructor has returned")

	second := zktest.AwaitChan(z, "B's client to try another address", tried)
	b.Tell("main lock")
	require.Equal(t, "the thread waits for an answer", b.Line())
	second.Close()
	third := zktest.AwaitChan(z, "B's client to try the last address", tried)
	go wiretap.New().Relay(third, z.Servers()[0])
	assert.Equal(t, []string{"printed: CONNECTIONLOSS", "lock returns true", "main lock: done"}, b.until("main lock"))
	owner, there := z.Owner(held.Znode())
	assert.True(t, there, "A's znode is there")
	assert.Equal(t, a.SessionID(), owner, "and it is A's: A and B hold the lock at once")
	assert.ElementsMatch(t, addresses, []string{
		first.LocalAddr().String(), second.LocalAddr().String(), third.LocalAddr().String(),
	}, "what B's client has tried: each address once")
}

// The server allows two connections from one address, and X and A have them: X holds the lock, and A waits. The server
// refuses B twice: B's constructor prints that, and so does its tryLock, with no znode. X releases the lock, and closes
// its connection: A gets the lock, and so does B.
func TestAListingThatTheServerRefuses(t *testing.T) {
	z := needsPeers(t)
	server, err := zkserver.StartEnsemble(t.Context(), 1, "maxClientCnxns=2")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	on := func(address, kind string) Peer { return Peer{z.Command(java("Listings.java", address, "/lock", kind))} }
	x := listing{Peer: on(server.Addr, "closes")}
	require.Equal(t, "ready", x.Line())
	require.Equal(t, []string{"main root: done"}, x.does("main root"))
	require.Equal(t, []string{"main lock: done"}, x.does("main lock"))
	tap := wiretap.New()
	a := listing{on(relay(t, tap, server.Addr), "prints"), tap}
	require.Equal(t, "ready", a.Line())
	a.Tell("main lock")
	z.Await("A to watch X's znode", func() bool { return a.watches("/lock/lock-0000000000") })

	tries := make(chan net.Conn, 10)
	connectsB := func() { go wiretap.New().Relay(zktest.AwaitChan(z, "B's client to connect", tries), server.Addr) }
	b := listing{Peer: on(listen(t, func(client net.Conn) { tries <- client }), "prints at once")}
	require.Equal(t, "the client is CONNECTING", b.Line())
	require.Equal(t, "the thread waits for an answer", b.Line())
	connectsB()
	require.Equal(t, "printed: CONNECTIONLOSS", b.Line(), "what the constructor prints")
	require.Equal(t, "ready", b.Line(), "the constructor has returned")
	b.Tell("main lock")
	require.Equal(t, "the thread waits for an answer", b.Line())
	connectsB()
	require.Equal(t, "printed: CONNECTIONLOSS", b.Line(), "what B's tryLock prints: it has no znode")

	x.does("main unlock")
	assert.Equal(t, []string{"lock returns true", "main lock: done"}, a.until("main lock"))
	z.Await("the server to have room for a connection", func() bool {
		_, err := server.Word("ruok")
		return err == nil
	})
	connectsB()
	assert.Equal(t, []string{"lock returns true", "main lock: done"}, b.until("main lock"), "A has not released the lock")
}

// A holds, and B's thread is interrupted while it waits. Its lock() returns false, and its znode stays before C's.
func TestAListingThatIsInterrupted(t *testing.T) {
	z := needsPeers(t)
	a, c := step4.Join(z, "A"), step4.Join(z, "C")
	held := a.Acquire()
	b := waitsFor(z, t, "prints", held)
	b.Tell("main interrupt")
	said := b.until("main lock")
	assert.Equal(t, []string{"printed: InterruptedException", "lock returns false", "main lock: done"}, said)
	held.Release()
	require.Len(t, c.Queue(), 1, "the queue: B's znode")
	waiting := c.Start()
	waiting.MustWait("B's znode stays, and the lock is free")
}

// The holder's znode has been deleted, and then, at the second lock(), its session is closed. unlock() returns as usual.
func TestAListingsUnlockSaysNothingOfALoss(t *testing.T) {
	z := needsPeers(t)
	a := step4.Join(z, "A")
	a.Acquire().Release() // makes the directory
	l := newListing(z, t, "prints", a.Path)
	require.Equal(t, []string{"lock returns true", "main lock: done"}, l.does("main lock"))
	require.NoError(t, z.Observer().Delete(a.Path+"/"+a.Queue()[0], -1))
	held := a.Acquire()
	assert.Equal(t, []string{"main unlock: done"}, l.does("main unlock"), "A holds the lock")
	held.Release()

	require.Equal(t, []string{"lock returns true", "main lock: done"}, l.does("main lock"))
	require.NoError(t, zktest.CloseSession(z.Servers()[0], l.Tap.Session()))
	a.Acquire()
	said := l.does("main unlock")
	require.Len(t, said, 2)
	assert.Regexp(t, "^printed: (CONNECTIONLOSS|SESSIONEXPIRED)$", said[0])
	assert.Equal(t, "main unlock: done", said[1], "A holds the lock")
}

// The holder's session has expired, and another client has made a znode at the same path. Java's ZooKeeper object does
// not begin a new session, so the earlier holder's unlock() does not delete the next one's znode.
func TestAnExpiredHolderDeletesNothingInJava(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "any event", path) // its unlock() passes exceptions on
	require.Equal(t, []string{"first lock: done"}, l.does("first lock"))
	znode := path + "/" + z.Names(path)[0]
	losesTo(z, t, l.Tap, znode)
	z.Await("the earlier holder to learn that its session has expired", func() bool {
		said := l.does("first unlock")
		require.NotEqual(t, []string{"first unlock: done"}, said)
		return said[0] == "first unlock: SESSIONEXPIRED"
	})
	assert.Equal(t, []string{"first unlock: SESSIONEXPIRED"}, l.does("first unlock"), "it stays so")
	owner, there := z.Owner(znode)
	assert.True(t, there, "the next one's znode is there")
	assert.Equal(t, z.Observer().SessionID(), owner, "whose it is")
}

// The same with Curator's client, which begins a new session by itself: the delete of the same path succeeds.
func TestAnExpiredCuratorClientDeletesTheNextOnesZnode(t *testing.T) {
	z := needsPeers(t)
	znode := z.Root + "/lock"
	tap := wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", z.Root+"/unused", 1)
	does(t, theirs, "create "+znode)
	losesTo(z, t, tap, znode)
	does(t, theirs, "delete "+znode)
	_, there := z.Owner(znode)
	assert.False(t, there, "the next one's znode is there")
}

// losesTo ends the session of a client that has made a znode. The observer then makes one at the same path.
func losesTo(z *zktest.Zoo, t *testing.T, tap *wiretap.Tap, znode string) {
	t.Helper()
	require.NoError(t, zktest.CloseSession(z.Servers()[0], tap.Session()))
	z.Await("the znode to be deleted", func() bool {
		_, there := z.Owner(znode)
		return !there
	})
	_, err := z.Observer().Create(znode, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

// Since ZooKeeper 3.6 a watch can stay.
func TestAWatchCanStayInJava(t *testing.T) {
	z := needsPeers(t)
	makes(t, z, z.Root+"/lock")
	l := newListing(z, t, "one field", z.Root+"/lock")
	hears := "the watcher hears NodeDataChanged"
	assert.Equal(t, []string{hears, hears, hears, "main stays: done"}, l.does("main stays"), "one watch, three changes")
}

// The constructor's watcher hears of each connection, of a change of a znode that was read with true, and of the
// session's end. The read was on the first connection, and the change on the second.
func TestTheConstructorsWatcherOutlivesItsConnectionInJava(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	makes(t, z, path)
	tap := wiretap.New()
	cmd := java("Listings.java", relay(t, tap, z.Servers()[0]), path, "default watcher")
	l := listing{Peer{z.Command(cmd)}, tap}
	hears := func(event string) {
		t.Helper()
		assert.Equal(t, "the constructor's watcher hears "+event, l.Line())
	}
	hears("SyncConnected, None")
	require.Equal(t, "ready", l.Line())
	require.Equal(t, []string{"main reads: done"}, l.does("main reads"))
	tap.HangUp()
	hears("Disconnected, None")
	hears("SyncConnected, None")
	_, err := z.Observer().Set(path, []byte("a note"), -1)
	require.NoError(t, err)
	hears("SyncConnected, NodeDataChanged")
	require.NoError(t, zktest.CloseSession(z.Servers()[0], tap.Session()))
	hears("Disconnected, None")
	hears("Expired, None")
}

// nileader says of the lock whose waiters watch the directory: the recipe that it links to is this lock.
func TestWriteLockWatchesItsPredecessorInJava(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	makes(t, z, path)
	before := path + "/x-0-0000000000" // as the recipe names its znodes: x-session-number
	makes(t, z, before)
	l := newListing(z, t, "recipe", path)
	mark := l.Tap.Mark()
	assert.Equal(t, []string{"lock returns false", "main lock: done"}, l.does("main lock"))
	assert.Equal(t, []string{before}, l.Tap.Watched(), "what it watches: not the directory")
	looks := 0
	for _, f := range l.Tap.Since(mark) {
		if f.Kind == wiretap.Request && f.Op == wiretap.Exists && f.Path == before {
			looks++
		}
	}
	assert.Equal(t, 1, looks, "it watches by exists")
}

// Two ask whether the root is there, are told no, and make it: one of them fails.
func TestAListingAsksAndThenMakes(t *testing.T) {
	z := needsPeers(t)
	l := newListing(z, t, "one field", z.Root+"/root")
	late := l.Tap.HoldRequest(wiretap.Create, 1)
	l.Tell("first root")
	zktest.AwaitChan(z, "the create, behind an exists that said no", late.Sprung())
	makes(t, z, z.Root+"/root")
	late.Let()
	assert.Equal(t, []string{"first root: NODEEXISTS"}, l.until("first root"))
}

// A lock's name that ends in "_lock" passes the check. But its znode's name is cut too early, so the lock does not find
// its own znode: lock() throws, and leaves it. From then on the znode stands in the queue of another lock.
func TestAListingsLockNameThatEndsInLock(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	makes(t, z, path)
	l := newListing(z, t, "order_lock", path)
	assert.Equal(t, []string{"the queue of order_lock: []", "main lock: IndexOutOfBoundsException"}, l.does("main lock"))
	assert.Equal(t, []string{"order_lock_lock_0000000000"}, z.Names(path), "the znode stays")

	other := newListing(z, t, "order", path)
	assert.Equal(t, []string{
		"the queue of order: [order_lock_0000000001, order_lock_lock_0000000000]", "main lock: done",
	}, other.does("main lock"), "the lock order has it in its list, behind its own znodes")
}

// Two documents write a path without its first slash.
func TestAListingsRelativePath(t *testing.T) {
	z := needsPeers(t)
	path := step4.Join(z, "the observer of the queue").Path
	l := newListing(z, t, "one field", path)
	assert.Equal(t, []string{"main relative: IllegalArgumentException"}, l.does("main relative"))
}

// makes creates a directory.
func makes(t *testing.T, z *zktest.Zoo, path string) {
	t.Helper()
	_, err := z.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}
