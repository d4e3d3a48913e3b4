package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/locks"
	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var (
	step4          = locks.Of("4")
	step5, step6   = locks.Of("5"), locks.Of("6")
	mutex, rwmutex = locks.Mutex, locks.RWMutex
)

// needsPeers leaves a test out where Curator and kazoo are not installed, and
// says so. These tests run one after the other: each starts its own Java, which
// compiles first, and all at once they would keep two cores busy for too long.
func needsPeers(t *testing.T) *zktest.Zoo {
	t.Helper()
	if missing := Missing(); missing != nil {
		if os.Getenv("ZKLOCK_REQUIRE_PEERS") != "" {
			t.Fatal(missing)
		}
		t.Skipf("left out: Curator and kazoo in one queue with ours; %v", missing)
	}
	return zktest.New(t)
}

// looks is how a member looks into the room whether a writer is inside.
type looks func(m *zktest.Member, room string) error

// inOneQueue lets ours and theirs take many turns at one lock, all at the same time.
// Each looks into the room.
func inOneQueue(t *testing.T, z *zktest.Zoo, path string, theirs []Peer, ours map[*zktest.Member]looks) {
	const turns = 100
	for _, p := range theirs {
		p.Begin("turns %d", turns)
	}
	var calls []*zktest.Turn
	for m, look := range ours {
		calls = append(calls, z.Go(m.Client, func(ctx context.Context) error {
			for i := range turns {
				held, err := m.Lock(ctx)
				if err == nil {
					err = look(m, Room(path))
				}
				if err == nil {
					err = held.Unlock()
				}
				if err != nil {
					return fmt.Errorf("turn %d: %w", i+1, err)
				}
			}
			return nil
		}))
	}
	for _, call := range calls {
		call.Acquired()
	}
	for i, p := range theirs {
		assert.True(t, p.Done(), "theirs, number %d, had its %d turns, and met nobody inside", i+1, turns)
	}
	assert.Empty(t, z.Names(path), "the queue, when all is over")
}

