// How to read these tests: the head of ../step01_plain_node/lock_test.go explains their words.

package sharedlock

import (
	"fmt"
	pathpkg "path"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// ways are the two ways to wait: the first is that of the course's first shared lock.
var ways = []property.Subject{
	watching("a watch on the directory", predecessor),
	property.OverHolds("a watch on one znode", open, New),
}

func TestTheFirstFormIsARightLockWithAHerd(t *testing.T) {
	t.Parallel()
	property.Holds(t, ways[0], property.OneHolder, property.Shared)
	property.Lacks(t, ways[0], property.WakesOne, property.ArrivalWakesNobody)
}

// The readers before the first writer in the queue get the lock together. Each of them must be
// notified. Any other notification is useless.
func TestAWritersReleaseLetsTheNextReadersInTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		way                  property.Subject
		waiting, says        string
		letIn, notifications int
	}{
		{ways[0], "RRRRRRRRRR", "10 readers wait", 10, 10},
		{ways[0], "RRRRRWRRRRR", "5 readers, a writer and 5 readers wait", 5, 11},
		{ways[1], "RRRRRRRRRR", "10 readers wait", 10, 10},
		{ways[1], "RRRRRWRRRRR", "5 readers, a writer and 5 readers wait", 5, 5},
	} {
		z := zktest.New(t)
		turns := queue(z, c.way, "W"+c.waiting)
		writer, waiters := turns[0], turns[1:]
		count := z.Count(waiters...)
		writer.Release()
		for _, w := range waiters[:c.letIn] {
			w.Acquired()
		}
		z.Settle(waiters[c.letIn:]...)
		told := count().Notifications
		require.Equal(t, c.notifications, told, "%s: notifications when %s", c.way.Name, c.says)
		chapter.Says(t, "%s: a writer releases, and %s: %d notifications, %d get the lock", c.way.Name, c.says, told, c.letIn)
	}
}

func TestAnArrivalWakesNobody(t *testing.T) {
	t.Parallel()
	for i, way := range ways {
		z := zktest.New(t)
		waiters := queue(z, way, "WRRRRRWRRRRR")[1:]
		count := z.Count(waiters...)
		way.Join(z, "the newcomer").Reader.Start().MustWait("the others")
		told := count().Notifications
		require.Equal(t, []int{11, 0}[i], told, "%s: notifications", way.Name)
		chapter.Says(t, "%s: 5 readers, a writer and 5 readers wait, and one more arrives: %d notifications", way.Name, told)
	}
}

// Ten readers release in the order in which they arrived. The writer behind them must learn only
// of the last one.
func TestTheWriterHearsOfTheLastReaderOnly(t *testing.T) {
	t.Parallel()
	n := chapter.Size(t, 10)
	for i, way := range ways {
		z := zktest.New(t)
		turns := queue(z, way, strings.Repeat("R", n)+"W")
		readers, writer := turns[:n], turns[n]
		count := z.Count(writer)
		for i, reader := range readers {
			reader.Release()
			if i < n-1 {
				z.Settle(writer)
			}
		}
		writer.Acquired()
		told := count().Notifications
		require.Equal(t, []int{n, 1}[i], told, "%s: notifications", way.Name)
		chapter.Says(t, "%s: %d readers release one by one: notifications to the writer behind them: %d", way.Name, n, told)
	}
}

// They release in the reverse order. Each time the znode that the writer watches is deleted, and
// it watches the one before that.
func TestReadersThatLeaveInTheOppositeOrderWakeTheWriterEachTime(t *testing.T) {
	t.Parallel()
	const n = 10
	z := zktest.New(t)
	turns := queue(z, locks, strings.Repeat("R", n)+"W")
	readers, writer := turns[:n], turns[n]
	count := z.Count(writer)
	for i, reader := range slices.Backward(readers) {
		reader.Release()
		if i > 0 {
			z.Settle(writer)
		}
	}
	writer.Acquired()
	told := count().Notifications
	require.Equal(t, n, told, "notifications to the writer")
	chapter.Says(t, "%d readers release, the last one first: notifications to the writer behind them: %d", n, told)
}

