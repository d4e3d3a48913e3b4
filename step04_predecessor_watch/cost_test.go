// How to read these tests: the head of ../step01_plain_node/lock_test.go explains their words.

package predecessorwatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Each waiter watches one znode, and each znode is watched by at most one of those who wait. So a release wakes
// one waiter, and one client lists, however long the queue is.
func TestReleaseWakesOne(t *testing.T) {
	t.Parallel()
	n := chapter.Size(t, 50)
	z := zktest.New(t)
	line := lock.Line(z, n)
	count := z.Count(line[1:]...)
	line = z.Pass(line)
	woken := count()
	lists := woken.Requests[wiretap.GetChildren]
	assert.Equal(t, 1, woken.Notifications, "notifications for one release")
	assert.Equal(t, 1, lists, "lists for one release")
	chapter.Says(t, "%d waiters, one release: %d notification, %d list, %d names in it",
		n, woken.Notifications, lists, woken.Names)

	for len(line) > 0 {
		line = z.Pass(line)
	}
	all := count()
	lists = all.Requests[wiretap.GetChildren]
	assert.Equal(t, n, all.Notifications, "notifications until all are served")
	assert.Equal(t, n, lists, "lists until all are served")
	assert.Equal(t, n*(n+1)/2, all.Names, "names: each list has all that are left")
	chapter.Says(t, "%d waiters, all served: %d notifications, %d lists, %d names in them",
		n, all.Notifications, lists, all.Names)
}

// A watch cannot be taken back. Each of ten clients stands directly behind the holder for a while, and gives up. Its
// watch stays, and the release notifies it as well as the one client that waits.
func TestAReleaseNotifiesThoseWhoGaveUpToo(t *testing.T) {
	t.Parallel()
	const quitters = 10
	z := zktest.New(t)
	held := lock.Join(z, "the holder").Acquire()
	var gone []*zktest.Client
	for i := range quitters {
		quitter := lock.Join(z, fmt.Sprintf("quitter %d", i+1)).Start()
		quitter.MustWait("the holder")
		require.ErrorIs(t, quitter.Cancel(), context.Canceled)
		gone = append(gone, quitter.Client)
	}
	waiting := lock.Join(z, "the waiter").Start()
	waiting.MustWait("the holder")
	toTheWaiter, toTheOthers := z.Count(waiting), z.CountClients(gone...)
	held.Release()
	waiting.Acquired()
	z.Barrier(gone...)
	waiter, others := toTheWaiter().Notifications, toTheOthers()
	assert.Equal(t, 1, waiter, "notifications to the waiter")
	assert.Equal(t, quitters, others.Notifications, "notifications to those who gave up")
	assert.Zero(t, others.Requests[wiretap.GetChildren], "lists of those who gave up: they ignore it")
}

// The directory of another lock lies in this one's, and is named like a znode of the queue. So it is a place in the
// queue, and its client never leaves.
func TestADirectoryNamedLikeAZnodeBarsTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := lock.Join(z, "Ada")
	for range 2 { // numbers 0 and 1
		a.Acquire().Release()
	}
	other, err := z.Observer().Create(a.Path+"/lock-1", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	waiting := a.Start()
	waiting.MustWait("a directory, which nobody will delete")
	require.NoError(t, z.Observer().Delete(other, -1))
	waiting.Acquired()
}

// No client watches the end of the queue.
func TestArrivalWakesNobody(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 10)
	count := z.Count(line...)
	newcomer := lock.Join(z, "the newcomer").Start()
	z.Settle(append(line[1:], newcomer)...)
	woken := count()
	assert.Zero(t, woken.Notifications, "notifications to the clients that were there before")
	assert.Zero(t, woken.All(), "requests of the clients that were there before")
}

// Three of twelve waiters expire: each matters only to the client behind it.
func TestDeathsWakeThoseBehind(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 12)
	dead := []*zktest.Client{line[2].Client, line[6].Client, line[10].Client}
	behind := []*zktest.Turn{line[3], line[7], line[11]}
	others := slices.Concat(line[1:2], line[4:6], line[8:10], line[12:])
	toThoseBehind, toOthers := z.Count(behind...), z.Count(others...)
	z.Expire(dead...)
	z.Settle(behind...)
	z.Settle(others...)
	assert.Equal(t, 3, toThoseBehind().Notifications, "notifications to those directly behind the crashed")
	assert.Zero(t, toOthers().Notifications, "notifications to all others")
}