// goIn fails if somebody is inside.
func goIn(m *zktest.Member, room string) error {
	_, err := m.Create(room, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if err == nil {
		err = m.Delete(room, -1)
	}
	return err
}

// lookIn fails if a writer is inside.
func lookIn(m *zktest.Member, room string) error {
	found, _, err := m.Exists(room)
	if found {
		err = errors.New("a writer is inside")
	}
	return err
}

func TestCuratorAndTheClientsLockStandInOneQueueWithOurs(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	inOneQueue(t, z, path,
		[]Peer{Curator(z, t, z.Servers()[0], "mutex", path, 1)},
		map[*zktest.Member]looks{
			step5.Join(z, "step 5"):         goIn,
			mutex.Join(z, "leased.Mutex"):   goIn,
			steps.Client.Join(z, "zk.Lock"): goIn,
		})
}

// Without step 5: its queue has the names of Curator's locks alone, and kazoo's have no "_c_".
func TestKazooStandsInOneQueueWithLeased(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	inOneQueue(t, z, path,
		[]Peer{Curator(z, t, z.Servers()[0], "mutex", path, 1), Kazoo(z, t, z.Servers()[0], OurNames, path, 1)},
		map[*zktest.Member]looks{
			mutex.Join(z, "leased.Mutex"):   goIn,
			steps.Client.Join(z, "zk.Lock"): goIn,
		})
}

// The session of Curator's holder ends, and step 5 gets the lock. Curator's release() returns as usual. Step 5's Unlock
// says that the lock was lost.
func TestCuratorsReleaseSaysNothingOfALoss(t *testing.T) {
	z := needsPeers(t)
	ours, third := step5.Join(z, "step 5"), step5.Join(z, "a third client")
	tap := wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", ours.Path, 1)
	theirs.Begin("lock")
	require.True(t, theirs.Done())
	require.NoError(t, zktest.CloseSession(z.Servers()[0], tap.Session()))
	held := ours.Acquire()
	theirs.Begin("unlock")
	assert.Equal(t, "unlock: done", theirs.Line(), "what Curator's release() answers: no exception")
	assert.Len(t, ours.Queue(), 1, "the queue: step 5's znode, whose client holds the lock")

	z.EndSession(ours.Client)
	next := third.Acquire()
	assert.ErrorIs(t, held.Unlock(), reentrant.ErrLost, "what step 5's Unlock answers in the same case")
	next.Release()
}

// Curator's readers and writers stand in one queue with ours.
func TestCuratorsReadWriteLockStandsInOneQueueWithOurs(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	inOneQueue(t, z, path,
		[]Peer{Curator(z, t, z.Servers()[0], "write", path, 1), Curator(z, t, z.Servers()[0], "read", path, 1)},
		map[*zktest.Member]looks{
			step6.Join(z, "step 6, a writer"):                  goIn,
			step6.Join(z, "step 6, a reader").Reader:           lookIn,
			rwmutex.Join(z, "leased.RWMutex, a writer"):        goIn,
			rwmutex.Join(z, "leased.RWMutex, a reader").Reader: lookIn,
		})
}

// A service changes over from kazoo's Lock to leased's Mutex, one process after the other, in three
// rounds. In each round the old and the new ones exclude one another.
func TestChangingOverFromKazoo(t *testing.T) {
	z := needsPeers(t)
	kazoo := func(kind, path string) Peer { return Kazoo(z, t, z.Servers()[0], kind, path, 1) }
	for _, round := range []struct{ from, to string }{{OwnNames, OwnNamesForBoth}, {OwnNamesForBoth, OurNames}} {
		path := z.Root + "/to " + round.to
		inOneQueue(t, z, path, []Peer{kazoo(round.from, path), kazoo(round.to, path)}, nil)
	}
	path := z.Root + "/to leased"
	inOneQueue(t, z, path, []Peer{kazoo(OurNames, path)}, map[*zktest.Member]looks{
		mutex.JoinAs(z, "leased.Mutex", property.Seat{Path: path}): goIn,
	})
}

// A holds, and B of another language waits until A has released: both ways. Step 5 knows the names
// of Curator's locks alone; leased knows those of kazoo's, too.
func TestEachWaitsForTheOther(t *testing.T) {
	z := needsPeers(t)
	for name, pair := range map[string]struct {
		ours  property.Subject
		start func(path string) Peer
	}{
		"Curator": {step5, func(path string) Peer { return Curator(z, t, z.Servers()[0], "mutex", path, 1) }},
		"kazoo":   {mutex, func(path string) Peer { return Kazoo(z, t, z.Servers()[0], OurNames, path, 1) }},
	} {
		path := z.Root + "/" + name
		ours, peer := pair.ours.JoinAs(z, pair.ours.Name, property.Seat{Path: path}), pair.start(path)
		held := ours.Acquire()
		peer.Begin("lock")
		z.Await(name+" to queue", func() bool { return len(ours.Queue()) == 2 })
		z.Await(name+" to watch our znode", func() bool { return watched(z, held.Znode()) })
		held.Release()
		require.True(t, peer.Done(), "%s is let in by our release", name)

		waiting := ours.Start()
		waiting.MustWait("%s holds the lock", name)
		peer.Begin("unlock")
		require.True(t, peer.Done())
		waiting.Acquired()

		peer.Begin("lock")
		z.Await(name+" to watch our znode", func() bool { return watched(z, waiting.Znode()) })
		waiting.Release()
		require.True(t, peer.Done())
		waiting = ours.Start()
		waiting.MustWait("%s holds the lock", name)
		peer.Kill()
		waiting.Acquired()
		assert.Len(t, ours.Queue(), 1, "%s was killed, and its session has expired", name)
		waiting.Release()
	}
}

// watched tells whether anybody has a watch on a znode.
func watched(z *zktest.Zoo, path string) bool {
	watches, err := z.Watches()
	return err == nil && len(watches[path]) > 0
}

// What docs/glossary.md says of Curator's lock beside ours.
func TestWhereStep5DiffersFromCurator(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	theirs := Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	does := func(command string, args ...any) {
		t.Helper()
		theirs.Begin(command, args...)
		require.True(t, theirs.Done(), command)
	}
	held := ours.Acquire()
	does("try 100") // which fails if it gets the lock
	require.Len(t, ours.Queue(), 1, "the queue: only the holder")
	require.True(t, watched(z, held.Znode()), "Curator has given up, and leaves its watch")
	held.Release()
	for _, isInForeground := range []bool{false, true} {
		held = ours.Acquire()
		does("unwatch %s %t", held.Znode(), isInForeground)
		require.True(t, watched(z, held.Znode()), "Curator has removed its watch, and the server keeps it")
		held.Release()
	}
}

// What leased/beside.md says of other znodes in the directory. Neither step 5 nor Curator's readers wait
// for them.
func TestWhichOfCuratorsLocksWaitForANote(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	ours.Acquire().Release() // which makes the directory
	_, err := z.Observer().Create(ours.Path+"/0-a-note", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	ours.Acquire().Release()

	for _, kind := range []string{"mutex", "write"} {
		theirs := Curator(z, t, z.Servers()[0], kind, ours.Path, 1)
		theirs.Begin("try 100") // which fails if it gets the lock
		require.True(t, theirs.Done(), "Curator's %s waits, and only the note is in the directory", kind)
	}
	theirs := Curator(z, t, z.Servers()[0], "read", ours.Path, 1)
	theirs.Begin("lock")
	require.True(t, theirs.Done(), "Curator's reader does not wait for the note")
	theirs.Begin("unlock")
	require.True(t, theirs.Done())
}

// NoNode is not only what an expired session looks like: somebody may have deleted the
// znode.
func TestCuratorQueuesAgainWhenItsZnodeHasGone(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	theirs := Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	held := ours.Acquire()
	theirs.Begin("lock")
	z.Await("Curator to watch our znode", func() bool { return watched(z, held.Znode()) })
	queue := ours.Queue()
	slices.SortFunc(queue, zktest.BySequence)
	first := ours.Path + "/" + queue[1]
	session, _ := z.Owner(first)
	require.NoError(t, z.Observer().Delete(first, -1))
	held.Release()
	require.True(t, theirs.Done(), "Curator has the lock")
	queue = ours.Queue()
	require.Len(t, queue, 1, "the queue: Curator has made another znode")
	again, _ := z.Owner(ours.Path + "/" + queue[0])
	require.Equal(t, session, again, "the session of Curator's second znode")
}

// Nothing is wrong with the connection: a wait without a time limit has ended because the client was closed.
func TestCuratorCallsAClosedClientALostConnection(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	theirs := Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	held := ours.Acquire()
	theirs.Begin("wait")
	require.True(t, theirs.Done())
	z.Await("Curator to watch our znode", func() bool { return watched(z, held.Znode()) })
	theirs.Begin("close")
	require.Contains(t, theirs.Line(), "java.io.IOException: Lost connection while trying to acquire lock")
}

// does lets a peer do some things, which all succeed.
func does(t *testing.T, p Peer, commands ...string) {
	t.Helper()
	for _, command := range commands {
		p.Begin("%s", command)
		require.True(t, p.Done(), command)
	}
}

// Re-entry into a mutex belongs to the lock object, and is counted. A semaphore mutex refuses it. A multi lock takes
// two locks at once. A reader that asks to write waits for its own znode. The commands "other", "try" and "write" fail
// if they get the lock.
func TestWhoMayLockCuratorsLocksAgain(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/mutex"
	one := Curator(z, t, z.Servers()[0], "mutex", path, 1)
	does(t, one, "lock", "lock", "other 100", "unlock", "other 100")
	assert.Len(t, z.Names(path), 1, "the queue, after two acquires and one release")
	does(t, one, "unlock")
	assert.Empty(t, z.Names(path), "the queue, after the second release")

	does(t, Curator(z, t, z.Servers()[0], "semaphore", z.Root+"/semaphore", 1), "lock", "try 100", "unlock")

	path = z.Root + "/read-write"
	reader := Curator(z, t, z.Servers()[0], "read", path, 1)
	does(t, reader, "lock")
	queue := z.Names(path)
	assert.Len(t, queue, 1, "the queue: the reader is alone")
	does(t, reader, "write 100")
	assert.Equal(t, queue, z.Names(path), "the queue, after the time is up: the reader's znode, for which it waited")
	does(t, reader, "unlock")

	path = z.Root + "/multi"
	multi := Curator(z, t, z.Servers()[0], "multi", path, 1)
	does(t, multi, "lock")
	assert.Len(t, z.Names(path), 1, "the queue of the first lock")
	assert.Len(t, z.Names(path+"-2"), 1, "the queue of the second lock")
	does(t, multi, "unlock")
	assert.Empty(t, append(z.Names(path), z.Names(path+"-2")...), "both queues, after the release")
}

// Two multi locks take the same two locks in opposite order. The first client waits for ours in the queue of its first
// lock, until the second client has the other lock. Then each waits for the other's znode, without a limit.
func TestTwoOfCuratorsMultiLocksWaitForOneAnother(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	forwards := Curator(z, t, z.Servers()[0], "multi", ours.Path, 1)
	backwards := Curator(z, t, z.Servers()[0], "multi, backwards", ours.Path, 1)
	held := ours.Acquire()
	does(t, forwards, "wait")
	z.Await("the first client to wait for ours", func() bool { return watched(z, held.Znode()) })
	queue := ours.Queue()
	slices.SortFunc(queue, zktest.BySequence)
	first := ours.Path + "/" + queue[1]
	does(t, backwards, "wait")
	z.Await("the second client to wait for the first", func() bool { return watched(z, first) })
	other := z.Names(ours.Path + "-2")
	require.Len(t, other, 1, "the queue of the other lock: the second client has this lock")
	held.Release()
	second := ours.Path + "-2/" + other[0]
	z.Await("the first client to wait for the second", func() bool { return watched(z, second) })
	assert.True(t, watched(z, first), "the second client waits for the first")
	assert.Len(t, ours.Queue(), 2, "the queue of the one lock")
	assert.Len(t, z.Names(ours.Path+"-2"), 2, "the queue of the other lock")
}

// A holds, and the connection of Curator's client does not come back. Its acquire() without a limit ends.
func TestALostConnectionEndsCuratorsWait(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	tap := wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "impatient", ours.Path, 1)
	held := ours.Acquire()
	does(t, theirs, "wait")
	z.Await("Curator to watch our znode", func() bool { return watched(z, held.Znode()) })
	tap.Cut()
	theirs.Begin("end")
	assert.Contains(t, theirs.Line(), "KeeperException$ConnectionLossException", "what Curator's acquire() throws")
	assert.True(t, theirs.Done())
}

// A holds. Curator's client asks for the lock with a limit, and its connection breaks. Another client, which asks later
// with the same limit, gives up. Only then does A release: the first client gets the lock, because it still waits.
func TestADisconnectedCuratorWaitsLongerThanItsLimit(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	tap := wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", ours.Path, 1)
	another := Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	held := ours.Acquire()
	const limit = 2000               // milliseconds
	theirs.Begin("within %d", limit) // which fails if it does not get the lock
	z.Await("Curator to watch our znode", func() bool { return watched(z, held.Znode()) })
	tap.Cut()
	does(t, another, fmt.Sprintf("try %d", limit)) // which fails if it gets the lock
	held.Release()
	tap.Restore()
	assert.True(t, theirs.Done(), "Curator gets the lock, after its time was up")
}

// A guaranteed() delete fails, because the connection is lost. When it is back, an open client deletes the znode in the
// background, and keeps its session. A client that was closed sends nothing: its znode ends with its session.
func TestCuratorsGuaranteedDeleteEndsWithItsClient(t *testing.T) {
	z := needsPeers(t)
	var taps []*wiretap.Tap
	znodes := []string{z.Root + "/open", z.Root + "/closed"}
	var owners []int64
	var clients []Peer
	for i, znode := range znodes {
		taps = append(taps, wiretap.New())
		clients = append(clients, Curator(z, t, relay(t, taps[i], z.Servers()[0]), "impatient", z.Root+"/unused", 1))
		does(t, clients[i], "create "+znode)
		owner, _ := z.Owner(znode)
		owners = append(owners, owner)
	}
	for i, znode := range znodes {
		taps[i].Cut()
		clients[i].Begin("guaranteed %s", znode)
	}
	for _, client := range clients {
		assert.Equal(t, "CONNECTIONLOSS", client.Line(), "how the delete fails")
		require.True(t, client.Done())
	}
	for i, znode := range znodes {
		isOpen := i == 0
		if !isOpen {
			does(t, clients[i], "close")
		}
		taps[i].Restore()
		z.Await("the znode to be deleted", func() bool {
			_, there := z.Owner(znode)
			return !there
		})
		sessions, err := z.Sessions()
		require.NoError(t, err)
		_, lives := sessions[owners[i]]
		assert.Equal(t, isOpen, lives, "the session of %s when its znode was deleted", znode)
		assert.Equal(t, isOpen, slices.Contains(taps[i].Done(wiretap.Delete), znode), "the client has deleted %s", znode)
	}
}

// The session of Curator's holder ends, and step 5 gets the lock. Curator's holder locks again, and succeeds.
func TestCuratorsHolderLocksAgainAfterALoss(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	tap := wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", ours.Path, 1)
	does(t, theirs, "lock")
	require.NoError(t, zktest.CloseSession(z.Servers()[0], tap.Session()))
	ours.Acquire()
	does(t, theirs, "lock")
	assert.Len(t, ours.Queue(), 1, "the queue: step 5's znode, whose client holds the lock")
}

func TestAnInterruptEndsCuratorsWait(t *testing.T) {
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	theirs := Curator(z, t, z.Servers()[0], "mutex", ours.Path, 1)
	held := ours.Acquire()
	does(t, theirs, "wait")
	z.Await("Curator to watch our znode", func() bool { return watched(z, held.Znode()) })
	theirs.Begin("interrupt")
	assert.Equal(t, "java.lang.InterruptedException", theirs.Line(), "what Curator's acquire() throws")
	assert.True(t, theirs.Done())
	z.Await("Curator's znode to be deleted", func() bool { return len(ours.Queue()) == 1 })
}

// The client was never started, so it has asked no server.
func TestCuratorsConstructorChecksTheTextOfThePath(t *testing.T) {
	z := needsPeers(t)
	theirs := Curator(z, t, z.Servers()[0], "mutex", z.Root+"/lock", 1)
	theirs.Begin("make /not/there")
	assert.Equal(t, "make /not/there: done", theirs.Line())
	theirs.Begin("make /not//there")
	assert.Contains(t, theirs.Line(), "java.lang.IllegalArgumentException: Invalid path string")
}

// Curator creates the lock's directory as a container: the server deletes it when it has had children, and is empty.
// This server looks ten times a second, and not once a minute.
func TestCuratorCreatesAContainer(t *testing.T) {
	needsPeers(t)
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dznode.container.checkIntervalMs=100")
	server, err := zkserver.StartEnsemble(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	z := zktest.NewOn(t, server.Server)
	path := z.Root + "/lock"
	does(t, Curator(z, t, server.Addr, "mutex", path, 1), "lock", "unlock")
	z.Await("the server to delete the directory", func() bool {
		_, isThere := z.Owner(path)
		return !isThere
	})
	_, isThere := z.Owner(z.Root)
	assert.True(t, isThere, "the directory above, which is no container")
}

// create2 is the create that Curator sends.
const create2 = wiretap.Op(15)

// The reply to Curator's create is lost.
func TestCuratorFindsItsZnodeAfterALostReply(t *testing.T) {
	z := needsPeers(t)
	path, tap := z.Root+"/lock", wiretap.New()
	theirs := Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", path, 1)
	does(t, theirs, "lock", "unlock") // makes the directory; and what Curator asks at its start is answered
	lost := tap.LoseReply(create2, 1)
	does(t, theirs, "lock")
	assert.True(t, lost.IsSprung(), "the reply was lost")
	assert.Len(t, z.Names(path), 1, "the queue: Curator has made one znode")
}

// The leader has proposed Curator's create when the connection breaks, and the next server has not heard of it. Curator
// lists there without a sync, and does not find its znode: it makes a second one, and waits for the first.
func TestCuratorAtAServerThatLagsWaitsForItself(t *testing.T) {
	needsPeers(t)
	ensemble, leader, followers := zktest.ThreeServers(t)
	late, paused := followers[0], followers[1]
	z := zktest.NewOn(t, leader.Server)
	path, tap := z.Root+"/lock", wiretap.New()
	var server atomic.Pointer[zkserver.Peer]
	server.Store(leader)
	address := listen(t, func(client net.Conn) { go tap.Relay(client, server.Load().Addr) })
	theirs := Curator(z, t, address, "mutex", path, 1)
	does(t, theirs, "lock", "unlock") // makes the directory
	leaderCounts := func(key string) int64 {
		counters, err := leader.Mntr()
		require.NoError(t, err)
		return counters[key]
	}
	_, err := zktest.NewOn(t, late.Server).Observer().Sync(z.Root)
	require.NoError(t, err)

	require.NoError(t, paused.Pause())
	t.Cleanup(func() { assert.NoError(t, paused.Resume()) })
	toLate := ensemble.Hold(leader, late)
	mark, proposals, asked := tap.Mark(), leaderCounts("zk_proposal_count"), leaderCounts("zk_revalidate_count")
	does(t, theirs, "wait")
	z.Await("the leader to propose the create", func() bool { return leaderCounts("zk_proposal_count") > proposals })
	server.Store(late)
	tap.HangUp()
	z.Await("the follower to ask for the session", func() bool { return leaderCounts("zk_revalidate_count") > asked })
	agrees := ensemble.Hold(late, leader)
	toLate()
	z.Await("Curator to create again", func() bool { return wiretap.Count(tap.Since(mark)).Requests[create2] == 2 })
	agrees()
	z.Await("both znodes", func() bool { return len(z.Names(path)) == 2 })
	names := z.Names(path)
	slices.SortFunc(names, zktest.BySequence)
	z.Await("Curator to watch the first", func() bool { return slices.Contains(tap.Watched(), path+"/"+names[0]) })
	first, _ := z.Owner(path + "/" + names[0])
	second, _ := z.Owner(path + "/" + names[1])
	assert.Equal(t, first, second, "the sessions of both znodes")
}

// One holds, and the other, of the other language, waits or shares: both ways.
func TestReadersOfBothShareAndWritersOfBothExclude(t *testing.T) {
	z := needsPeers(t)
	path := z.Root + "/lock"
	ours := step6.Join(z, "step 6")
	theirReader := Curator(z, t, z.Servers()[0], "read", path, 1)
	theirWriter := Curator(z, t, z.Servers()[0], "write", path, 1)

	reading := ours.Reader.Acquire()
	theirReader.Begin("lock")
	require.True(t, theirReader.Done(), "Curator's reader shares with ours")
	theirWriter.Begin("lock")
	z.Await("Curator's writer to queue", func() bool { return len(ours.Queue()) == 3 })
	reading.Release()
	waiting := ours.Start()
	waiting.MustWait("Curator's writer is before it")
	theirReader.Begin("unlock")
	require.True(t, theirReader.Done())
	require.True(t, theirWriter.Done(), "Curator's writer is let in when both readers have gone")
	waiting.MustWait("Curator's writer holds the lock")
	theirWriter.Kill()
	waiting.Acquired()
	assert.Len(t, ours.Queue(), 1, "Curator's writer was killed, and its session has expired")
	theirReader.Begin("lock")
	z.Await("Curator's reader to watch our writer's znode", func() bool { return watched(z, waiting.Znode()) })
	waiting.Release()
	require.True(t, theirReader.Done(), "Curator's reader is let in when our writer has gone")
}

// A crowd is a client of Curator's mutex whose threads all wait through one lock object, for the same holder.
type crowd struct {
	Peer
	tap   *wiretap.Tap
	queue string
}

// newCrowd returns a crowd that waits for ours.
func newCrowd(z *zktest.Zoo, t *testing.T, ours *zktest.Member, threads int, before ...string) crowd {
	t.Helper()
	tap := wiretap.New()
	c := crowd{Curator(z, t, relay(t, tap, z.Servers()[0]), "mutex", ours.Path, 1), tap, ours.Path}
	does(t, c.Peer, append(before, fmt.Sprintf("crowd %d", threads))...)
	z.Await("the threads to wait", func() bool { return c.asked(wiretap.GetData, 0) == threads && tap.Idle() })
	require.Len(t, ours.Queue(), 1+threads, "the queue")
	return c
}

// asked counts the requests about the queue since a mark. Curator also reads its servers' configuration.
func (c crowd) asked(op wiretap.Op, mark int) (n int) {
	for _, f := range c.tap.Since(mark) {
		if f.Kind == wiretap.Request && f.Op == op && strings.HasPrefix(f.Path, c.queue) {
			n++
		}
	}
	return n
}

// Ten threads wait through one lock object. One release wakes them all: each lists, and all but the new holder watch
// their predecessor again.
func TestAReleaseWakesAllThreadsOfOneCuratorObject(t *testing.T) {
	const threads = 10
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	held := ours.Acquire()
	theirs := newCrowd(z, t, ours, threads)
	mark := theirs.tap.Mark()
	held.Release()
	z.Await("each thread to list, and all but the holder to watch", func() bool {
		return theirs.asked(wiretap.GetChildren, mark) >= threads && theirs.asked(wiretap.GetData, mark) >= threads-1
	})
	assert.Equal(t, threads, theirs.asked(wiretap.GetChildren, mark), "lists")
	assert.Equal(t, threads-1, theirs.asked(wiretap.GetData, mark), "watches that are set again")
	assert.Equal(t, 1, wiretap.Count(theirs.tap.Since(mark)).Notifications, "notifications")
	assert.Len(t, ours.Queue(), threads, "the queue: one thread has the lock")
}

// The connection breaks, and comes back. A watch that exists has left on a znode that has gone is told of both. So is
// each thread that waits for the lock, and lists again.
func TestABrokenConnectionWakesAllOfCuratorsWatchers(t *testing.T) {
	const threads = 10
	z := needsPeers(t)
	ours := step5.Join(z, "step 5")
	ours.Acquire()
	theirs := newCrowd(z, t, ours, threads, "exists /gone-0000000000")
	mark := theirs.tap.Mark()
	theirs.tap.HangUp()
	assert.Equal(t, "the watcher hears Disconnected, None", theirs.Line())
	assert.Equal(t, "the watcher hears SyncConnected, None", theirs.Line())
	z.Await("each thread to list again", func() bool { return theirs.asked(wiretap.GetChildren, mark) >= threads })
}