// store is what readers and writers share. It keeps two numbers: the greatest token of a writer,
// and the greatest of all clients.
type store struct {
	ofWriters, ofAll int64
	told             []string
}

func (s *store) read(who string, token int64) { s.take(who+" reads", token, s.ofWriters) }
func (s *store) write(who string, token int64) {
	if s.take(who+" writes", token, s.ofAll) {
		s.ofWriters = token
	}
}

func (s *store) take(what string, token, least int64) bool {
	if token < least {
		s.told = append(s.told, what+" (refused)")
		return false
	}
	s.ofAll = max(s.ofAll, token)
	s.told = append(s.told, what)
	return true
}

// Ben and Cleo read together, and Ben's token is the smaller one. So one number would refuse Ben. With
// two, the store refuses only clients that have lost the lock, if readers only read.
func TestAStoreForReadersAndWritersKeepsTwoNumbers(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ada, ben, cleo := locks.Join(z, "Ada"), locks.Join(z, "Ben"), locks.Join(z, "Cleo")
	var s store

	writing := ada.Acquire()
	s.write("Ada", writing.Held().Token())
	writing.Release()

	benReads, cleoReads := ben.Reader.Acquire(), cleo.Reader.Acquire()
	benToken, cleoToken := benReads.Held().Token(), cleoReads.Held().Token()
	require.Less(t, benToken, cleoToken, "Ben's token, and that of Cleo, who came later")
	s.read("Cleo", cleoToken)
	s.read("Ben", benToken)

	z.Expire(ben.Client)
	cleoReads.Release()
	adaToken := ada.Acquire().Held().Token()
	s.write("Ada", adaToken)
	s.read("Ben", benToken)

	z.Expire(ada.Client)
	s.read("Cleo", cleo.Reader.Acquire().Held().Token())
	s.write("Ada", adaToken)

	want := "Ada writes, Cleo reads, Ben reads, Ada writes, Ben reads (refused), Cleo reads, Ada writes (refused)"
	told := strings.Join(s.told, ", ")
	require.Equal(t, want, told)
	chapter.Says(t, "a store with two numbers is sent: %s", told)
}

// The store does not know that Cleo is a reader. It accepts her write, and then refuses Ben, who still holds the lock.
func TestAStoreThatChecksAcceptsAReadersWrite(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ben := locks.Join(z, "Ben").Reader.Acquire().Held().Token()
	cleo := locks.Join(z, "Cleo").Reader.Acquire().Held().Token()
	var s store
	s.read("Ben", ben)
	s.write("Cleo", cleo)
	s.read("Ben", ben)
	require.Equal(t, []string{"Ben reads", "Cleo writes", "Ben reads (refused)"}, s.told)
}

// Clients that get the lock together have one turn together.
func TestTenReadersTakeOneTurn(t *testing.T) {
	t.Parallel()
	const n = 10
	for _, c := range []struct {
		kind         kind
		who          string
		most, inTurn int
	}{{read, "readers", n, 1}, {write, "writers", 1, n}} {
		z := zktest.New(t)
		var waiting []*zktest.Turn
		for i := range n {
			turn := as(c.kind, locks.Join(z, fmt.Sprintf("client %d (%s)", i+1, c.kind))).Start()
			turn.Queued()
			waiting = append(waiting, turn)
		}
		most, turns := 0, 0
		for len(waiting) > 0 {
			turns++
			z.Await("somebody to be let in", func() bool {
				return slices.ContainsFunc(waiting, (*zktest.Turn).Returned)
			})
			var inside, outside []*zktest.Turn
			for _, w := range waiting {
				if w.Waits() == zktest.Returned {
					inside = append(inside, w)
				} else {
					outside = append(outside, w)
				}
			}
			most = max(most, len(inside))
			for _, w := range inside {
				w.Release()
			}
			waiting = outside
		}
		require.Equal(t, c.most, most, "%s that hold the lock at a time", c.who)
		require.Equal(t, c.inTurn, turns, "turns of %d %s", n, c.who)
		chapter.Says(t, "%d %s: holders at a time: %d, turns: %d", n, c.who, most, turns)
	}
}