// The second in the queue crashes. The third watched it and wakes up, but it is not the third's
// turn: it lists again, and watches the holder.
func TestWaiterDies(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 2)
	holder, second, third := line[0], line[1], line[2]
	count := z.Count(third)
	z.Expire(second.Client)
	third.MustWait("the holder")
	told := count()
	assert.Equal(t, 1, told.Notifications, "notifications to the third")
	assert.Equal(t, []string{"getChildren", "getData"}, told.Asked, "requests of the third: it lists again")
	assert.Equal(t, []string{holder.Znode()}, third.Tap.Watched(), "what the third watches now")
	chapter.Says(t, "a waiter crashes: the one behind it gets %d notification, sends %s, and keeps waiting",
		told.Notifications, strings.Join(told.Asked, ", "))
	holder.Release()
	third.Acquired()
}

// A watch on a znode that does not exist waits for its creation. A directory gives no number
// twice, unless it is deleted and created again. So that watch stays as long as its session.
func TestWatchOnAGoneZnode(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c, gone := z.Client("the client"), z.Root+"/lock-0000000007"
	_, _, _, err := c.GetW(gone)
	require.ErrorIs(t, err, zk.ErrNoNode, "what GetW answers")
	byGetW := watchesAtTheServer(t, z, gone)
	_, _, _, err = c.ExistsW(gone)
	require.NoError(t, err, "what ExistsW answers")
	byExistsW := watchesAtTheServer(t, z, gone)
	assert.Zero(t, byGetW, "watches that GetW leaves")
	assert.Equal(t, 1, byExistsW, "watches that ExistsW leaves")
	chapter.Says(t,
		"a znode that has been deleted: GetW leaves %d watches at the server, ExistsW %d", byGetW, byExistsW)
}

// watchesAtTheServer counts the watches on a znode, as the server itself lists them.
func watchesAtTheServer(t *testing.T, z *zktest.Zoo, path string) int {
	sessions, err := z.Watches()
	require.NoError(t, err)
	return len(sessions[path])
}

// What a lock and an unlock cost the client, when the directory exists.
func TestRequestsWithoutAWait(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := lock.Join(z, "Ada")
	a.Acquire().Release() // makes the directory
	before := a.Tap.Mark()
	a.Acquire().Release()
	alone := a.Asked(before)
	assert.Equal(t, []string{"create", "getChildren", "delete"}, alone, "without a wait")
}

// A turn costs each waiter the same, however many wait.
func TestRequestsUntilAllAreServed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3} {
		z := zktest.New(t)
		line := lock.Line(z, n)
		waiters := line[1:]
		for len(line) > 0 {
			line = z.Pass(line)
		}
		for _, waiter := range waiters {
			assert.Equal(t, []string{"create", "getChildren", "getData", "getChildren", "delete"}, waiter.Asked(0),
				"%s of %d", waiter.Name, n)
		}
	}
}

// The server creates the znode, and the connection breaks before the reply arrives. Its owner
// does not know of the znode, and queues up behind it. The session lives on, so the znode stays.
func TestStillBrokenLostCreateReply(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	unlucky, other := lock.Join(z, "the unlucky client"), lock.Join(z, "the other client")
	other.Acquire().Release() // makes the directory
	unlucky.Tap.LoseReply(wiretap.Create, 1)
	require.ErrorIs(t, unlucky.Start().Err(), zk.ErrConnectionClosed, "what Lock answers, its create being unanswered")

	unlucky.Start().MustWait("a znode of its own")
	waiting := other.Start()
	waiting.MustWait("the unlucky client")
	sessions, err := z.Sessions()
	require.NoError(t, err)
	own := sessions[unlucky.ID]
	assert.Len(t, own, 2, "znodes of the unlucky client's session")
	assert.Len(t, unlucky.Queue(), 3, "the queue: nobody holds the lock, and everybody waits")
	chapter.Says(t,
		"a lost reply to create: %d znodes of one session are in the queue, nobody holds the lock, and everybody waits",
		len(own))

	unlucky.Client.Close() // what a restart does
	waiting.Acquired()
}

// The delete never reaches the server. Unlock returns an error, and the znode stays.
func TestStillBrokenLostDelete(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 1)
	holder, waiting := line[0], line[1]
	holder.Tap.LoseRequest(wiretap.Delete, 1)
	require.Error(t, holder.Unlock(), "Unlock, whose delete was lost")
	z.Await("the holder to be connected again", func() bool { return holder.State() == zk.StateHasSession })
	waiting.MustWait("a client that has called Unlock")
	assert.Equal(t, holder.ID, holder.SessionID(), "the holder's session lives on")
	assert.Len(t, waiting.Queue(), 2, "the queue: the first has called Unlock")
	holder.Release() // a second Unlock releases the lock
	waiting.Acquired()
}

// Two goroutines share a Lock. The first one's delete is carried out, and its reply is lost: Unlock
// returns an error. The second gets the lock. The first calls Unlock again, which deletes the
// second's znode.
func TestUnlockCalledAgainReleasesAnotherGoroutinesLock(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := lock.Join(z, "two goroutines of Ada's"), lock.Join(z, "Ben")
	first := a.Acquire()
	a.Tap.LoseReply(wiretap.Delete, 1)
	require.ErrorIs(t, first.Unlock(), zk.ErrConnectionClosed, "the first goroutine's Unlock")
	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	a.Acquire() // the second goroutine, which does not call Unlock
	waiting := b.Start()
	waiting.MustWait("Ada's second goroutine")
	require.NoError(t, first.Unlock(), "the first goroutine's Unlock, called again")
	waiting.Acquired() // beside the second goroutine
}

// Ben gives up while he is disconnected: the one delete cannot be sent. Then Ben reconnects, in the same session.
// Ben's znode is the next in the queue, and no client uses it.
func TestStillBrokenGivingUpWhileDisconnected(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	line := lock.Line(z, 1)
	holder, b := line[0], line[1]
	b.Tap.Cut()
	z.Await("Ben to see that he is disconnected", func() bool { return b.State() != zk.StateHasSession })
	err := b.Cancel()
	require.ErrorIs(t, err, context.Canceled, "what Ben's Lock answers")
	require.ErrorIs(t, err, zk.ErrNoServer, "and what it says of its delete")
	b.Tap.Restore()
	z.Await("Ben to be connected again", func() bool { return b.State() == zk.StateHasSession })
	assert.Equal(t, b.ID, b.SessionID(), "Ben's session lives on")
	holder.Release()
	next := lock.Join(z, "the next").Start()
	next.MustWait("Ben, who has given up")
	assert.Len(t, next.Queue(), 2, "the queue: nobody holds the lock")

	b.Client.Close() // what a restart does
	next.Acquired()
}

// A waiter's session ends while its getData is still in the client library, which sends it in the next session. The
// watch is set, and the waiter has no znode any more.
func TestStillBrokenKeptWatch(t *testing.T) { property.Lacks(t, lock, property.KeptWatch) }

// Its list is sent in the next session, and its old znode is the first in it: Lock returns. The server deletes that
// znode, and the next client's Lock returns as well.
func TestStillBrokenKeptList(t *testing.T) { property.Lacks(t, lock, property.KeptList) }

// A request waits in the client library when the connection breaks. The library sends it in the next session only if
// it has three addresses or more: it drops what waits before it connects again to the address that it was connected to.
func TestFewAddressesKeepNoRequest(t *testing.T) {
	t.Parallel()
	for addresses := 1; addresses <= 4; addresses++ {
		z := zktest.New(t)
		c := z.ConnectWith("the client", func(dial zk.Dialer) (*zk.Conn, func(), error) {
			conn, err := zktest.Dial(slices.Repeat(z.Servers()[:1], addresses), zktest.SessionTimeout, dial)
			return conn, conn.Close, err
		})
		busy := c.Tap.HoldRequest(wiretap.Exists, 1)
		z.Go(c, func(context.Context) error {
			_, _, err := c.Exists(z.Root)
			return err
		})
		zktest.AwaitChan(z, "the connection to be busy", busy.Sprung())
		list := z.Go(c, func(context.Context) error {
			_, _, err := c.Children(z.Root)
			return err
		})
		z.SoonAfter(5, list.Returned)                 // so that the list gets as far as the library
		back := c.Tap.HoldRequest(wiretap.Connect, 1) // until the old session has ended
		z.EndSession(c)
		back.Let()
		if addresses <= 2 {
			assert.ErrorIs(t, list.Err(), zk.ErrNoServer, "%d addresses", addresses)
			continue
		}
		assert.NoError(t, list.Err(), "%d addresses", addresses)
		assert.NotEqual(t, c.ID, c.SessionID(), "%d addresses: the session of the list", addresses)
	}
}