// Ben's program has the rules of this lock, but after a wake-up it creates again. As a reader it gets the lock with its
// second znode. The first stays in the queue, and the next writer waits for it.
func TestAReaderThatCreatesAgainLeavesItsFirstZnodeBehind(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ada, ben, cleo := locks.Join(z, "Ada"), z.Client("Ben"), locks.Join(z, "Cleo")
	joins := func() (node, before string) {
		node, err := create(ben.Conn, ada.Path+"/_c_0123456789abcdef-"+string(read), zk.FlagEphemeralSequential)
		require.NoError(t, err)
		before, err = predecessor(ada.Queue(), pathpkg.Base(node))
		require.NoError(t, err)
		return node, before
	}
	writing := ada.Acquire()
	first, before := joins()
	require.Equal(t, pathpkg.Base(ada.Znode()), before, "whom Ben waits for")
	writing.Release()
	second, before := joins()
	require.Empty(t, before, "whom Ben waits for after his second create: he holds the lock")
	require.NoError(t, ben.Delete(second, -1), "Ben releases the lock")

	next := cleo.Start()
	next.MustWait("Ben's first znode is before it")
	require.Equal(t, []string{first}, cleo.Tap.Watched(), "what Cleo watches")
	owner, _ := z.Owner(first)
	require.Equal(t, ben.SessionID(), owner, "the session that this znode belongs to: Ben's, who lives")
	require.NoError(t, ben.Delete(first, -1))
	next.Acquired()
}

// What a lock and an unlock cost the client, when the directory exists.
func TestRequestsForOneHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  kind
		calls string
	}{{read, "RLock and Unlock"}, {write, "Lock and Unlock"}} {
		z := zktest.New(t)
		holder := locks.Join(z, "the holder")
		holder.Acquire().Release() // makes the directory
		m := as(c.kind, locks.Join(z, "the client"))
		m.Acquire().Release()
		alone := m.Asked(0)

		held := holder.Acquire()
		mark := m.Tap.Mark()
		waiter := m.Start()
		waiter.MustWait("the holder")
		held.Release()
		waiter.Release()
		waited := m.Asked(mark)

		require.Equal(t, []string{"create", "getChildren", "delete"}, alone)
		require.Equal(t, []string{"create", "getChildren", "getData", "getChildren", "delete"}, waited)
		chapter.Says(t, "%s, alone: %d requests: %s", c.calls, len(alone), strings.Join(alone, ", "))
		chapter.Says(t, "%s, after a wait: %d requests: %s", c.calls, len(waited), strings.Join(waited, ", "))
	}
}

// Left out on purpose: a reader that becomes a writer. Here two readers try, by queuing up
// as writers while they hold the lock: each waits for the other.
func TestLeftOutUpgrade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := locks.Join(z, "Ben"), locks.Join(z, "Cleo")
	reading := a.Reader.Acquire()
	who := map[string]string{a.Znode(): "Ben's read znode"}
	b.Reader.Acquire()
	who[b.Znode()] = "Cleo's read znode"

	mark := a.Tap.Mark()
	_, err := a.Lock(reading.Context())
	require.ErrorIs(t, err, ErrUpgrade, "a reader asks to write")
	requests := len(a.Asked(mark))
	require.Zero(t, requests, "requests of that call")
	chapter.Says(t, "a reader asks to write: ErrUpgrade after %d requests", requests)

	writing := a.Start()
	writing.MustWait("Cleo's read znode")
	who[a.Znode()] = "Ben's write znode"
	b.Start().MustWait("Ben's write znode")
	writing.MustWait("Cleo's read znode, now that Cleo also waits")
	waitsFor := []string{who[a.Tap.Watched()[0]], who[b.Tap.Watched()[0]]}
	require.Equal(t, []string{"Cleo's read znode", "Ben's write znode"}, waitsFor, "whom Ben and Cleo wait for")
	chapter.Says(t, "two readers queue up as writers: both wait, Ben for %s, Cleo for %s", waitsFor[0], waitsFor[1])
}