// The lock does not know its caller. A holder that locks again is one more waiter, behind
// itself.
func TestStillBrokenLockingTwice(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	first := lock.Join(z, "the holder").Acquire()
	znode := first.Znode()
	second := first.Start()
	second.MustWait("the first hold")
	assert.Equal(t, []string{znode}, first.Tap.Watched(), "what the second Lock waits for: its own client's znode")
	assert.Len(t, first.Queue(), 2, "the queue: both are the holder's")

	require.Error(t, second.Cancel(), "the second Lock: only cancelling ends its wait")
	first.Release()
}

// Ada loses the connection to the servers. Her session expires, her znode is deleted, and Ben gets the lock.
// Ada goes on working: Lock has returned long ago, and nothing else notifies her.
func TestStillBrokenTheHolderDoesNotKnow(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := lock.Join(z, "Ada"), lock.Join(z, "Ben")
	held := a.Acquire()
	waiting := b.Start()
	waiting.MustWait("Ada")

	z.Expire(a.Client)
	waiting.Acquired()

	a.Tap.Restore()
	z.Await("Ada to be connected again", func() bool { return a.State() == zk.StateHasSession })
	err := held.Unlock()
	require.ErrorIs(t, err, zk.ErrNoNode, "what Ada's Unlock returns, while Ben holds the lock")
}

// A znode plays the store where Ada and Ben record which order they have shipped. Ada has lost
// the lock to Ben and does not know it, and writes after Ben.
func TestStillBrokenALateWriteIsAccepted(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	store, err := z.Observer().Create(z.Root+"/store", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	write := func(data string) {
		_, err := z.Observer().Set(store, []byte(data), -1)
		require.NoError(t, err)
	}
	a, b := lock.Join(z, "Ada"), lock.Join(z, "Ben")
	const late = "order 17: shipped by Ada, who has lost the lock"
	a.Acquire()
	waiting := b.Start()
	waiting.MustWait("Ada")
	z.Expire(a.Client)
	waiting.Acquired()
	write("order 17: shipped by Ben, who holds the lock")
	write(late)
	data, _, err := z.Observer().Get(store)
	require.NoError(t, err)
	assert.Equal(t, late, string(data), "what the store has")
	chapter.Says(t, "Ben holds the lock, Ada has lost it and writes last: the store has %q", data)
}

// Ada and Ben are processes. In Ada's, a local lock that serves in order stands before ZooKeeper's, as in lenshood. Her
// second goroutine asks before Ben, has no znode, and is served after him.
func TestALocalLockInFrontLetsALaterProcessIn(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ada, ben := lock.Join(z, "Ada"), lock.Join(z, "Ben")
	local := make(chan struct{}, 1) // those who send wait in order
	local <- struct{}{}
	held := ada.Acquire()
	asks, second := make(chan struct{}), make(chan *zktest.Turn)
	go func() {
		close(asks)
		local <- struct{}{}
		second <- ada.Start()
	}()
	zktest.AwaitChan(z, "Ada's second goroutine to ask", asks)
	waiting := ben.Start()
	waiting.MustWait("Ada's first")
	assert.Len(t, ada.Queue(), 2, "the queue, when three have asked")
	held.Release()
	<-local
	waiting.Acquired()
	later := zktest.AwaitChan(z, "Ada's second goroutine to have the local lock", second)
	later.MustWait("Ben, who asked after it")
	waiting.Release()
	later.Acquired()
}

// The holder's session has a waiter in the queue as well. Its end deletes both znodes, and wakes two waiters of others.
func TestTheEndOfASessionWithTwoPlacesWakesTwo(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ada, ben, cleo := lock.Join(z, "Ada"), lock.Join(z, "Ben"), lock.Join(z, "Cleo")
	ada.Acquire()
	first := ben.Start()
	first.MustWait("Ada's first")
	again := ada.Start()
	again.MustWait("Ben")
	last := cleo.Start()
	last.MustWait("Ada's second")
	woken := z.Count(first, last)
	z.EndSession(ada.Client)
	first.Acquired()
	z.Settle(last)
	assert.Equal(t, 2, woken().Notifications, "notifications to others, of whom one has the lock")
}
